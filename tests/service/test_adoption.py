"""CREATE TABLE … USING delta LOCATION without columns: the table that is there is taken as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pytest

from lading.errors import ConfigError, ConflictError, LadingError, SqlError, TableError, TableNotFoundError
from lading.service.recover import recover
from lading.storage.libraries import delta_options
from lading.storage.store import open_store
from lading.tables.maintenance import CarePolicy
from tests.console.local import LocalLading
from tests.tables.s3_server import S3Server

ROWS = pa.table({"id": pa.array([0], pa.int64()), "city": ["a"]})


class Desk:
    def __init__(self, path: Path) -> None:
        self.path, self.place = path, path / "lake" / "t"
        (path / "in").mkdir()
        deltalake.write_deltalake(self.place, ROWS, configuration={"delta.checkpointInterval": "100"})
        self.lading = LocalLading(path / "home", user="tester")

    def sql(self, text: str) -> list[tuple[object, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def adopt(self, more: str = "") -> None:
        self.sql(f"CREATE TABLE t USING delta LOCATION '{self.place}' {more}")

    def job(self) -> None:
        self.sql(
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="{self.path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )

    def load(self, number: int) -> None:
        (self.path / "in" / f"{number}.csv").write_text(f"id,city\n{number},essen\n")
        record = self.lading.run()["j"]
        assert record.state.value == "RUNNING", record.reason

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.place)): path.read_bytes() for path in self.place.rglob("*") if path.is_file()
        }

    def ids(self) -> list[int]:
        return sorted(pl.read_delta(str(self.place))["id"].to_list())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.lading.close()


def test_a_table_is_adopted_loaded_forgotten_and_adopted_again(desk: Desk) -> None:
    before = desk.files()
    desk.adopt()
    assert desk.files() == before
    assert desk.sql("DESCRIBE t") == [("id", "bigint", "Yes"), ("city", "string", "Yes")]
    desk.job()
    desk.load(1)
    assert desk.ids() == [0, 1]
    assert "_lading/table.json" not in desk.files()
    with pytest.raises(ConfigError, match="is loaded by j"):
        desk.sql("DROP TABLE t PURGE")
    desk.sql("DROP JOB WHERE jobName = 'j'")
    loaded = desk.files()
    desk.sql("DROP TABLE t")
    assert desk.files() == loaded
    assert desk.sql("SHOW TABLES") == []
    desk.adopt()
    assert desk.ids() == [0, 1]


def test_a_null_for_a_column_that_must_not_be_null_is_a_bad_row(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "n"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string())])
    deltalake.DeltaTable.create(str(place), schema)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n,ulm\n2,bonn\n")
    with LocalLading(tmp_path / "home", user="tester") as lading:
        lading.sql(f"CREATE TABLE n USING delta LOCATION '{place}'")
        lading.sql(
            'CREATE JOB j PROPERTIES("session.insert_max_filter_ratio" = "0.9", '
            '"session.enable_insert_strict" = "false") '
            f'ON STREAMING DO INSERT INTO n SELECT * FROM FILE("uri"="{tmp_path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )
        assert lading.run()["j"].state.value == "RUNNING"
        totals = lading.job("j").totals
        assert totals is not None
        assert (totals.rows.loaded, totals.rows.error) == (2, 1)
    assert sorted(pl.read_delta(str(place))["id"].to_list()) == [1, 2]


def test_purge_deletes_what_the_table_knows_and_nothing_else(desk: Desk) -> None:
    desk.adopt()
    desk.job()
    desk.load(1)
    desk.sql("DROP JOB WHERE jobName = 'j'")
    (desk.place / "notes.txt").write_text("somebody's")
    (desk.place / "orphan.parquet").write_text("somebody's")
    desk.sql("DROP TABLE t PURGE")
    assert sorted(desk.files()) == ["notes.txt", "orphan.parquet"]
    assert desk.sql("SHOW TABLES") == []


def test_columns_that_are_those_of_the_table_are_taken(desk: Desk) -> None:
    desk.sql(f"CREATE TABLE t (id BIGINT, city VARCHAR(10)) USING delta LOCATION '{desk.place}'")
    assert desk.lading.catalog.entry("default", "t").is_adopted
    assert "_lading/table.json" not in desk.files()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("(id BIGINT)", "column 2 is pyarrow.Field<city: string> there, and none"),
        ("(id INT, city STRING)", "column 1"),
        ("(id BIGINT NOT NULL, city STRING)", "column 1"),
        ("(city STRING, id BIGINT)", "column 1"),
    ],
)
def test_other_columns_are_refused(desk: Desk, columns: str, why: str) -> None:
    before = desk.files()
    with pytest.raises(ConflictError, match="not the one that the statement describes") as caught:
        desk.sql(f"CREATE TABLE t {columns} USING delta LOCATION '{desk.place}'")
    assert why in caught.value.what
    assert desk.sql("SHOW TABLES") == []
    assert desk.files() == before


def test_other_partitions_are_refused(desk: Desk) -> None:
    with pytest.raises(ConflictError, match="partitioned by nothing, and by city"):
        desk.sql(f"CREATE TABLE t (id BIGINT, city STRING) USING delta PARTITIONED BY (city) LOCATION '{desk.place}'")


def test_what_cannot_be_adopted_is_refused_and_leaves_nothing(desk: Desk) -> None:
    other = desk.path / "lake" / "ice"
    (other / "metadata").mkdir(parents=True)
    (other / "metadata" / "v1.metadata.json").write_text("{}")
    desk.adopt()
    refused: list[tuple[str, type[LadingError], str]] = [
        ("USING delta", SqlError, "no columns and no LOCATION"),
        (f"USING delta LOCATION '{desk.path}/nowhere'", TableNotFoundError, "There is no Delta table at"),
        (f"USING delta LOCATION '{other}'", TableError, "of the format iceberg and not delta"),
        (f"USING iceberg LOCATION '{other}'", ConfigError, "its catalog says"),
        (f"USING delta LOCATION '{desk.place}'", ConflictError, "already another table"),
        (f"USING delta LOCATION '{desk.place}/'", ConflictError, "already another table"),
        (f"USING delta LOCATION 'file://{desk.place}'", ConflictError, "already another table"),
        (f"USING delta LOCATION '{other}' TBLPROPERTIES ('delta.appendOnly'='true')", ConfigError, "would change it"),
        (f"USING delta LOCATION '{other}' COMMENT 'x'", ConfigError, "would change it"),
    ]
    for statement, error, words in refused:
        with pytest.raises(error, match=words):
            desk.sql(f"CREATE TABLE u {statement}")
    deltalake.write_deltalake(desk.place / "inside", ROWS)
    with pytest.raises(ConflictError, match="already files of another table"):
        desk.sql(f"CREATE TABLE u USING delta LOCATION '{desk.place}/inside'")
    assert desk.sql("SHOW TABLES") == [("t",)]
    assert not (desk.path / "nowhere").exists()


def test_the_log_of_an_adopted_table_is_left_to_its_owner(desk: Desk) -> None:
    deltalake.DeltaTable(desk.place).alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    desk.adopt()
    desk.job()
    desk.load(1)
    lake = desk.lading.catalog.open_table("default", "t")
    (job_id,) = lake.job_ids()
    before = {name for name in desk.files() if name.startswith("_delta_log/0")}
    lake.look_after(job_id, CarePolicy(), datetime(2100, 1, 1, tzinfo=UTC))
    # Its property says that checkpoints are made; nobody said that entries are removed.
    made = {name for name in desk.files() if name.startswith("_delta_log/0")} - before
    assert [name.partition(".")[2] for name in made] == ["checkpoint.parquet"]
    assert before <= desk.files().keys()


def test_a_lost_store_gets_an_adopted_table_and_its_job_back(desk: Desk) -> None:
    desk.adopt()
    desk.job()
    desk.load(1)
    desk.lading.close()
    for path in (desk.path / "home").glob("lading.db*"):
        path.unlink()
    desk.lading = LocalLading(desk.path / "home", user="tester")
    told = [(finding.what, finding.fate) for finding in recover(desk.lading, [f"default.t={desk.place}"])]
    assert told == [("table", "recovered"), ("job", "recovered")]
    assert desk.lading.catalog.entry("default", "t").is_adopted
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.load(2)
    assert desk.ids() == [0, 1, 2]


def test_in_a_bucket(tmp_path: Path, s3: S3Server) -> None:
    place, options = f"s3://{s3.make_bucket()}/lake/t", s3.options
    deltalake.write_deltalake(place, ROWS, storage_options=delta_options(options))
    storage = open_store(place, options)
    before = list(storage.keys(""))
    reach = (
        f"TBLPROPERTIES ('s3.endpoint'='{s3.endpoint}', 's3.region'='us-east-1', 'use_path_style'='true', "
        f"'s3.access_key'='{options.access_key}', 's3.secret_key'='{options.secret_key}')"
    )
    with LocalLading(tmp_path / "home", user="tester") as lading:
        with pytest.raises(TableNotFoundError):
            lading.sql(f"CREATE TABLE t USING delta LOCATION '{place}x' {reach}")
        assert not list(lading.sql("SHOW TABLES")[-1].rows)
        lading.sql(f"CREATE TABLE t USING delta LOCATION '{place}' {reach}")
        assert list(storage.keys("")) == before
        lading.sql("DROP TABLE t")
        assert list(storage.keys("")) == before
        lading.sql(f"CREATE TABLE t USING delta LOCATION '{place}' {reach}; DROP TABLE t PURGE")
        assert list(storage.keys("")) == []


@pytest.mark.parametrize("written", ["s3a://{}/lake/t", "s3://{}//lake/t", "s3n://{}/lake/t/"])
def test_in_a_bucket_one_place_has_many_names(tmp_path: Path, s3: S3Server, written: str) -> None:
    """Who may read a table could adopt it once more by another one, and purge it."""
    bucket, options = s3.make_bucket(), s3.options
    place = f"s3://{bucket}/lake/t"
    deltalake.write_deltalake(place, ROWS, storage_options=delta_options(options))
    reach = (
        f"TBLPROPERTIES ('s3.endpoint'='{s3.endpoint}', 's3.region'='us-east-1', 'use_path_style'='true', "
        f"'s3.access_key'='{options.access_key}', 's3.secret_key'='{options.secret_key}')"
    )
    with LocalLading(tmp_path / "home", user="tester") as lading:
        lading.sql(f"CREATE TABLE t USING delta LOCATION '{place}' {reach}")
        with pytest.raises(ConflictError, match="already another table"):
            lading.sql(f"CREATE TABLE u USING delta LOCATION '{written.format(bucket)}' {reach}")
        deltalake.write_deltalake(f"{place}/inside", ROWS, storage_options=delta_options(options))
        with pytest.raises(ConflictError, match="already files of another table"):
            lading.sql(f"CREATE TABLE u USING delta LOCATION '{written.format(bucket).rstrip('/')}/inside' {reach}")


def test_a_new_table_lies_neither_inside_nor_around_tables_that_others_made(desk: Desk) -> None:
    """Each would take the files of the other for orphans."""
    deltalake.write_deltalake(desk.path / "lake" / "theirs", ROWS)
    (desk.path / "metadata").mkdir()
    (desk.path / "metadata" / "notes.txt").write_text("no table")
    paimon = desk.path / "warm" / "house" / "schema"
    paimon.mkdir(parents=True)
    (paimon / "schema-0").write_text("{}")
    iceberg = desk.path / "ice" / "t" / "metadata"
    iceberg.mkdir(parents=True)
    (iceberg / "00001-a.metadata.json").write_text("{}")
    inside = [desk.path / "lake" / "theirs" / "a" / "b", paimon.parent / "x", iceberg.parent / "data" / "x"]
    around = [desk.path / "lake", desk.path / "warm", desk.path / "ice"]
    for place in (*inside, *around):
        with pytest.raises(ConflictError, match="already files of another table"):
            desk.sql(f"CREATE TABLE u (id INT) USING delta LOCATION '{place}'")
    for at, beside in enumerate((desk.path / "lake" / "ours", desk.path / "metadata" / "ours")):
        desk.sql(f"CREATE TABLE ours{at} (id INT) USING delta LOCATION '{beside}'")
    assert not any(place.exists() for place in inside)


def test_a_new_table_in_a_bucket_lies_not_inside_of_a_table_of_others(tmp_path: Path, s3: S3Server) -> None:
    bucket, options = s3.make_bucket(), s3.options
    deltalake.write_deltalake(f"s3://{bucket}/lake/t", ROWS, storage_options=delta_options(options))
    reach = (
        f"TBLPROPERTIES ('s3.endpoint'='{s3.endpoint}', 's3.region'='us-east-1', 'use_path_style'='true', "
        f"'s3.access_key'='{options.access_key}', 's3.secret_key'='{options.secret_key}')"
    )
    with LocalLading(tmp_path / "home", user="tester") as lading:
        for place in ("lake/t/inside", "lake", ""):
            with pytest.raises(ConflictError, match="already files of another table"):
                lading.sql(f"CREATE TABLE u (id INT) USING delta LOCATION 's3://{bucket}/{place}' {reach}")
        lading.sql(f"CREATE TABLE u (id INT) USING delta LOCATION 's3://{bucket}/lake/u' {reach}")


def test_purge_leaves_tables_alone_that_lie_inside(desk: Desk) -> None:
    """Deletion vectors have names that tell nobody whose they are, and a log can name what it likes."""
    inside = desk.place / "sub"
    deltalake.write_deltalake(inside, ROWS)
    (inside / "deletion_vector_12345678-1234-1234-1234-123456789abc.bin").write_bytes(b"somebody's")
    before = {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()}
    (part,) = inside.glob("*.parquet")
    add = {"path": f"sub/{part.name}", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    (desk.place / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": add}))
    desk.adopt()
    desk.sql("DROP TABLE t PURGE")
    assert {path: path.read_bytes() for path in inside.rglob("*") if path.is_file()} == before
    assert {name.partition("/")[0] for name in desk.files()} == {"sub"}
