"""Beside a writer that puts log entries without a condition, as Spark's own log store for S3 does."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.model.s3_access import S3Access
from lading.storage.libraries import delta_options
from lading.storage.store import ObjectStore, open_store
from lading.tables.delta.actions import LOG, entry_key
from tests.console.local import LocalLading
from tests.tables.s3_server import S3Server

FIRST = pa.table({"id": pa.array([0], pa.int64()), "city": ["a"]})


class BlindWriter:
    """Looks which version is next, and then puts it: in between somebody else may have."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        names = (key.removeprefix(f"{LOG}/").removesuffix(".json") for key in storage.keys(f"{LOG}/0"))
        self.version = max(int(name) for name in names if name.isdigit()) + 1

    def put(self, number: int) -> None:
        filesystem, root = self._storage.arrow()
        path, rows = f"part-{secrets.token_hex(8)}.parquet", pa.table({"id": [number], "city": ["blind"]})
        with filesystem.open_output_stream(f"{root}/{path}") as sink:
            pq.write_table(rows, sink)
        add: dict[str, object] = {
            "path": path,
            "partitionValues": {},
            "size": self._storage.sizes([path])[0],
            "dataChange": True,
        }
        add |= {"modificationTime": int(time.time() * 1000), "stats": '{"numRecords":1}'}
        actions = [{"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "WRITE"}}, {"add": add}]
        self._storage.put(entry_key(self.version), "\n".join(map(json.dumps, actions)).encode())


class Scene:
    """A job that loads into a table of others."""

    def __init__(self, path: Path, place: str, options: S3Access, reach: str) -> None:
        self.path, self.place, self.options = path, place, options
        self.inbox = path / "in"
        self.inbox.mkdir()
        deltalake.write_deltalake(place, FIRST, storage_options=delta_options(options))
        self.storage = open_store(place, options)
        self.lading = LocalLading(path / "home", user="tester")
        self.lading.sql(
            f"CREATE TABLE t USING delta LOCATION '{place}' {reach};"
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="{self.inbox}/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )

    def put(self, *ids: int) -> None:
        rows = "".join(f"{number},essen\n" for number in ids)
        (self.inbox / f"{ids[0]:05d}.csv").write_text(f"id,city\n{rows}")

    def load(self, *ids: int) -> None:
        self.put(*ids)
        record = self.lading.run()["j"]
        assert record.state.value == "RUNNING", record.reason

    def ids(self) -> list[int]:
        table = deltalake.DeltaTable(self.place, storage_options=delta_options(self.options))
        return sorted(pa.table(table.to_pyarrow_dataset().to_table())["id"].to_pylist())

    def audit(self) -> list[str]:
        rows = self.lading.sql("SHOW LOAD AUDIT FOR j")[-1].rows
        return [str(row[4]) for row in rows if row[2] == "COMMIT AGAIN"]

    def restart(self) -> None:
        self.lading.close()
        self.lading = LocalLading(self.path / "home", user="tester")


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.slow)])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    made = _in_a_bucket(tmp_path, request.getfixturevalue("s3")) if request.param == "s3" else _on_disk(tmp_path)
    yield made
    made.lading.close()


def _on_disk(path: Path) -> Scene:
    return Scene(path, str(path / "lake"), S3Access(), "")


def _in_a_bucket(path: Path, s3: S3Server) -> Scene:
    options = s3.options
    reach = (
        f"TBLPROPERTIES ('s3.endpoint'='{s3.endpoint}', 's3.region'='us-east-1', 'use_path_style'='true', "
        f"'s3.access_key'='{options.access_key}', 's3.secret_key'='{options.secret_key}')"
    )
    return Scene(path, f"s3://{s3.make_bucket()}/t", options, reach)


def test_in_a_bucket_a_commit_that_is_replaced_comes_back_once(tmp_path: Path, s3: S3Server) -> None:
    scene = _in_a_bucket(tmp_path, s3)
    blind = BlindWriter(scene.storage)
    scene.load(1, 2)
    blind.put(100)
    scene.load(3)
    assert scene.ids() == [0, 1, 2, 3, 100]
    assert len(scene.audit()) == 1
    scene.lading.close()


def test_the_newest_commit_is_replaced_and_comes_back_once(scene: Scene) -> None:
    scene.load(1)
    blind = BlindWriter(scene.storage)
    scene.load(2, 3)
    blind.put(100)
    assert scene.ids() == [0, 1, 100]
    scene.load(4)
    assert scene.ids() == [0, 1, 2, 3, 4, 100]
    (said,) = scene.audit()
    assert "(2 rows): committed again" in said
    assert scene.lading.verify("j").is_clean


