"""The bill: the immutable record of one commit, and the head that names it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from lading.errors import RecordError
from lading.ids import Incarnation, JobId, Token
from lading.model.batch import Gap, Range, StagedFile
from lading.model.joined import JoinedTable
from lading.model.notices import Listening
from lading.model.positions import Positions
from lading.model.state import StateRef
from lading.model.tally import RowCounts, Tally


class BillKind(Enum):
    """Why the commit was made."""

    OPENING = "opening"
    LOAD = "load"
    EDIT = "edit"
    TAKEOVER = "takeover"
    REPLAY = "replay"
    """Rows that were in quarantine were taken up again. No position moves."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Head:
    """What a table keeps of a job: enough to name its newest bill and to compare."""

    seq: int
    token: Token

    @property
    def bill_name(self) -> str:
        return f"{self.seq}-{self.token}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Everything a restart needs to know, as it is true after this commit."""

    job_id: JobId
    job_name: str
    kind: BillKind
    epoch: int
    seq: int
    token: Token
    replaces: Head | None
    """The head this commit moves away from. None only for an opening bill."""
    continues: Head | None
    """The bill whose rows, positions and totals this one goes on from. Another one than `replaces` only after a
    rollback of the table was accepted."""
    accepts_rollback: bool = False
    """An operator said that the rollback of the table up to `table_version` was meant. Only such a bill may be
    committed to a table that was put back behind its head."""
    incarnation: Incarnation
    """The run of the process that wrote it."""
    positions: Positions
    ranges: tuple[Range, ...] = ()
    gaps: tuple[Gap, ...] = ()
    files: tuple[StagedFile, ...] = ()
    quarantine: tuple[str, ...] = ()
    """Where the bad rows of this commit were put, each with its position, its text and the reason."""
    first_error: str = ""
    """The first bad row of this commit, in words."""
    replayed_through: int = 0
    """Rows that commits up to this seq put into quarantine are not taken up again: that was done, or they were given
    up. Those that were bad once more are in the quarantine of the commit that took them up."""
    state: StateRef | None = None
    """What the job keeps between batches; None: nothing."""
    listening: Listening | None = None
    """Partitions that are not done yet, and listeners that are still to be told; None: the job has no listeners."""
    joined: tuple[JoinedTable, ...] = ()
    """The tables that the next batch joins its rows with, and at which snapshots."""
    tally: Tally = Tally()
    totals: Tally = Tally()
    reason: str = ""
    """Why an operator made this change; empty for loads."""
    definition: str = ""
    """The SQL text of the job, secrets left out."""
    table_version: int | None = None
    """The version of the table the commit was prepared on, where the format has one."""
    lading_version: str = ""
    """Which Lading wrote it, for people who read it."""
    planned_at: datetime
    billed_at: datetime

    @property
    def head(self) -> Head:
        return Head(seq=self.seq, token=self.token)

    @property
    def is_without_history(self) -> bool:
        """Whether this is a `resume_copy` of a load: what that commit itself brought is not known any more."""
        return self.kind in (BillKind.LOAD, BillKind.REPLAY) and self.tally.commits == 0

    @property
    def added(self) -> Tally:
        """What the totals grew by. Rows that are taken up from quarantine were counted before, as bad ones."""
        if self.kind is not BillKind.REPLAY:
            return self.tally
        again = self.tally.rows.total
        return self.tally - Tally(rows=RowCounts(total=again, error=again))


def resume_copy(bill: Bill) -> Bill:
    """What a restart needs of a bill, and nothing that grows with the batch: this rides inside the commit itself.

    Left out are the files, ranges, gaps and bad rows of this one commit, which are history.
    """
    return replace(bill, ranges=(), gaps=(), files=(), quarantine=(), first_error="", tally=Tally())


def check_bill(bill: Bill) -> None:
    """Refuse a bill whose parts contradict each other."""
    for claim, holds in _claims(bill):
        if not holds:
            msg = f"Bill {bill.seq}-{bill.token} of job {bill.job_id} is inconsistent: {claim}"
            raise RecordError(
                msg,
                left="Nothing was changed.",
                todo="Restore the bill from a copy of the table's _lading folder; do not edit bills by hand.",
                job_id=bill.job_id,
                seq=bill.seq,
            )


def _claims(bill: Bill) -> list[tuple[str, bool]]:
    tally, totals, old = bill.tally, bill.totals, bill.replaces
    before = totals - bill.added
    at = {name: state.at for name, state in bill.positions.partitions.items()}
    ends = {part.partition: part.end for part in bill.ranges}
    return [
        ("seq, epoch or token is out of range", bill.seq >= 0 and bill.epoch >= 0 and 0 < bill.token < 2**63),
        ("only an opening bill replaces nothing", (old is None) == (bill.kind is BillKind.OPENING)),
        ("it goes on from elsewhere without a rollback", bill.accepts_rollback or bill.continues == old),
        ("its seq does not follow the head it replaces", old is None or bill.seq > old.seq),
        ("its rows by fate do not add up", tally.rows.adds_up and totals.rows.adds_up),
        ("its files do not hold the rows written", sum(f.rows for f in bill.files) == tally.written),
        ("it writes other rows than it loads", _may_differ(bill) or tally.written == tally.rows.loaded),
        ("it counts other files than it lists", len(bill.files) == tally.data_files),
        ("it counts other bytes than its files have", sum(f.size_bytes for f in bill.files) == tally.data_bytes),
        ("its totals are smaller than its own part", before.rows.adds_up and min(_numbers(before)) >= 0),
        ("its positions are not where its ranges end", all(at.get(name) == end for name, end in ends.items())),
        ("it is not a load but has ranges", bill.kind is BillKind.LOAD or not bill.ranges),
        ("it is not a load but has rows", bill.kind in (BillKind.LOAD, BillKind.REPLAY) or not bill.files),
        ("it takes up rows that it quarantines itself", 0 <= bill.replayed_through < max(bill.seq, 1)),
    ]


def _may_differ(bill: Bill) -> bool:
    """Whether rows that are written are other ones than those that were loaded: results, or what a join made."""
    return bill.state is not None or bool(bill.joined)


def _numbers(tally: Tally) -> list[int]:
    return [
        tally.received_bytes,
        tally.source_files,
        tally.source_bytes,
        tally.data_files,
        tally.data_bytes,
        tally.written,
        tally.commits,
    ]
