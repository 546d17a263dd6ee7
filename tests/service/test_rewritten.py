"""What ALTER … "state" = "COMMIT n" says is written again: each row once, however often it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lading.ids import Token
from lading.model.bill import Bill, BillKind
from lading.model.positions import PartitionState, Positions
from lading.model.state import StateRef
from lading.model.tally import Tally
from lading.service.edits.rewritten import find_line, rows_written_again
from tests.model.samples import FULL_BILL


class Line:
    """The bills of a job, oldest first."""

    def __init__(self) -> None:
        self.bills: list[Bill] = []
        self._add(BillKind.OPENING, _at(0), None)

    def load(self, written: int) -> int:
        base = self.bills[-1]
        number = len(self.bills)
        return self._add(BillKind.LOAD, _at(_place(base) + 1), _state(number), written)

    def back_to(self, seq: int) -> int:
        return self._add(BillKind.EDIT, self.bills[seq].positions, self.bills[seq].state)

    def take_over(self) -> int:
        return self._add(BillKind.TAKEOVER, self.bills[-1].positions, self.bills[-1].state)

    def move(self, place: int) -> int:
        return self._add(BillKind.EDIT, _at(place), None)

    def _add(self, kind: BillKind, positions: Positions, state: StateRef | None, written: int = 0) -> int:
        seq = len(self.bills)
        parts = {"kind": kind, "positions": positions, "state": state, "tally": Tally(written=written)}
        self.bills.append(replace(FULL_BILL, seq=seq, token=Token(seq), accepts_rollback=False, **parts))  # type: ignore[arg-type]
        return seq

    def again(self, seq: int) -> int | None:
        return rows_written_again(find_line(reversed(self.bills), seq), seq)


def _at(place: int) -> Positions:
    return Positions(partitions={"p": PartitionState(at=str(place))})


def _place(bill: Bill) -> int:
    return int(bill.positions.partitions["p"].at)


def _state(number: int) -> StateRef:
    return StateRef(manifest=str(number), digest="", files=1, rows=1, size_bytes=1)


@pytest.fixture
def line() -> Line:
    """Five rows, then commit 1, then 10 and 20 rows."""
    made = Line()
    made.load(5)
    made.load(10)
    made.load(20)
    return made


def test_what_was_written_since_is_written_again(line: Line) -> None:
    line.take_over()
    assert [line.again(seq) for seq in (0, 1, 2, 3, 4)] == [35, 30, 20, 0, 0]


def test_rows_that_were_written_twice_are_not_counted_twice(line: Line) -> None:
    line.back_to(1)
    line.take_over()
    for _ in range(2):
        line.load(10)
        line.load(20)
        assert line.again(1) == 30
        assert line.again(0) == 35
        line.back_to(1)


def test_a_job_that_was_further_before_writes_that_again_too(line: Line) -> None:
    line.back_to(1)
    line.load(10)
    assert line.again(1) == 30
    line.load(20)
    line.load(40)
    assert line.again(1) == 70


def test_a_commit_of_before_the_job_went_back_is_as_far_as_it_was(line: Line) -> None:
    line.back_to(1)
    line.load(10)
    assert (line.again(2), line.again(3)) == (20, 0)
    line.load(20)
    line.load(40)
    assert line.again(3) == 40


def test_a_position_that_was_moved_by_hand_leaves_it_open_but_not_what_came_after(line: Line) -> None:
    moved = line.move(7)
    line.load(3)
    assert line.again(1) is None
    assert line.again(moved) == 3
    line.back_to(moved)
    assert line.again(moved) == 3


def test_to_begin_again_at_the_beginning_is_known(line: Line) -> None:
    line.move(0)
    line.load(5)
    assert line.again(0) == 35


def test_no_more_bills_are_read_than_are_needed(line: Line) -> None:
    read = list[int]()

    def lineage() -> Iterator[Bill]:
        for bill in reversed(line.bills):
            read.append(bill.seq)
            yield bill

    find_line(lineage(), 2)
    assert read == [3, 2]
    line.back_to(1)
    read.clear()
    find_line(lineage(), 2)
    assert read == [4, 3, 2, 1]
    assert [bill.seq for bill in find_line(lineage(), 9)] == [4, 3, 2, 1, 0]