def test_it_is_seen_without_new_data(scene: Scene) -> None:
    blind = BlindWriter(scene.storage)
    scene.load(1)
    blind.put(100)
    scene.lading.run()
    assert scene.ids() == [0, 1, 100]
    scene.lading.run()
    assert len(scene.audit()) == 1


def test_a_commit_below_later_ones_is_replaced(scene: Scene) -> None:
    blind = BlindWriter(scene.storage)
    scene.load(1, 2)
    scene.load(3)
    scene.load(4)
    blind.put(100)
    assert scene.ids() == [0, 3, 4, 100]
    scene.load(5)
    assert scene.ids() == [0, 1, 2, 3, 4, 5, 100]
    scene.restart()
    scene.load(6)
    assert scene.ids() == [0, 1, 2, 3, 4, 5, 6, 100]
    assert len(scene.audit()) == 1


def test_others_have_gone_on_above_the_entry_that_was_replaced(scene: Scene) -> None:
    blind = BlindWriter(scene.storage)
    scene.load(1)
    blind.put(100)
    BlindWriter(scene.storage).put(101)
    scene.load(2)
    assert scene.ids() == [0, 1, 2, 100, 101]


def test_it_is_replaced_after_the_service_has_ended(scene: Scene) -> None:
    scene.load(1)
    blind = BlindWriter(scene.storage)
    scene.load(2)
    scene.lading.close()
    blind.put(100)
    scene.lading = LocalLading(scene.path / "home", user="tester")
    scene.load(3)
    assert scene.ids() == [0, 1, 2, 3, 100]
    assert len(scene.audit()) == 1


def test_when_its_files_are_gone_too_the_job_stops_and_can_load_again(scene: Scene) -> None:
    scene.load(1)
    blind = BlindWriter(scene.storage)
    scene.load(2)
    blind.put(100)
    known = {path for path in scene.storage.keys("") if path.endswith(".parquet")}
    table = deltalake.DeltaTable(scene.place, storage_options=delta_options(scene.options))
    scene.storage.delete(known - set(pa.table(table.get_add_actions())["path"].to_pylist()))
    scene.put(3)
    record = scene.lading.run()["j"]
    assert record.state.value == "PAUSED"
    assert "ACCEPT ROLLBACK" in str(record.reason)
    scene.lading.sql("ACCEPT ROLLBACK OF JOB j LOAD AGAIN; RESUME JOB WHERE jobName = 'j'")
    scene.lading.run()
    assert scene.ids() == [0, 1, 2, 3, 100]


@pytest.mark.parametrize("is_rewritten", [True, False])
def test_rows_that_others_have_taken_on_are_not_added_again(tmp_path: Path, is_rewritten: bool) -> None:
    """A compaction or DELETE above the commit has its rows, or took them out: added again they would be there twice."""
    scene = _on_disk(tmp_path)
    scene.load(1)
    blind = BlindWriter(scene.storage)
    scene.load(2, 3)
    if is_rewritten:
        (told,) = scene.lading.sql("ADMIN COMPACT TABLE t")[-1].rows
        assert told[7] == "compacted"
    else:
        deltalake.DeltaTable(scene.place).delete("id = 2")
    there = scene.ids()
    blind.put(100)
    assert scene.ids() == sorted([*there, 100])
    scene.load(4)
    assert scene.ids() == sorted([*there, 4, 100])
    assert scene.lading.verify("j").is_clean
    scene.lading.close()


def test_below_later_commits_neither(tmp_path: Path) -> None:
    scene = _on_disk(tmp_path)
    blind = BlindWriter(scene.storage)
    scene.load(1, 2)
    deltalake.DeltaTable(scene.place).delete("id = 2")
    scene.load(3)
    blind.put(100)
    scene.load(4)
    assert scene.ids() == [0, 1, 3, 4, 100]
    assert scene.audit() == []
    scene.lading.close()


def test_below_later_commits_a_loss_is_said(tmp_path: Path) -> None:
    """The head goes on above it, so nothing else would."""
    scene = _on_disk(tmp_path)
    blind = BlindWriter(scene.storage)
    scene.load(1, 2)
    known = set(pa.table(deltalake.DeltaTable(scene.place).get_add_actions())["path"].to_pylist())
    scene.load(3)
    blind.put(100)
    left = set(pa.table(deltalake.DeltaTable(scene.place).get_add_actions())["path"].to_pylist())
    scene.storage.delete(known - left)
    scene.load(4)
    assert scene.ids() == [0, 3, 4, 100]
    (said,) = scene.audit()
    assert "(2 rows): The staged file" in said
    assert "the rows are lost" in said
    assert not scene.lading.verify("j").is_clean
    scene.lading.close()
