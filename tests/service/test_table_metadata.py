"""Properties and metadata of an Iceberg table, which its owner can write, do not command the service."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from lading.errors import ConfigError, LadingError, StorageError, TableError
from lading.model.s3_access import is_allowed
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.tables.s3_server import S3Server

CALLED: list[object] = []


def remember(*given: object) -> None:
    """What a property names, and what must never be called."""
    CALLED.append(given)


HERE = f"{__name__}.remember"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("py-io-impl", HERE),
        ("PY-IO-IMPL", HERE),
        ("write.py-location-provider.impl", HERE),
        ("write.metadata.path", "{victim}"),
        ("write.data.path", "{victim}"),
    ],
)
def test_create_table_names_no_classes_and_no_other_places(tmp_path: Path, name: str, value: str) -> None:
    """A user with ADMIN on one database could have any function of Python called, and files written anywhere."""
    victim = tmp_path / "victim"
    victim.mkdir()
    CALLED.clear()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop; CREATE USER ann; GRANT ADMIN ON shop TO ann")
        given = value.format(victim=victim)
        with pytest.raises(ConfigError, match="cannot have the property"):
            lading.session("ann", "shop").sql(
                f"CREATE TABLE t (id BIGINT) USING iceberg TBLPROPERTIES('{name}'='{given}')"
            )
    assert CALLED == []
    assert list(victim.iterdir()) == []


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A table in a bucket of its owner, who can write its metadata by hand."""

    lading: LocalLading
    client: Any
    bucket: str
    files: Path

    def run(self, content: str) -> None:
        (self.files / f"{len(list(self.files.iterdir()))}.csv").write_text(f"id\n{content}\n")
        self.lading.run()

    def tamper(self, change: Callable[[dict[str, Any]], None]) -> None:
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix="t/metadata/")["Contents"]
        newest = max(item["Key"] for item in listed if item["Key"].endswith(".metadata.json"))
        metadata = json.loads(self.client.get_object(Bucket=self.bucket, Key=newest)["Body"].read())
        change(metadata)
        self.client.put_object(Bucket=self.bucket, Key=newest, Body=json.dumps(metadata).encode())


@pytest.fixture
def scene(s3: S3Server, tmp_path: Path) -> Any:
    files = tmp_path / "in"
    files.mkdir()
    bucket = s3.make_bucket()
    keys = {"aws_access_key_id": secret("access"), "aws_secret_access_key": secret("key")}
    given = {
        "s3.endpoint": s3.endpoint,
        "s3.region": "us-east-1",
        "s3.access_key": keys["aws_access_key_id"],
        "s3.secret_key": keys["aws_secret_access_key"],
        "use_path_style": "true",
    }
    reach = ", ".join(f"'{name}'='{value}'" for name, value in given.items())
    source = f'FILE("uri"="{files}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    with LocalLading(tmp_path / "home", allow_private_endpoints="true") as lading:
        lading.sql("CREATE DATABASE shop; CREATE USER ann; GRANT ADMIN ON shop TO ann; USE shop")
        ann = lading.session("ann", "shop")
        ann.sql(f"CREATE TABLE t (id BIGINT) USING iceberg LOCATION 's3://{bucket}/t' TBLPROPERTIES({reach})")
        lading.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t SELECT id FROM {source}")
        client = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **keys)
        made = Scene(lading=lading, client=client, bucket=bucket, files=files)
        made.run("1")
        yield made
        client.close()


def test_metadata_names_no_classes(scene: Scene) -> None:
    CALLED.clear()
    scene.tamper(lambda metadata: metadata["properties"].update({"write.py-location-provider.impl": HERE}))
    scene.run("2")
    with pytest.raises(TableError, match="names a Python class"):
        scene.lading.catalog.open_table("shop", "t")
    assert CALLED == []


def test_metadata_chooses_no_file_access(scene: Scene) -> None:
    CALLED.clear()
    scene.tamper(lambda metadata: metadata["properties"].update({"s3.endpoint": "http://127.0.0.1:9"}))
    assert scene.lading.catalog.open_table("shop", "t").scan().num_rows == 1


def test_a_table_in_a_bucket_is_not_on_this_machine(scene: Scene, tmp_path: Path) -> None:
    """Its owner could have had files of other tables read, and new files written anywhere."""
    place = tmp_path / "victim"
    scene.tamper(lambda metadata: metadata.update({"location": f"file://{place}"}))
    scene.run("2")
    with pytest.raises(StorageError, match="not a place that it may name"):
        scene.lading.catalog.open_table("shop", "t")
    assert not place.exists()


def test_old_metadata_that_is_deleted_is_in_the_bucket(scene: Scene, tmp_path: Path) -> None:
    """A commit deletes metadata files that are too old: by the names that the newest one gives."""
    victim = tmp_path / "victim.json"
    victim.write_text("kept")

    def change(metadata: dict[str, Any]) -> None:
        metadata["properties"]["write.metadata.previous-versions-max"] = "1"
        entry = {"metadata-file": f"file://{victim}", "timestamp-ms": 1}
        metadata["metadata-log"] = [entry, *metadata["metadata-log"]]

    scene.tamper(change)
    scene.run("2")
    assert victim.read_text() == "kept"


def test_manifests_of_this_machine_are_not_read(scene: Scene, tmp_path: Path) -> None:
    secret_file = tmp_path / "list.avro"
    secret_file.write_bytes(b"not for ann")

    def change(metadata: dict[str, Any]) -> None:
        for snapshot in metadata["snapshots"]:
            snapshot["manifest-list"] = f"file://{secret_file}"

    scene.tamper(change)
    with pytest.raises(LadingError, match="not a place that it may name"):
        scene.lading.catalog.open_table("shop", "t").files()


@pytest.mark.parametrize(
    ("uri", "with_keys", "with_identity"),
    [
        ("s3://b/t", True, True),
        ("s3a://b/t/data/1.parquet", True, True),
        ("s3://b/t2/data/1.parquet", True, False),
        ("s3://other/t/1.parquet", True, False),
        ("s3://b/t/../u/1.parquet", False, False),
        ("file:///etc/passwd", False, False),
        ("/etc/passwd", False, False),
        ("gs://b/t", False, False),
    ],
)
def test_what_a_table_in_a_bucket_may_name(uri: str, with_keys: bool, with_identity: bool) -> None:
    """The service's own identity reads more than the owner of the table may."""
    assert is_allowed(uri, "s3://b/t", has_own_keys=True) is with_keys
    assert is_allowed(uri, "s3://b/t", has_own_keys=False) is with_identity
    assert is_allowed(uri, "/home/warehouse/t", has_own_keys=False)
