"""Which rows of quarantine may be taken up again: none that was before, and none that the source brings once more.

A row that was bad is in the quarantine of one commit, and its range was read. It comes again without a replay when an
operator moves the position back behind it; then a replay would load it a second time, and is refused. Everything is
told by the bills from the head back to the last replay. Where one of those is gone, nobody knows, and that is refused,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lading.commit.protocols import Bills
from lading.errors import HeadLostError, JobStateError, StageError
from lading.model.batch import BatchPlan, Report, Split
from lading.model.bill import Bill, BillKind
from lading.model.job import Job
from lading.model.positions import PartitionState, Positions

QUARANTINE = "quarantine"
"""Stands where the partition of a split does."""
_NOTHING = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOrder:
    """What a source knows of its order."""

    way: Callable[[PartitionState, PartitionState], str] | None = None
    """FORWARD or SAME only where nothing before the first position is read from the second on. None: it has no such
    order, and only a position that is the same brings nothing again."""
    repeats_nothing: Callable[[PartitionState, PartitionState], bool] = lambda was, now: False
    """Whether an operator's move brings nothing again, although the position is another one."""
    names_again: Callable[[str, str], bool] = lambda old, new: False
    """Whether a later definition may have rows loaded again that an earlier one loaded, wherever the position is."""


def waiting_bills(job: Job, bills: Bills, base: Bill, order: SourceOrder, *, after: int | None = None) -> list[Bill]:
    """The commits whose bad rows may be taken up on this base, oldest first. Raises JobStateError when some may not.

    Those up to `after` are given up.
    """
    through = max(base.replayed_through, after or 0)
    line = _line(job, bills, base, through)
    waiting = [bill for bill in line if bill.tally.rows.error or bill.tally.rows.late]
    for bill in waiting:
        _check_rows(job, bill)
        _check_comes_once(job, bill, line[line.index(bill) + 1 :], order)
    return waiting


def plan_of_replay(base: Bill, waiting: Sequence[Bill]) -> BatchPlan:
    """A split for each file of bad rows."""
    places = [place for bill in waiting for place in bill.quarantine]
    splits = tuple(
        Split(number=number, partition=QUARANTINE, start=place, end=place, payload=place)
        for number, place in enumerate(places)
    )
    return BatchPlan(positions=base.positions, splits=splits, seq=base.seq + 1)


def check_all_there(job: Job, waiting: Sequence[Bill], reports: Sequence[Report]) -> Sequence[Report]:
    """The reports, in order. Raises StageError unless the quarantine has every bad row of every commit."""
    left = iter(reports)
    for bill in waiting:
        found = sum(next(left).rows.total for _ in bill.quarantine)
        if found != bill.tally.rows.error:
            msg = f"The quarantine of commit {bill.seq} of job {job.name} has {found} of {bill.tally.rows.error} rows"
            raise StageError(
                msg,
                left="Nothing was committed.",
                todo=f"Restore its files, or give up the rows of commits up to it: {_give_up(job, bill)}",
                job_id=job.job_id,
                seq=bill.seq,
            )
    return reports


def _line(job: Job, bills: Bills, base: Bill, through: int) -> list[Bill]:
    """The bills above a seq, oldest first. Those that have no bad rows need not be there."""
    line: list[Bill] = []
    bill = base
    while bill.seq > through:
        if bill.is_without_history and (bill.totals.rows.error or bill.totals.rows.late):
            raise _gone(job, bill.seq, bill.totals.rows.error)
        line.append(bill)
        if bill.continues is None or bill.continues.seq <= through:
            break
        before, older = (bill.totals - bill.added).rows, bill.continues
        try:
            bill = bills.read(job.job_id, older)
        except HeadLostError:
            if before.error or before.late:
                raise _gone(job, older.seq, before.error) from None
            break
    return line[::-1]


def _gone(job: Job, seq: int, errors: int) -> JobStateError:
    msg = f"The bills of job {job.name} up to commit {seq} are gone, and some of its {errors} bad rows may be of those"
    todo = f"Give up what is in quarantine of commits up to {seq}: REPLAY ERRORS FOR {job.name} AFTER {seq}."
    return JobStateError(msg, left=_NOTHING, todo=todo, job_id=job.job_id, seq=seq)


