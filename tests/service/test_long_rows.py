"""Long answers: all rows, in order, and little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.service.limits.spooled_rows import LongRows, Portion, Row, keep_portions
from tests.service.conftest import Desk


def keep_rows(rows: Iterable[Row], *, in_memory: int = 10_000, at_once: int = 1_000) -> Sequence[Row]:
    """As the rows of Spark come: in portions."""
    return keep_portions(_portions(iter(rows), at_once), in_memory=in_memory)


def _portions(rows: Iterator[Row], at_once: int) -> Iterator[Portion]:
    while portion := list(islice(rows, at_once)):
        yield portion, len(portion)


rows = st.lists(st.tuples(st.integers(), st.text(max_size=5) | st.none()), max_size=60)


@given(
    rows=rows,
    in_memory=st.integers(1, 70),
    at_once=st.integers(1, 7),
    start=st.integers(-70, 70),
    size=st.integers(0, 70),
)
def test_they_are_what_a_list_is(rows: list[Row], in_memory: int, at_once: int, start: int, size: int) -> None:
    kept = keep_rows(rows, in_memory=in_memory, at_once=at_once)
    assert isinstance(kept, LongRows) == (len(rows) >= in_memory)
    assert (len(kept), list(kept), bool(kept)) == (len(rows), rows, bool(rows))
    assert list(kept[start : start + size]) == rows[start : start + size]
    assert list(kept[::-1]) == rows[::-1]
    for at in range(-len(rows), len(rows)):
        assert kept[at] == rows[at]
    with pytest.raises(IndexError):
        kept[len(rows)]


def test_few_rows_that_are_long_are_not_kept_in_memory() -> None:
    portions = [([(number, "x" * 1000)], 1000) for number in range(10)]
    assert isinstance(keep_portions(portions, in_memory_bytes=5000), LongRows)
    assert isinstance(keep_portions(portions, in_memory_bytes=50_000), tuple)


def test_two_may_go_through_them_at_once() -> None:
    kept = keep_rows(((number,) for number in range(5000)), in_memory=10)
    assert all(one == two == (number,) for number, (one, two) in enumerate(zip(kept, kept, strict=True)))
    for number, row in enumerate(kept):
        assert row == kept[number] == (number,)
        assert kept[-1] == (4999,)


def test_a_million_rows_take_little_memory() -> None:
    tracemalloc.start()
    kept = keep_rows((number, f"city {number}", Decimal(number)) for number in range(200_000))
    assert sum(row[0] for row in kept) == sum(range(200_000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16_000_000


def test_a_source_that_fails_leaves_no_file() -> None:
    def fail() -> list[Row]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        keep_rows((row for part in ([(1,)] * 20, None) for row in (part or fail())), in_memory=10, at_once=5)


def test_a_long_answer_of_spark_comes_whole_and_in_order(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 9_000)
    desk.put_orders("b.csv", 9_000, 9_000)
    desk.create()
    desk.run()
    (found,) = desk.lading.sql("SELECT id, city FROM orders ORDER BY id DESC")
    assert isinstance(found.rows, LongRows)
    assert list(found.rows) == [(number, "essen") for number in reversed(range(18_000))]
    (few,) = desk.lading.sql("SELECT id FROM orders WHERE id < 3 ORDER BY id")
    assert few.rows == ((0,), (1,), (2,))
    (none,) = desk.lading.sql("SELECT id FROM orders WHERE id < 0")
    assert (none.columns, none.rows) == (("id",), ())
