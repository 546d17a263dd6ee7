"""Step 4, the content: how the next bill follows from the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from lading import __version__
from lading.ids import Incarnation, Token
from lading.model.batch import BatchPlan, Range, Report, StagedFile
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import Job
from lading.model.joined import JoinedTable
from lading.model.notices import Listening
from lading.model.positions import Positions
from lading.model.state import StateChange, StateRef
from lading.model.tally import RowCounts, Tally, sum_rows

ListeningOf = Callable[[Sequence[StagedFile]], Listening | None]
"""What is to be told after a commit of these files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What is fixed when a commit is prepared."""

    token: Token
    incarnation: Incarnation
    planned_at: datetime
    billed_at: datetime
    table_version: int | None = None


def draft_opening(job: Job, positions: Positions, stamp: Stamp) -> Bill:
    """Seq 0: concrete starts, no rows."""
    return _draft(job, None, BillKind.OPENING, positions, stamp)


def draft_takeover(job: Job, base: Bill, stamp: Stamp) -> Bill:
    """Nothing changes but the head: a commit that was prepared on the old head can no longer land."""
    return _draft(job, base, BillKind.TAKEOVER, base.positions, stamp)


def draft_refresh(job: Job, base: Bill, joined: tuple[JoinedTable, ...], stamp: Stamp) -> Bill:
    """The same, and the next batch joins its rows with these snapshots."""
    return replace(draft_takeover(job, base, stamp), joined=joined)


def draft_edit(job: Job, base: Bill, positions: Positions, stamp: Stamp, *, reason: str) -> Bill:
    """An operator moved the position: the epoch rises. What is read again is joined with tables as they are then."""
    return _draft(job, base, BillKind.EDIT, positions, stamp, epoch=next_epoch(base), joined=(), reason=reason)


def draft_restart(
    job: Job, restored: Bill | None, newest: Bill | None, goes_on: Bill, highest_seq: int, stamp: Stamp, *, reason: str
) -> Bill:
    """Go on after a rollback, above every seq and epoch that was ever used.

    Rows and totals are those of `restored`, which the table has; positions, and the state that accounts for what was
    read up to them, are those of `goes_on`. A table that lost its head as well is opened again.
    """
    kind = BillKind.OPENING if newest is None else BillKind.EDIT
    bill = _draft(job, restored, kind, goes_on.positions, stamp, state=goes_on.state, reason=reason)
    return replace(
        bill,
        replaces=newest.head if newest is not None else None,
        accepts_rollback=True,
        seq=highest_seq + 1,
        epoch=max(next_epoch(old) for old in (restored, newest, goes_on) if old is not None),
    )


def draft_load(
    job: Job,
    base: Bill,
    plan: BatchPlan,
    reports: Sequence[Report],
    positions: Positions,
    stamp: Stamp,
    change: StateChange | None = None,
    listening: ListeningOf = lambda files: None,
) -> Bill:
    """Rows, and the positions and the state that account for them."""
    files = tuple(file for report in reports for file in report.files) if change is None else change.files
    tally, merged = tally_of(reports, files, change), change or StateChange(state=None)
    return _draft(
        job,
        base,
        BillKind.LOAD,
        positions,
        stamp,
        ranges=tuple(ranges_of(reports)),
        gaps=plan.gaps,
        files=files,
        listening=listening(files),
        # A commit without rows may be made while there is no file to learn the columns from.
        state=change.state if change is not None else base.state if job.keeps_state else None,
        # A job that joins no more names none.
        joined=plan.joined,
        quarantine=(*(place for report in reports for place in report.quarantine), *merged.quarantine),
        first_error=next((report.first_error for report in reports if report.first_error), merged.first_error),
        tally=tally,
        totals=next_totals(base, tally),
    )


def draft_replay(job: Job, base: Bill, reports: Sequence[Report], stamp: Stamp, *, reason: str) -> Bill:
    """Rows of quarantine, loaded, left out or bad once more. No position moves.

    All that is in quarantine up to the base was taken up; what was bad again is in the quarantine of this commit.
    """
    files = tuple(file for report in reports for file in report.files)
    tally = tally_of(reports, files)
    bill = _draft(
        job,
        base,
        BillKind.REPLAY,
        base.positions,
        stamp,
        files=files,
        quarantine=tuple(place for report in reports for place in report.quarantine),
        first_error=next((report.first_error for report in reports if report.first_error), ""),
        replayed_through=base.seq,
        tally=tally,
        reason=reason,
    )
    return replace(bill, totals=base.totals + bill.added)


def next_epoch(base: Bill) -> int:
    """An edit starts a new lineage: rows after a rewind are never taken for old ones."""
    return base.epoch + 1


def next_totals(base: Bill, tally: Tally) -> Tally:
    """Totals come from the bill before, so that no restart can change them."""
    return base.totals + tally


def rows_of(reports: Sequence[Report], change: StateChange | None) -> RowCounts:
    """The rows of a batch by fate: what the reading tasks say, and what merging made of rows that they handed on."""
    rows = sum_rows(report.rows for report in reports)
    if change is None:
        return rows
    return replace(
        rows,
        loaded=rows.loaded - change.duplicates - change.unselected - change.errors,
        duplicate=change.duplicates,
        unselected=rows.unselected + change.unselected,
        error=rows.error + change.errors,
    )


def tally_of(reports: Sequence[Report], files: Sequence[StagedFile], change: StateChange | None = None) -> Tally:
    """What one batch counts."""
    return Tally(
        rows=rows_of(reports, change),
        received_bytes=sum(report.received_bytes for report in reports),
        source_files=sum(report.source_files for report in reports),
        source_bytes=sum(report.source_bytes for report in reports),
        data_files=len(files),
        data_bytes=sum(file.size_bytes for file in files),
        written=sum(file.rows for file in files),
        ahead=sum(report.ahead for report in reports),
        commits=1,
    )


def ranges_of(reports: Sequence[Report]) -> list[Range]:
    """What was read, one range per partition: the splits of a partition are joined."""
    joined: dict[str, Range] = {}
    for report in reports:
        first = joined.get(report.partition)
        joined[report.partition] = Range(
            partition=report.partition, start=first.start if first else report.start, end=report.end
        )
    return list(joined.values())


def _draft(
    job: Job,
    base: Bill | None,
    kind: BillKind,
    positions: Positions,
    stamp: Stamp,
    *,
    epoch: int | None = None,
    totals: Tally | None = None,
    state: StateRef | Literal["as before"] | None = "as before",
    listening: Listening | Literal["as before"] | None = "as before",
    **parts: object,
) -> Bill:
    replaces: Head | None = base.head if base else None
    inherited = base.epoch if base else 0
    return Bill(
        job_id=job.job_id,
        job_name=job.name,
        kind=kind,
        epoch=inherited if epoch is None else epoch,
        seq=base.seq + 1 if base else 0,
        token=stamp.token,
        replaces=replaces,
        continues=replaces,
        incarnation=stamp.incarnation,
        positions=positions,
        totals=totals or (base.totals if base else Tally()),
        state=(base.state if base else None) if state == "as before" else state,
        # An operator moves positions, not what is in the table: partitions are as done as they were.
        listening=(base.listening if base else None) if listening == "as before" else listening,
        **{**_kept_of(base), **parts},  # type: ignore[arg-type]  # callers above pass fields of Bill
        definition=job.definition,
        table_version=stamp.table_version,
        lading_version=__version__,
        planned_at=stamp.planned_at,
        billed_at=stamp.billed_at,
    )


def _kept_of(base: Bill | None) -> dict[str, object]:
    """What goes on from one bill to the next unless it is said otherwise."""
    if base is None:
        return {}
    return {"joined": base.joined, "replayed_through": base.replayed_through}


def has_moved(base: Bill, bill: Bill) -> bool:
    """Whether a batch changed anything a restart would see: positions, or rows by fate."""
    was, now = base.positions, bill.positions
    told = bill.listening != base.listening
    is_moved = now.partitions != was.partitions or now.watermark_us != was.watermark_us
    return is_moved or bill.tally.rows.total > 0 or bool(bill.gaps) or bill.state != base.state or told