def _check_rows(job: Job, bill: Bill) -> None:
    """Rows of other fates than loaded, left out or bad are not put aside to be taken up."""
    claims = {
        "has rows that came too late": bill.tally.rows.late > 0,
        "has bad results of a join": bool(bill.joined),
        "changed what the job keeps of its rows": bill.state is not None or bill.positions.watermark_us is not None,
        "told listeners of its partitions": bill.listening is not None,
        "names no file for its bad rows": not bill.quarantine,
    }
    for claim, holds in claims.items():
        if holds:
            msg = f"Commit {bill.seq} of job {job.name} {claim}: its quarantine cannot be replayed"
            raise JobStateError(
                msg, left=_NOTHING, todo=f"Give its rows up: {_give_up(job, bill)}", job_id=job.job_id, seq=bill.seq
            )


def _check_comes_once(job: Job, bill: Bill, later: Sequence[Bill], order: SourceOrder) -> None:
    """Refuse rows that a later commit read again, or a later batch will."""
    bounds, is_sure = _bounds(bill), order.way is not None
    for was, moved in _moves(bill, later):
        for name, bound in bounds.items():
            stood, now = was.partitions.get(name), moved.partitions.get(name)
            if stood is not None and now is not None and order.repeats_nothing(stood, now):
                continue
            if now != stood and not (now is not None and _is_behind(order, bound, now)):
                why, only = f"the position of partition {name} was moved since", _is_inside(order, bill, name, now)
                raise _comes_again(job, bill, why, is_sure=is_sure, only_some=only)
    for other in later:
        for part in other.ranges:
            at = PartitionState(at=part.start)
            if part.partition in bounds and order.way and not _is_behind(order, bounds[part.partition], at):
                raise _comes_again(job, bill, f"commit {other.seq} read partition {part.partition} again")
    for definition in (*(other.definition for other in later if other.ranges), job.definition):
        if order.names_again(bill.definition, definition):
            raise _comes_again(job, bill, "files were named since that are to be loaded again", is_sure=is_sure)


def _bounds(bill: Bill) -> dict[str, PartitionState]:
    """How far the partitions were read that its rows are from. Those of a replay may be from all there were."""
    named = {part.partition for part in bill.ranges}
    states = bill.positions.partitions
    return {name: state for name, state in states.items() if name in named or bill.kind is BillKind.REPLAY}


def _moves(bill: Bill, later: Sequence[Bill]) -> Iterator[tuple[Positions, Positions]]:
    """Where the job was before operators moved it, and where it was when it read on, or is now. What was moved and put
    back before anything was read is no move."""
    last, moved = bill.positions, False
    at = last
    for other in later:
        if other.kind in (BillKind.EDIT, BillKind.OPENING):
            at, moved = other.positions, True
        elif other.kind is BillKind.LOAD:
            if moved:
                yield last, at
            last, at, moved = other.positions, other.positions, False
    if moved:
        yield last, at


def _is_behind(order: SourceOrder, bound: PartitionState, now: PartitionState) -> bool:
    return now == bound or (order.way is not None and order.way(bound, now) in ("FORWARD", "SAME"))


_SOME = (
    "Of those of that partition, only what lies behind the position comes by reading again; SHOW LOAD ERRORS tells "
    "where each is from."
)


def _is_inside(order: SourceOrder, bill: Bill, name: str, now: PartitionState | None) -> bool:
    """Whether a position lies within what a commit read."""
    if now is None:
        return False
    starts = [PartitionState(at=part.start) for part in bill.ranges if part.partition == name]
    return any(order.way is not None and order.way(start, now) == "FORWARD" for start in starts)


def _comes_again(job: Job, bill: Bill, why: str, *, is_sure: bool = True, only_some: bool = False) -> JobStateError:
    would = "would" if is_sure and not only_some else "may"
    rows, name = bill.tally.rows.error, job.name
    msg = f"{rows} bad rows of commit {bill.seq} of job {name} {would} be loaded twice, from its source, too: {why}"
    again = f"{_SOME} Have the others sent once more." if only_some else "They come by reading again."
    todo = f"{again} Give up those in quarantine: {_give_up(job, bill)}"
    if not is_sure:
        todo = (
            "What is read from a position on cannot be told of this source. Look whether their files were or will be "
            f"read again, and load them by other names if not. Then give up those in quarantine: {_give_up(job, bill)}"
        )
    return JobStateError(msg, left=_NOTHING, todo=todo, job_id=job.job_id, seq=bill.seq)


def _give_up(job: Job, bill: Bill) -> str:
    return f"REPLAY ERRORS FOR {job.name} AFTER {bill.seq}."
