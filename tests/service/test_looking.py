"""A look at files before anything is loaded, and tables made from what is seen. No Spark is started."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lading.errors import ConfigError, ConflictError, DeniedError, NotSupportedError, SqlError
from lading.service.facade import Lading
from lading.testing.marked import secret
from tests.console.local import LocalLading


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as made:
        yield made


def test_a_messy_csv_is_seen_as_it_is(lading: Lading, tmp_path: Path) -> None:
    text = 'id;name;price;day;code\n1;"Smith; John";2.50;2026-01-01;007\n2;x;3;2026-01-02;010\n'
    (tmp_path / "in" / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    took = []
    for _ in range(3):
        began = time.monotonic()
        result = lading.sql(f'DESCRIBE FROM FILE("uri"="{tmp_path}/in/*")')[0]
        took.append(time.monotonic() - began)
    assert min(took) < 1
    assert result.rows[:5] == (
        ("id", "bigint", "Yes", "1"),
        ("name", "string", "Yes", "Smith; John"),
        ("price", "double", "Yes", "2.50"),
        ("day", "date", "Yes", "2026-01-01"),
        ("code", "string", "Yes", "007"),
    )
    assert {row[0]: row[3] for row in result.rows[5:]} == {
        "(format)": "csv_with_names",
        "(column_separator)": ";",
        "(enclose)": '"',
    }
    rows = lading.sql(f'SELECT * FROM FILE("uri"="{tmp_path}/in/*") LIMIT 1')[0]
    assert (rows.columns, rows.rows) == (
        ("id", "name", "price", "day", "code"),
        (("1", "Smith; John", "2.50", "2026-01-01", "007"),),
    )


@pytest.mark.parametrize(("kind", "codec"), [("gz", "gzip"), ("zstd", "zstd"), ("bz2", "bz2"), ("lz4", "lz4")])
def test_a_file_that_is_packed_and_not_named_so_is_seen_unpacked(
    lading: Lading, tmp_path: Path, kind: str, codec: str
) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "in" / "a.csv"), codec) as file:
        file.write("id,city\n1,essen\n2,köln\n".encode())
    source = f'FILE("uri"="{tmp_path}/in/*.csv")'
    found = lading.sql(f"DESCRIBE FROM {source}")[0]
    assert found.rows[:2] == (("id", "bigint", "Yes", "1"), ("city", "string", "Yes", "essen"))
    settings = {row[0]: row[3] for row in found.rows[2:]}
    assert settings == {
        "(format)": "csv_with_names",
        "(column_separator)": ",",
        "(compress_type)": kind,
    }
    assert lading.sql(f"SELECT * FROM {source} LIMIT 5")[0].rows == (("1", "essen"), ("2", "köln"))
    # What was found is what a job needs.
    lading.sql(f"CREATE TABLE t USING delta AS SCHEMA OF {source}")
    told = ", ".join(f'"{name[1:-1]}"="{value}"' for name, value in settings.items())
    lading.sql(
        'CREATE JOB j PROPERTIES("file.settle_seconds"="0") ON STREAMING DO INSERT INTO t SELECT * '
        f'FROM FILE("uri"="{tmp_path}/in/*.csv", {told})'
    )
    lading.run()
    assert DeltaTable(lading.catalog.open_table("default", "t").location).to_pyarrow_table().num_rows == 2


def test_a_row_that_does_not_fit_the_others_is_told_with_its_place(lading: Lading, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("id,name,at\n1,x,2\n2,y\n")
    seen = lading.sql(f'DESCRIBE FROM FILE("uri"="{tmp_path}/in/*")')[0]
    assert f"1 bad row: {tmp_path}/in/a.csv, row 2: Column count mismatch" in seen.message


def test_json_and_parquet_are_seen_with_their_types(lading: Lading, tmp_path: Path) -> None:
    rows = [{"id": 1, "a": {"b": [1]}}, {"id": 2, "x": 1.5, "ok": True}]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = lading.sql(f'DESCRIBE FROM FILE("uri"="{tmp_path}/in/*.json")')[0].rows
    assert found[:4] == (
        ("id", "bigint", "Yes", 1),
        ("a", "string", "Yes", '{"b":[1]}'),
        ("x", "double", "Yes", 1.5),
        ("ok", "boolean", "Yes", True),
    )
    columns = {"n": pa.array([1], pa.int32()), "t": ["x"], "who": [{"name": "ann", "tags": ["a", None]}]}
    pq.write_table(pa.table(columns), tmp_path / "in" / "a.parquet")
    found = lading.sql(f'DESCRIBE FROM FILE("uri"="{tmp_path}/in/*.parquet")')[0].rows
    # What is nested is shown as the text that a column of the told type gets.
    who = '{"name":"ann","tags":["a",null]}'
    assert found[:3] == (("n", "int", "Yes", 1), ("t", "string", "Yes", "x"), ("who", "string", "Yes", who))
    assert lading.sql(f'SELECT * FROM FILE("uri"="{tmp_path}/in/*.parquet")')[0].rows == ((1, "x", who),)


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_a_table_is_made_from_files_and_altered(lading: Lading, tmp_path: Path, form: str) -> None:
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    lading.sql(f'CREATE TABLE t USING {form} AS SCHEMA OF FILE("uri"="{tmp_path}/in/*.csv")')
    assert list(lading.sql("DESCRIBE t")[0].rows) == [("id", "bigint", "Yes"), ("city", "string", "Yes")]
    lading.sql("ALTER TABLE t ADD COLUMN n INT AFTER id, ADD COLUMN at DATETIME COMMENT 'when' FIRST")
    names = [row[:2] for row in lading.sql("DESCRIBE t")[0].rows]
    assert [name for name, _ in names] == ["at", "id", "n", "city"]
    with pytest.raises(ConflictError, match="already has a column N"):
        lading.sql("ALTER TABLE t ADD COLUMN N INT")
    with pytest.raises(ConfigError, match="bigint cannot become int"):
        lading.sql("ALTER TABLE t MODIFY COLUMN id INT")
    if form == "iceberg":
        lading.sql("ALTER TABLE t MODIFY COLUMN n BIGINT")
        assert ("n", "bigint", "Yes") in lading.sql("DESCRIBE t")[0].rows
    else:
        with pytest.raises(ConfigError, match="in a table of this format"):
            lading.sql("ALTER TABLE t MODIFY COLUMN n BIGINT")


def test_a_job_makes_its_table_when_it_is_not_there(lading: Lading, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    create = (
        'CREATE JOB {} PROPERTIES("schema.evolution"="ADD") ON STREAMING DO CREATE TABLE IF NOT EXISTS t USING delta '
        'PARTITIONED BY (id) INSERT INTO t SELECT * FROM FILE("uri"="{}/in/*.csv", "format"="csv_with_names", '
        '"column_separator"=",")'
    )
    lading.sql(create.format("j", tmp_path))
    assert "CREATE TABLE" not in str(lading.sql("SHOW CREATE JOB j")[0].rows)
    lading.run()
    lading.sql(create.format("k", tmp_path))
    table = lading.catalog.open_table("default", "t")
    assert table.scan().to_pylist() == [{"id": 1, "city": "essen"}]
    assert table.writer_spec().partition_by == (("id", "identity"),)
    (tmp_path / "in" / "b.csv").write_text("city,id,extra\nulm,2,x\n")
    lading.run()
    table = lading.catalog.open_table("default", "t")
    assert sorted(table.scan().to_pylist(), key=str) == [
        {"id": 1, "city": "essen", "extra": None},
        {"id": 1, "city": "essen", "extra": None},
        {"id": 2, "city": "ulm", "extra": "x"},
        {"id": 2, "city": "ulm", "extra": "x"},
    ]


FROM_CSV = 'FROM FILE("uri"="{}/in/*.csv", "format"="csv_with_names"{})'
MAKES = "CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS t USING delta INSERT INTO t SELECT {} {}"


def test_a_job_that_is_refused_leaves_no_table_behind(lading: Lading, tmp_path: Path) -> None:
    """The error says that nothing was changed; the corrected statement met a table of the wrong columns."""
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    with pytest.raises(SqlError, match=r'Nothing was changed.*add "column_separator" = ","'):
        lading.sql(MAKES.format("*", FROM_CSV.format(tmp_path, "")))
    assert lading.sql("SHOW TABLES")[0].rows == ()
    lading.sql(MAKES.format("*", FROM_CSV.format(tmp_path, ', "column_separator"=","')))
    lading.run()
    assert lading.catalog.open_table("default", "t").scan().to_pylist() == [{"id": 1, "city": "essen"}]


def test_a_refused_job_leaves_a_table_alone_that_was_there(lading: Lading, tmp_path: Path) -> None:
    """Made by somebody else in the folder of the table, and with rows in it."""
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    lading.sql("CREATE TABLE t (id BIGINT, city STRING) USING delta")
    place = tmp_path / "lake"
    write_deltalake(place, pa.table({"id": pa.array([7], pa.int64()), "city": ["ulm"]}))
    refused = MAKES.format("id", FROM_CSV.format(tmp_path, ', "column_separator"=","'))
    with pytest.raises(SqlError):
        lading.sql(refused)
    with pytest.raises(SqlError):
        lading.sql(refused.replace("t USING delta", f"u USING delta LOCATION '{place}'").replace("INTO t", "INTO u"))
    assert ("t",) in lading.sql("SHOW TABLES")[0].rows
    assert DeltaTable(place).to_pyarrow_table().to_pylist() == [{"id": 7, "city": "ulm"}]


@pytest.mark.parametrize("given", ["", '"uri"=""', '"uri"="  "', '"format"="csv"'])
def test_without_a_uri_nothing_is_read(lading: Lading, given: str) -> None:
    """Least of all the folder that the service happens to run in."""
    for text in (f"SELECT * FROM FILE({given}) LIMIT 1", f"DESCRIBE FROM FILE({given})"):
        with pytest.raises(SqlError, match="uri is a required property"):
            lading.sql(text)


def test_a_look_at_nothing_says_where_it_looked(lading: Lading, tmp_path: Path) -> None:
    for statement in ("DESCRIBE FROM", "SELECT * FROM"):
        seen = lading.sql(f'{statement} FILE("uri"="{tmp_path}/inn/*.csv")')[0]
        assert (seen.rows, seen.message) == ((), f"no file matches {tmp_path}/inn/*.csv")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("SELECT * FROM FILE('in/*.csv')", "expected \"uri\" = 'in/*.csv'"),
        ("SELECT * FROM 'in/a.csv'", 'SELECT * FROM FILE("uri" = "…") LIMIT 10'),
        ("SELECT id, a.b FROM FILE('uri'='in/*.csv') LIMIT 5", "Write SELECT * FROM FILE(…) LIMIT 10"),
        ("SELECT * FROM FILE('uri'='in/*.csv') WHERE id = 1", "Write SELECT * FROM FILE(…) LIMIT 10"),
        ("DESCRIBE FILE('uri'='in/*.csv')", "Write DESCRIBE FROM FILE(…)"),
        ("SHOW COLUMNS FROM t", "DESCRIBE db.table shows the columns"),
        ("SHOW CREATE TABLE t", "DESCRIBE db.table shows its columns"),
        ("SHOW ERRORS FOR j", "SHOW LOAD ERRORS FOR job shows the bad rows"),
        ("EXPLAIN SELECT 1", "EXPLAIN is for loads"),
        ("HELP", "help is a word of the shell"),
        (
            "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE('uri'='in/*')",
            "DESCRIBE FROM FILE(…) finds out which",
        ),
    ],
)
def test_what_people_type_first_is_answered_with_what_to_type(lading: Lading, typed: str, said: str) -> None:
    lading.sql("CREATE TABLE t (id BIGINT) USING delta")
    with pytest.raises((SqlError, NotSupportedError)) as caught:
        lading.sql(typed)
    assert said in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def test_only_who_may_load_may_look(lading: Lading, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    lading.sql("CREATE TABLE t (id BIGINT) USING delta")
    lading.sql(f"CREATE USER anna IDENTIFIED BY '{secret('anna')}'; GRANT LOAD ON default.t TO anna")
    lading.sql(f"CREATE USER jack IDENTIFIED BY '{secret('jack')}'")
    look = f'SELECT * FROM FILE("uri"="{tmp_path}/in/*")'
    with pytest.raises(DeniedError, match="files of the machine"):
        lading.session("anna").sql(look)
    with pytest.raises(DeniedError, match="LOAD command denied"):
        lading.session("jack").sql(look)
    with pytest.raises(DeniedError, match="ADMIN command denied"):
        lading.session("anna").sql("ALTER TABLE t ADD COLUMN x INT")
