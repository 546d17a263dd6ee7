"""EXPLAIN CREATE JOB: what would become of the first rows, before anything is made."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import DeniedError, LadingError, SqlError
from lading.sources.kafka.source import KafkaSource
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk

ROWS = ["1,essen,1.50", "2,bonn,x", "3,a town with a long name,2", "4,köln,4", ",essen,1", "6,bonn,7,8"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    made.table()
    yield made
    made.lading.close()


def job(desk: Desk, select: str = "id, upper(city), amount", more: str = "") -> str:
    return (
        f"CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=","{more})'
    )


def explained(desk: Desk, text: str) -> dict[str, str]:
    return {str(what): str(how) for what, how in desk.sql(f"EXPLAIN {text}")}


def test_each_column_and_each_bad_row_is_told_and_nothing_is_made(desk: Desk) -> None:
    desk.put("a.csv", ROWS)
    told = explained(desk, f"{job(desk)} WHERE id IS NULL OR id <> 4")
    assert told["column id"] == "`id` → bigint NOT NULL: 1"
    assert told["column city"].endswith("→ string: ESSEN")
    assert (told["rows"], told["loaded"], told["left out by WHERE"], told["bad"]) == ("6 read", "1", "1", "4")
    reasons = " ".join(how for what, how in told.items() if what.startswith("bad: "))
    assert "column amount: cannot read 'x' as decimal(10,2)" in str(desk.sql(f"EXPLAIN {job(desk)}"))
    assert "column city: longer than 10 characters" in str(desk.sql(f"EXPLAIN {job(desk)}"))
    assert "a.csv, row " in reasons
    assert desk.sql("SHOW JOBS") == []
    assert desk.lading.catalog.open_table("shop", "orders").version() == 0
    desk.create()
    desk.run()
    assert desk.show("Status") == "PAUSED"  # As it was told: there are bad rows, and the job is strict.


def test_what_only_spark_can_do_is_said_and_not_tried(desk: Desk) -> None:
    desk.put("a.csv", ROWS)
    told = explained(desk, job(desk, "id, regexp_replace(city, 's+', '_'), amount"))
    assert told["rows"].startswith("not tried: only Spark can do it (column city: regexp_replace")
    assert "REGEXP_REPLACE" in told["column city"]


def test_without_a_file_it_says_so(desk: Desk) -> None:
    assert explained(desk, job(desk))["rows"] == "not tried: there is no file yet to learn the columns from"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("CREATE JOB j ON STREAMING DO INSERT INTO nothing", "Unknown table 'nothing'"),
        (
            "CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS t USING delta PARTITIONED BY (day) INSERT INTO t",
            "no column day",
        ),
    ],
)
def test_mistakes_are_those_of_the_statement_itself(desk: Desk, wrong: str, said: str) -> None:
    desk.put("a.csv", ROWS)
    source = job(desk).partition(" FROM ")[2]
    with pytest.raises(LadingError, match=said):
        desk.sql(f"EXPLAIN {wrong} SELECT * FROM {source}")


def test_it_needs_the_rights_of_the_statement_and_keeps_no_secret(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KafkaSource.__init__.__kwdefaults__, "timeout_s", 0.5)  # type: ignore[arg-type]  # it has some
    desk.put("a.csv", ROWS)
    desk.sql("CREATE USER ann; GRANT LOAD ON shop.orders TO ann")
    with pytest.raises(DeniedError):  # Files of the machine.
        desk.lading.session("ann", "shop").sql(f"EXPLAIN {job(desk)}")
    before, word = desk.lading.store.list_settings(), secret("of a topic")
    given = f'"kafka_broker_list"="127.0.0.1:1", "kafka_topic"="t", "property.sasl.password"="{word}"'
    with pytest.raises(LadingError) as caught:
        desk.sql(f'EXPLAIN CREATE ROUTINE LOAD r ON orders PROPERTIES("format"="json") FROM KAFKA({given})')
    assert word not in str(caught.value)
    assert desk.lading.store.list_settings() == before


def test_no_secret_is_written_even_for_a_moment(desk: Desk) -> None:
    desk.put("a.csv", ROWS)
    with closing(sqlite3.connect(desk.lading.home.store_url)) as store:
        store.execute(
            "CREATE TRIGGER kept_out BEFORE INSERT ON lading_settings BEGIN SELECT RAISE(ABORT, 'written'); END"
        )
        store.commit()
    assert explained(desk, job(desk))["rows"] == "6 read"
    with pytest.raises(LadingError):  # The trigger does what it should.
        desk.sql(job(desk))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("id.a", "A bigint has no part a"),
        ("id[1]", r"A bigint has no part \[1\]"),
        ("_row.a", "A bigint has no part a"),
        ("day.a", "A date has no part a"),
        ("who['age']", r"struct<age:bigint,Name:string,name:string> has fields, and \['age'\] is none"),
        ("who.name", "has 2 fields name, which differ by case alone"),
        ("who.age.x", "A bigint has no part x"),
        ("tags.a", "array<string> has no part a: its elements count from 1"),
        ("tags[0]", r"array<string> has no part \[0\]"),
        ("tags['a']", r"array<string> has no part \['a'\]"),
        ("texts[size(tags)]", "is no step of a path into JSON"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_before_a_batch(desk: Desk, path: str, said: str) -> None:
    names = pa.struct([pa.field("age", pa.int64()), pa.field("Name", pa.string()), pa.field("name", pa.string())])
    columns = {"id": [1], "who": pa.array([None], names), "tags": [["a"]], "day": [date(2026, 1, 2)], "texts": ["{}"]}
    pq.write_table(pa.table(columns), desk.inbox / "a.parquet")
    source = f'FILE("uri"="{desk.inbox}/*.parquet", "format"="parquet")'
    statement = f"CREATE JOB j ON STREAMING DO INSERT INTO orders (id, city) SELECT id, {path} FROM {source}"
    for text in (f"EXPLAIN {statement}", statement, f"{statement} WHERE {path} = 1"):
        with pytest.raises(SqlError, match=said) as caught:
            desk.sql(text)
        assert (caught.value.left, bool(caught.value.todo)) == ("Nothing was changed.", True)
    assert desk.sql("SHOW JOBS") == []


@pytest.mark.parametrize("select", ["id, City", "id, upper(city)", "id, 'x' FROM {} WHERE city = 'a'"])
def test_a_column_that_has_a_twin_in_other_letters_is_refused_and_others_are_loaded(desk: Desk, select: str) -> None:
    desk.put("a.csv", ["1,essen,bonn"], header="id,city,City")
    source = job(desk).partition(" FROM ")[2]
    text = select.format(source) if "{}" in select else f"{select} FROM {source}"
    for start in ("EXPLAIN CREATE", "CREATE"):
        with pytest.raises(SqlError, match="columns city, City, which differ by case alone"):
            desk.sql(f"{start} JOB j ON STREAMING DO INSERT INTO orders (id, city) SELECT {text}")
    desk.sql(f"CREATE JOB j ON STREAMING DO INSERT INTO orders (id) SELECT id FROM {source}")
    desk.run()
    assert desk.ids() == [1]
