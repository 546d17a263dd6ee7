"""EXPLAIN CREATE JOB of a job that makes its table: it shows the table and what would fill it, and makes neither."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lading.errors import ConfigError, ConflictError, DeniedError, LadingError, SqlError, TableNotFoundError
from lading.tables.registry import NAMES, kind_of
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.support.other_readers import read_elsewhere
from tests.tables.optional import skip_without

MESSY = '\ufeffid,customer,city,amount\r\n1,"Smith, Ann",essen,12.50\r\n\r\n2,"Two\r\nLines",ulm,7\r\n'
COLUMNS = "(id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2))"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


def job(desk: Desk, made: str, select: str = "*", more: str = "", into: str = "t") -> str:
    source = f'FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=","{more})'
    return (
        f"CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS {into} {made} "
        f"INSERT INTO {into} SELECT {select} FROM {source}"
    )


def explained(desk: Desk, text: str) -> dict[str, str]:
    return {str(what): str(how) for what, how in desk.sql(f"EXPLAIN {text}")}


def everything(desk: Desk) -> tuple[list[str], set[str]]:
    """All rows of the store, and the names of all files around it."""
    with closing(sqlite3.connect(desk.lading.home.store_url)) as store:
        rows = list(store.iterdump())
    return rows, {str(path) for path in desk.path.rglob("*") if ".db-" not in path.name}


@pytest.mark.parametrize("form", NAMES)
def test_the_table_is_shown_and_not_made_and_then_made_as_it_was_shown(desk: Desk, form: str) -> None:
    skip_without(kind_of(form))
    (desk.inbox / "a.csv").write_text(MESSY, newline="")
    text, before = job(desk, f"USING {form} PARTITIONED BY (city)"), everything(desk)
    told = explained(desk, text)
    assert everything(desk) == before
    assert told["table"] == (
        "CREATE TABLE IF NOT EXISTS shop.t (\n    id bigint,\n    customer string,\n    city string,\n"
        f"    amount double\n) USING {form}\nPARTITIONED BY (city)"
    )
    assert told["column id"] == "`id` → bigint: 1, 2"
    assert told["column customer"] == "`customer` → string: 'Smith, Ann', 'Two\\r\\nLines'"
    assert told["column amount"] == "`amount` → double: 12.5, 7.0"
    assert (told["rows"], told["loaded"], told["bad"]) == ("2 read", "2", "0")
    desk.sql(told["table"])  # It can be typed as it is shown.
    place = Path(desk.lading.catalog.entry("shop", "t").location)
    shown = [line.split()[0].rstrip(",") for line in told["table"].splitlines()[1:5]]
    assert read_elsewhere(form, place).schema.names == shown
    there = explained(desk, text)
    assert there.pop("table") == "t is there already"
    assert there == {what: how for what, how in told.items() if what != "table"}


def test_bad_rows_and_columns_are_told_as_of_a_table_that_is_there(desk: Desk) -> None:
    desk.put("a.csv", ["1,essen,1.50", "2,bonn,x", "3,a town with a long name,2", ",essen,1", "6,bonn,7,8"])
    told = explained(desk, job(desk, f"{COLUMNS} USING delta", "id, upper(city), amount"))
    assert told.pop("table").startswith("CREATE TABLE IF NOT EXISTS shop.t (\n    id bigint NOT NULL,")
    assert (told["loaded"], told["bad"]) == ("1", "4")
    assert desk.sql("SHOW TABLES") == []
    desk.sql(f"CREATE TABLE t {COLUMNS} USING delta")
    there = explained(desk, job(desk, f"{COLUMNS} USING delta", "id, upper(city), amount"))
    assert {what: how for what, how in there.items() if what != "table"} == told


def test_a_table_of_columns_that_grow_is_tried_too(desk: Desk) -> None:
    desk.put("a.csv", ["1,essen,1.50"])
    grows = job(desk, "USING delta").replace("CREATE JOB j", 'CREATE JOB j PROPERTIES("schema.evolution"="ADD")')
    assert explained(desk, grows)["loaded"] == "1"
    assert desk.sql("SHOW TABLES") == []


def test_a_place_of_ones_own_is_looked_at_and_not_touched(desk: Desk, tmp_path: Path) -> None:
    desk.put("a.csv", ["1,essen,1.50"])
    free, taken = tmp_path / "lake" / "free", tmp_path / "lake" / "taken"
    write_deltalake(taken, pa.table({"id": pa.array([7], pa.int64())}))
    before = everything(desk)
    assert explained(desk, job(desk, f"USING delta LOCATION '{free}'"))["loaded"] == "1"
    with pytest.raises(ConflictError, match="not the one that the statement describes"):
        explained(desk, job(desk, f"USING delta LOCATION '{taken}'"))
    with pytest.raises(ConflictError, match="already files of another table"):
        explained(desk, job(desk, f"USING iceberg LOCATION '{taken}'"))
    told = explained(desk, job(desk, f"(id BIGINT) USING delta LOCATION '{taken}'", "id"))
    assert told["table"] == f"t would be the table that is at {taken}"
    assert told["column id"] == "`id` → bigint: 1"
    assert everything(desk) == before
    assert DeltaTable(taken).version() == 0


@pytest.mark.parametrize(
    ("into", "made", "select", "error", "said"),
    [
        ("t", "USING delta PARTITIONED BY (day)", "*", ConfigError, "no column day to partition by"),
        ("nowhere.t", "USING delta", "*", TableNotFoundError, "Unknown database 'nowhere'"),
        ("t", "USING iceberg TBLPROPERTIES ('write.metadata.path' = '/tmp')", "*", LadingError, "write.metadata.path"),
        ("t", "(id BIGINT) USING delta", "id, city", SqlError, "1 columns are to be filled and 2"),
        ("t", "(id BIGINT, id INT) USING delta", "*", LadingError, "twice|two columns|named id"),
    ],
)
def test_what_create_refuses_is_refused_with_the_same_words(
    desk: Desk, into: str, made: str, select: str, error: type[LadingError], said: str
) -> None:
    desk.put("a.csv", ["1,essen,1.50"])
    before, told = everything(desk), []
    for text in (f"EXPLAIN {job(desk, made, select, into=into)}", job(desk, made, select, into=into)):
        with pytest.raises(error, match=said) as caught:
            desk.sql(text)
        told.append(caught.value.what)
        if text.startswith("EXPLAIN"):
            assert everything(desk) == before
    assert told[0] == told[1]


def test_it_needs_the_rights_that_make_a_table(desk: Desk) -> None:
    desk.put("a.csv", ["1,essen,1.50"])
    desk.sql("CREATE USER ann; GRANT LOAD ON shop.* TO ann")
    with pytest.raises(DeniedError, match="ADMIN command denied"):
        desk.lading.session("ann", "shop").sql(f"EXPLAIN {job(desk, 'USING delta')}")


def test_without_a_row_columns_are_not_guessed(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="has nothing yet to learn columns from"):
        explained(desk, job(desk, "USING delta"))
    told = explained(desk, job(desk, f"{COLUMNS} USING delta", "id, city, amount"))
    assert "amount decimal(10,2)" in told["table"]
    assert told["rows"] == "not tried: there is no file yet to learn the columns from"
    assert pl.DataFrame(desk.sql("SHOW TABLES")).is_empty()
