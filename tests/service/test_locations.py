"""Where CREATE TABLE … LOCATION may put a table: one place for every library that writes there, and nobody else's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from lading.errors import ConfigError, ConflictError, StorageError
from lading.service.catalog.adoption import check_free
from lading.storage.errors import DENIED, store_failed
from lading.storage.libraries import delta_options
from lading.storage.local import LocalStore
from lading.storage.store import ObjectStore, open_store
from lading.tables.registry import kind_of
from tests.console.local import LocalLading
from tests.tables.s3_server import S3Server

ROWS = pa.table({"id": pa.array([0], pa.int64())})
FORMATS = ["delta", "iceberg", "paimon"]


class Desk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lading = LocalLading(path / "home", user="tester")

    def sql(self, text: str) -> list[tuple[object, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def files(self) -> list[str]:
        found = (path for path in self.path.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if not path.is_relative_to(self.path / "home"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    made = Desk(tmp_path)
    yield made
    made.lading.close()


def reach(s3: S3Server, *, keys: bool = True) -> str:
    own = f", 's3.access_key'='{s3.options.access_key}', 's3.secret_key'='{s3.options.secret_key}'" if keys else ""
    return f"TBLPROPERTIES ('s3.endpoint'='{s3.endpoint}', 's3.region'='us-east-1', 'use_path_style'='true'{own})"


def test_a_place_in_a_bucket_that_is_read_in_two_ways_is_refused(desk: Desk, s3: S3Server) -> None:
    """Some libraries go to lake/t for each of these, where somebody else's table is, and some do not."""
    bucket = s3.make_bucket()
    deltalake.write_deltalake(f"s3://{bucket}/lake/t", ROWS, storage_options=delta_options(s3.options))
    storage = open_store(f"s3://{bucket}", s3.options)
    before = list(storage.keys(""))
    odd = ["lake//t", "lake/./t", "lake/x/../t", "lake/%2e/t", "lake/x/%2E%2e/t", "lake%2F%2Ft", "lake/t?x", "lake/t#x"]
    for place, form in itertools.product(odd, FORMATS):
        with pytest.raises(ConfigError, match="A table cannot be at"):
            desk.sql(f"CREATE TABLE u (id BIGINT) USING {form} LOCATION 's3://{bucket}/{place}' {reach(s3)}")
    with pytest.raises(ConfigError, match="names no bucket"):
        desk.sql(f"CREATE TABLE u (id BIGINT) USING delta LOCATION 's3:///lake' {reach(s3)}")
    assert list(storage.keys("")) == before
    assert desk.sql("SHOW TABLES") == []


def test_slashes_around_a_key_mean_nothing(desk: Desk, s3: S3Server) -> None:
    bucket = s3.make_bucket()
    desk.sql(f"CREATE TABLE u (id BIGINT) USING iceberg LOCATION 's3://{bucket}//lake/shop.db/u//' {reach(s3)}")
    assert all(key.startswith("lake/shop.db/u/") for key in open_store(f"s3://{bucket}", s3.options).keys(""))
    assert desk.lading.catalog.open_table("default", "u").scan().num_rows == 0
    assert desk.lading.catalog.entry("default", "u").location == f"s3://{bucket}/lake/shop.db/u"


def test_delta_in_a_bucket_is_refused_where_its_library_would_look_elsewhere(desk: Desk, s3: S3Server) -> None:
    """The first entry of a log was left there."""
    bucket = s3.make_bucket()
    with pytest.raises(ConfigError, match="percent sign"):
        desk.sql(f"CREATE TABLE u (id BIGINT) USING delta LOCATION 's3://{bucket}/a%20b' {reach(s3)}")
    assert list(open_store(f"s3://{bucket}", s3.options).keys("")) == []


