"""How many rows a job writes again that goes back to one of its commits.

Totals of bills cannot tell: what was written, gone back from and written again is in them twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lading.model.bill import Bill, BillKind


def find_line(lineage: Iterable[Bill], seq: int) -> list[Bill]:
    """The bills of a job from its newest down to a commit, and on to those that edits since then went back to.

    `lineage` is newest first, and read as far as it must be. Without that commit: all of it.
    """
    line, wanted, is_there = list[Bill](), list[Bill](), False
    for bill in lineage:
        line.append(bill)
        wanted = [edit for edit in wanted if not _is_back_at(edit, bill)]
        is_there = is_there or bill.seq == seq
        if is_there and not wanted:
            break
        if bill.kind is BillKind.EDIT and bill.state is not None and not bill.accepts_rollback:
            wanted.append(bill)
    return line


def rows_written_again(line: Sequence[Bill], seq: int) -> int | None:
    """The rows behind commit `seq`, up to where the job came at most since. None: nobody knows.

    A job that went back to a commit is as far as it was then, and what it writes after that it wrote before.
    """
    far: list[int | None] = []
    oldest_first = line[::-1]
    for place, bill in enumerate(oldest_first):
        before = far[-1] if far else 0
        if place and bill.kind is BillKind.EDIT:
            far.append(_far_of_edit(bill, oldest_first[:place], far))
        else:
            far.append(None if before is None else before + bill.tally.written)
    start = next(place for place, bill in enumerate(oldest_first) if bill.seq == seq)
    since = [rows for rows in far[start:] if rows is not None]
    return max(since) - since[0] if len(since) == len(far) - start else None


def _far_of_edit(edit: Bill, before: Sequence[Bill], far: Sequence[int | None]) -> int | None:
    for bill, rows in zip(reversed(before), reversed(far), strict=True):
        if _is_back_at(edit, bill):
            return rows
    return far[-1] if _places(edit) == _places(before[-1]) else None


def _is_back_at(edit: Bill, bill: Bill) -> bool:
    return (edit.positions, edit.state) == (bill.positions, bill.state)


def _places(bill: Bill) -> dict[str, str]:
    return {name: state.at for name, state in bill.positions.partitions.items()}
