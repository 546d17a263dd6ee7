"""Queries over tables in memory end, whatever they ask."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.service.limits import sqlite_sandbox
from lading.service.limits.cancellation import CancelToken, current_stop
from lading.service.limits.sqlite_sandbox import Bounds, SmallTables

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
MANY = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {n}) SELECT {what} FROM c"
JOBS = '(SELECT count(*) FROM jobs("type"="insert"))'


@pytest.fixture
def tables() -> Iterator[SmallTables]:
    with SmallTables() as made:
        made.fill("t", ["a", "b"], [("Bonn", 1), ("Köln", None)])
        yield made


def test_what_is_small_is_answered(tables: SmallTables) -> None:
    found = tables.ask("SELECT a, b FROM t WHERE a LIKE 'b%' OR a = 'KöLN' ORDER BY 1")
    assert (found.columns, found.rows) == (("a", "b"), (("Bonn", 1), ("Köln", None)))
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        tables.ask("SELECT c FROM t")


def test_an_endless_query_is_ended_and_says_why() -> None:
    with SmallTables(Bounds(seconds=0.2)) as tables, pytest.raises(ConfigError) as caught:
        tables.ask(ENDLESS)
    assert "more than 0.2 seconds" in caught.value.what
    assert caught.value.left
    assert caught.value.todo


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MANY.format(n=2001, what="x"), "more than 2000 rows"),
        (MANY.format(n=1500, what="hex(zeroblob(400))"), "more than 1000000 bytes"),
        ("SELECT hex(zeroblob(400000000))", "longer than 1048576 bytes"),
        ("SELECT replace(hex(zeroblob(10000)), '0', hex(zeroblob(1000)))", "longer than 1048576 bytes"),
        (MANY.format(n=3000, what="group_concat(hex(zeroblob(1000)))"), "longer than 1048576 bytes"),
    ],
)
def test_a_query_that_makes_too_much_is_ended(text: str, why: str) -> None:
    with (
        SmallTables(Bounds(rows=2000, size=1_000_000)) as tables,
        pytest.raises(ConfigError, match="takes too much") as caught,
    ):
        tables.ask(text)
    assert why in caught.value.what


def test_rows_that_are_longer_than_the_bound_are_told_as_they_are() -> None:
    with SmallTables(Bounds(value=1000)) as tables:
        tables.fill("t", ["a", "b"], [("x" * 5000, "y" * 5000)])
        assert tables.ask("SELECT DISTINCT a, b FROM t ORDER BY b").rows == (("x" * 5000, "y" * 5000),)
        with pytest.raises(ConfigError):
            tables.ask("SELECT hex(zeroblob(20000))")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT instr(substr(hex(zeroblob(500000)), 1, 900000), substr(hex(zeroblob(250000)), 1, 450000) || '1')",
        "SELECT length(replace(hex(zeroblob(500000)), hex(zeroblob(200000)) || '1', ''))",
        "SELECT hex(zeroblob(400000)) LIKE '%' || substr(hex(zeroblob(100)), 1, 180) || '1%'",
        "SELECT length(trim(hex(zeroblob(500000)), '12345' || hex(zeroblob(400000))))",
    ],
)
def test_functions_take_no_product_of_lengths(text: str) -> None:
    """One of them is one step of SQLite, which cannot be ended."""
    began = time.process_time()
    with SmallTables() as tables:
        assert len(tables.ask(text).rows) == 1
    assert time.process_time() - began < 5


def test_functions_that_were_replaced_answer_as_before(tables: SmallTables) -> None:
    asked = {
        "instr('Bonn', 'nn')": 3,
        "instr('Bonn', 'x')": 0,
        "instr(NULL, 'x')": None,
        "instr(1234, 3)": 3,
        "replace('a.b.c', '.', '--')": "a--b--c",
        "replace('abc', '', 'x')": "abc",
        "replace('abc', 'a', NULL)": None,
        "trim('xxaxyx', 'xy')": "a",
        "ltrim('xxax', 'x')": "ax",
        "rtrim('xxax', 'x')": "xxa",
        "trim('  a ')": "a",
        "trim('a', NULL)": None,
    }
    for text, answer in asked.items():
        assert tables.ask(f"SELECT {text}").rows == ((answer,),), text


def test_a_query_is_ended_from_outside() -> None:
    stop = CancelToken()

    def ask() -> None:
        with SmallTables(Bounds(seconds=60)) as tables:
            threading.Timer(0.1, stop.set).start()
            tables.ask(ENDLESS)

    began = time.process_time()
    with pytest.raises(ConfigError, match="was ended"):
        stop.run(ask)
    assert time.process_time() - began < 10
    assert not current_stop().is_set


def test_a_query_that_was_ended_before_it_began_does_not_begin() -> None:
    stop = CancelToken()

    def ask() -> None:
        with SmallTables(Bounds(seconds=60)) as tables:
            stop.set()
            tables.ask(ENDLESS)

    with pytest.raises(ConfigError, match="was ended"):
        stop.run(ask)
    with pytest.raises(ConfigError, match="was ended"):
        stop.run(lambda: pytest.fail("it was done all the same"))


def test_those_who_end_something_are_called_once() -> None:
    stop, calls = CancelToken(), list[str]()
    with stop.ending(lambda: calls.append("first")):
        stop.set()
        stop.set()
        with stop.ending(lambda: calls.append("late")):
            pass
    assert calls == ["first", "late"]


def test_queries_over_jobs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_sandbox, "BOUNDS", Bounds(seconds=0.2, rows=100))
    with Lading(tmp_path / "home") as lading:
        with pytest.raises(ConfigError, match=r"more than 0\.2 seconds"):
            lading.sql(ENDLESS.replace("count(*) FROM", f"count(*), {JOBS} FROM"))
        with pytest.raises(ConfigError, match="more than 100 rows"):
            lading.sql(MANY.format(n=1000, what=f"x, {JOBS}"))
        assert lading.sql(f"SELECT {JOBS}, 1")[0].rows == ((0, 1),)