def test_a_place_on_a_disk_that_is_none_is_refused(desk: Desk) -> None:
    odd = [
        "",
        "  ",
        "file://elsewhere{}/t",
        "file://{}/t?x",
        "file://{}/t#x",
        "{}/a\x01b",
        "{}/a\nb",
        "file://[{}/t",
        "s3://[b/t",
    ]
    for place, form in itertools.product(odd, FORMATS):
        with pytest.raises(ConfigError, match="A table cannot be at"):
            desk.sql(f"CREATE TABLE u (id BIGINT) USING {form} LOCATION '{place.format(desk.path)}'")
    assert desk.files() == []


def test_delta_with_a_backslash_is_refused_before_anything_is_made(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="backslash"):
        desk.sql(f"CREATE TABLE u (id BIGINT) USING delta LOCATION '{desk.path}/a\\\\b'")
    assert desk.files() == []


def test_however_a_folder_is_written_all_of_a_table_is_in_it(desk: Desk) -> None:
    """Iceberg's metadata lay in a folder whose name had the percent signs, and the card elsewhere."""
    odd = ["file://{}/my%20lake/db.db/t", "file://{}/x/%2e%2e/my lake/db.db/t", "file://localhost{}/my lake/db.db/t/"]
    for number, (place, form) in enumerate(itertools.product(odd, FORMATS)):
        before = set(desk.files())
        desk.sql(f"CREATE TABLE t{number} (id BIGINT) USING {form} LOCATION '{place.format(desk.path)}{number}'")
        made, folder = set(desk.files()) - before, f"{desk.path}/my lake/db.db/t"
        assert made
        assert all(path.startswith((f"{folder}{number}/", f"{folder}/{number}/")) for path in made)
        assert desk.lading.catalog.open_table("default", f"t{number}").scan().num_rows == 0
    with pytest.raises(ConflictError, match="already"):
        desk.sql(f"CREATE TABLE v (id BIGINT) USING delta LOCATION '{desk.path}/my lake/db.db/t1/inside'")


def test_the_identity_of_the_service_sees_tables_around_a_place(
    desk: Desk, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not be used outside of a table, and so tables around it were passed over."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options.secret_key)
    bucket = s3.make_bucket()
    deltalake.write_deltalake(f"s3://{bucket}/lake/t", ROWS, storage_options=delta_options(s3.options))
    with pytest.raises(ConflictError, match="already files of another table"):
        desk.sql(f"CREATE TABLE u (id INT) USING delta LOCATION 's3://{bucket}/lake/t/in' {reach(s3, keys=False)}")
    desk.sql(f"CREATE TABLE u (id INT) USING delta LOCATION 's3://{bucket}/lake/u' {reach(s3, keys=False)}")


def test_only_a_folder_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    """One that does not answer may have a table."""

    def open_at(place: str, why: StorageError) -> ObjectStore:
        if place != str(tmp_path / "a" / "b"):
            raise why
        return LocalStore(place)

    delta, place = kind_of("delta"), str(tmp_path / "a" / "b")
    check_free(delta, place, [], lambda at: open_at(at, store_failed(at, "no", fault=DENIED)))
    with pytest.raises(StorageError, match="no answer"):
        check_free(delta, place, [], lambda at: open_at(at, store_failed(at, "no answer")))


def test_tables_are_known_by_what_is_left_of_them(desk: Desk) -> None:
    """Logs are cleaned up, and some engines compress metadata. A file that is called like such a folder is none."""
    left = ["a/_delta_log/00000000000000000010.checkpoint.parquet", "b/metadata/v3.metadata.json.gz"]
    for name in (*left, "c/metadata", "c/_delta_log", "c/schema"):
        path = desk.path / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    for folder in ("a", "b"):
        with pytest.raises(ConflictError, match="already files of another table"):
            desk.sql(f"CREATE TABLE u (id INT) USING delta LOCATION '{desk.path}/lake/{folder}/in'")
    desk.sql(f"CREATE TABLE u (id INT) USING delta LOCATION '{desk.path}/lake/c/in'")
