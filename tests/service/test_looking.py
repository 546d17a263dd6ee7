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

from lading.errors import ConfigError, ConflictError, DeniedError
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
    pq.write_table(pa.table({"n": pa.array([1], pa.int32()), "t": ["x"]}), tmp_path / "in" / "a.parquet")
    found = lading.sql(f'DESCRIBE FROM FILE("uri"="{tmp_path}/in/*.parquet")')[0].rows
    assert found[:2] == (("n", "int", "Yes", 1), ("t", "string", "Yes", "x"))


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
