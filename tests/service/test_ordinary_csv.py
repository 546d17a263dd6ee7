"""Ordinary CSV files, loaded as a newcomer would type it. No Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from lading.errors import LadingError, SqlError
from lading.model.row_formats import CsvOptions
from lading.service.facade import Lading
from lading.sources.files.blocks import Lines
from lading.sources.files.csv_reader import CsvReader
from lading.sources.files.rows import RowShaper
from tests.console.local import LocalLading

TABLE = "CREATE TABLE shop.t (id BIGINT, name STRING, price BIGINT) USING delta"


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as made:
        made.sql("CREATE DATABASE shop")
        made.sql(TABLE)
        yield made


def put(tmp_path: Path, text: str, name: str = "a.csv") -> None:
    (tmp_path / "in" / name).write_text(text)


def source(tmp_path: Path, **properties: str) -> str:
    given = {"uri": f"{tmp_path}/in/*.csv", "format": "csv_with_names", "column_separator": ",", **properties}
    return f"FILE({', '.join(f'{name!r} = {value!r}' for name, value in given.items() if value is not None)})"


def load(lading: Lading, insert: str) -> None:
    lading.sql(f'CREATE JOB j PROPERTIES ("file.settle_seconds" = "0") ON STREAMING DO {insert}')
    lading.run(["j"])


def rows(lading: Lading) -> list[tuple[object, ...]]:
    location = lading.catalog.open_table("shop", "t").location
    return sorted(pl.read_delta(location.removeprefix("file://")).rows())


def test_quotes_work_without_being_asked_for(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, 'id,name,price\n1,"Smith, John",25\n2,"two\nlines",3\n3,5" nail,4\n4,"say ""hi""",5\n')
    load(lading, f"INSERT INTO shop.t SELECT * FROM {source(tmp_path)}")
    assert rows(lading) == [(1, "Smith, John", 25), (2, "two\nlines", 3), (3, '5" nail', 4), (4, 'say "hi"', 5)]
    assert '"enclose" = \'"\'' in lading.sql("SHOW CREATE JOB j")[0].rows[0][1]


def test_a_large_file_is_cut_and_read_whole_when_a_field_has_lines(lading: Lading, tmp_path: Path) -> None:
    lines = [f"{number},{'x' * 60},{number}" for number in range(140_000)]
    lines[100_000] = f'100000,"{"y" * 30}\n1,2,3\n{"y" * 30}",100000'
    put(tmp_path, "id,name,price\n" + "\n".join(lines) + "\n")
    load(lading, f"INSERT INTO shop.t SELECT * FROM {source(tmp_path)}")
    found = rows(lading)
    assert [row[0] for row in found] == list(range(140_000))
    assert str(found[100_000][1]).count("\n") == 2
    [job] = lading.sql("SHOW JOBS")[0].rows
    assert "FAIL" not in str(job)
    assert lading.sql('SELECT Status FROM tasks("type" = "insert")')[0].rows == (("SUCCESS",),)


def test_quotes_are_letters_when_the_job_says_so(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, 'id,name,price\n1,"x",25\n')
    load(lading, f"INSERT INTO shop.t SELECT * FROM {source(tmp_path, enclose='')}")
    assert rows(lading) == [(1, '"x"', 25)]


def test_commas_are_seen_at_create(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, "id,name,price\n1,x,25\n")
    for form in ("csv_with_names", "csv"):
        given = f'FILE("uri" = "{tmp_path}/in/*.csv", "format" = "{form}")'
        with pytest.raises(LadingError) as caught:
            lading.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t SELECT * FROM {given}")
        assert '"column_separator" = ","' in str(caught.value)
    assert not lading.sql("SHOW JOBS")[0].rows


@pytest.mark.parametrize(
    ("line", "fields", "options", "said"),
    [
        (b"2,y,3", 1, CsvOptions(), 'is "column_separator" = "," missing?'),
        (b"2;y;3", 1, CsvOptions(column_separator=","), 'is "column_separator" = ";" missing?'),
        (b'3,"a,b",1', 4, CsvOptions(column_separator=","), 'is "enclose" = "\\"" missing?'),
        (b"1,2", 2, CsvOptions(column_separator=","), "Column count mismatch: 2 fields, 3 expected"),
    ],
)
def test_bad_rows_name_the_property_that_is_missing(line: bytes, fields: int, options: CsvOptions, said: str) -> None:
    for fast in (True, False):
        shaper = RowShaper(pa.schema([(name, pa.string()) for name in "abc"]), "f", {})
        lines = Lines(b"\n", max_record=1000, uri="f")
        reader = CsvReader(options, lines, shaper, "abc", fast=fast)
        [batch] = reader.batches(BytesIO(line).read)
        assert batch.column("__error").to_pylist()[0].endswith(said)


def test_by_name_fills_columns_of_the_same_name(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, "Price,more,ID\n25,x,1\n")
    load(lading, f"INSERT INTO shop.t BY NAME SELECT * FROM {source(tmp_path)}")
    assert rows(lading) == [(1, None, 25)]
    shown = str(lading.sql("SHOW CREATE JOB j")[0].rows[0][1])
    lading.sql("DROP JOB j")
    lading.sql(shown)
    assert "BY NAME" in shown


def test_by_name_takes_aliases(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, "a,b\n1,x\n")
    load(lading, f"INSERT INTO shop.t BY NAME SELECT b AS name, a AS id FROM {source(tmp_path)}")
    assert rows(lading) == [(1, "x", None)]


@pytest.mark.parametrize(
    ("insert", "text", "said"),
    [
        ("INSERT INTO shop.t SELECT *", "name,id,price\nx,1,2\n", "in another order: name, id, price"),
        ("INSERT INTO shop.t BY NAME SELECT upper(name)", "name\nx\n", "needs the name of the column"),
        ("INSERT INTO shop.t BY NAME SELECT name AS nam", "name\nx\n", "Did you mean name?"),
        ("INSERT INTO shop.t BY NAME SELECT *", "x,y\n1,2\n", "No column of the source has the name"),
        ("INSERT INTO shop.t BY NAME SELECT name, id AS name", "name,id\nx,1\n", "Two items of the SELECT fill"),
    ],
)
def test_what_cannot_be_filled_is_said(lading: Lading, tmp_path: Path, insert: str, text: str, said: str) -> None:
    put(tmp_path, text)
    with pytest.raises(LadingError) as caught:
        lading.sql(f"CREATE JOB j ON STREAMING DO {insert} FROM {source(tmp_path)}")
    assert said in str(caught.value)


def test_jobs_are_shown_and_controlled_by_their_name(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, "id,name,price\n1,x,2\n")
    lading.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t SELECT * FROM {source(tmp_path)}")
    lading.sql("PAUSE JOB j")
    assert "PAUSED" in str(lading.sql("SHOW JOBS")[0].rows)
    lading.sql("RESUME JOB j")
    lading.sql("DROP JOB j")
    assert not lading.sql("SHOW JOBS")[0].rows


def test_a_short_misspelling_is_told(lading: Lading, tmp_path: Path) -> None:
    put(tmp_path, "id\n1\n")
    with pytest.raises(SqlError, match="Did you mean csv"):
        lading.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t SELECT * FROM {source(tmp_path, format='cvs')}")
