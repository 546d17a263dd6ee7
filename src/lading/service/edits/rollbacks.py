"""A table that somebody put back to an earlier state: what that took from a job, and how the job goes on.

RESTORE and rollback bring old rows back and leave the heads of jobs alone; a copy of an old folder brings old heads
back as well. Either way the job stops, because "go on behind rows that are gone" and "load them again" are both right
for somebody. An operator looks (`look_at`) and says which (`accept`):

1. one commit of the table, without files, on the head that was looked at. Its positions are those of the newest commit
   (KEEP POSITION) or those of the commit that the table now ends with (LOAD AGAIN); rows and totals are those that the
   table has. Dies before: nothing has changed. Dies after: the job is open again, its record says that it is paused
   because of the rollback, and RESUME goes on from the new head.
2. the record and the audit, both or neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from lading.commit.rollback import RollbackSight, accounts_for, newest_proved
from lading.commit.steps import run_steps
from lading.errors import HeadLostError, JobStateError, RolledBackError
from lading.jobs.events import RollbackAccepted, bill_facts
from lading.jobs.record import JobRecord, JobState
from lading.model.bill import Bill, BillKind, Head
from lading.service.edits.audit import apply, audit
from lading.service.edits.fingerprint import changed_since, mark_of
from lading.service.result import Result, table
from lading.service.session import Session
from lading.sql.statements.jobs import Statement
from lading.tables.base import LakeTable

ACTION = "ACCEPT ROLLBACK"
COLUMNS = (
    "JobName",
    "Table",
    "CommittedSeq",
    "CommittedAt",
    "TableEndsWithSeq",
    "TableEndsWithAt",
    "CommitsGone",
    "RowsGone",
    "PositionKept",
    "PositionOfTable",
    "Remark",
)
_NEITHER = "Restore the table with its folder _lading, or DROP the job and CREATE it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackView:
    """What a rollback took from a job, for people."""

    job: str
    table: str
    committed_seq: int
    """The newest commit of the job that has certainly landed."""
    committed_at: str
    ends_with_seq: int | None
    """The newest commit whose rows the table has; None: none, or nobody can tell."""
    ends_with_at: str
    commits_gone: int | None
    rows_gone: int | None
    """None: the bills that would tell are gone."""
    position_kept: str
    """Where the job goes on with KEEP POSITION."""
    position_of_table: str
    """Where it goes on with LOAD AGAIN."""
    can_keep: bool
    can_load_again: bool
    remark: str
    seen: str
    """Stands for what was looked at, to be given back with the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The same with all parts."""

    head: Head | None
    newest: Head
    kept: Bill | None
    back: Bill | None
    """None: the commit that the table ends with is not known, or its bill is gone."""
    restored: Head | None
    is_known: bool
    version: int | None
    gone: tuple[Bill, ...] | None
    doubles: bool
    """To keep the position is to load rows that the table has."""


def look_at(session: Session, record: JobRecord) -> RollbackView:
    """What somebody took away. Raises JobStateError when the table was not put back behind the job."""
    target = session.lading.open_target(record)
    return _view(session, record, _find(record, target))


def show(view: RollbackView) -> Result:
    """The answer of SHOW ROLLBACK."""
    row = (
        view.job,
        view.table,
        view.committed_seq,
        view.committed_at,
        view.ends_with_seq,
        view.ends_with_at,
        view.commits_gone,
        view.rows_gone,
        view.position_kept,
        view.position_of_table,
        view.remark,
    )
    return table(COLUMNS, [row])


def accept(
    session: Session,
    record: JobRecord,
    *,
    keeps_position: bool,
    reason: str = "",
    seen: str = "",
    statement: Statement | None = None,
) -> Bill:
    """The rollback was meant: go on behind what was taken away, or load it again. The job stays PAUSED.

    With the `seen` of a view, only if the table and the job are as they were then. Raises JobChangedError.
    """
    lading = session.lading
    with lading.job_locks.hold(record.job_id):
        record = lading.runner(record.job_id).record()
        if record.state is not JobState.PAUSED:
            msg = f"Job {record.full_name} is {record.state.value}"
            raise JobStateError(msg, left="Nothing was changed.", todo="PAUSE it first.", job_id=record.job_id)
        found = _find(record, lading.open_target(record))
        if seen and seen != _mark(record, found):
            todo = "Look again at what was taken away."
            raise changed_since(record, "or its table was changed since this was shown", todo)
        sight = _sight(record, found, keeps_position=keeps_position)
        lading.drop_runner(record.job_id)
        coordinator, compiled = lading.new_coordinator(record)
        what = "keep the position" if keeps_position else "load again"
        why = f"{ACTION} by {session.user}: {what}" + (f": {reason}" if reason else "")
        try:
            bill = run_steps(coordinator.accept_rollback(sight, reason=why))
            offset = compiled.show_position(bill.positions)
        finally:
            compiled.close()
        facts = {"choice": what, "head": bill.head.bill_name.removesuffix(".json"), "epoch": str(bill.epoch)}
        facts |= {"why": reason} if reason else {}
        event = RollbackAccepted(
            **bill_facts(bill),
            current_offset=offset,
            message=f"User {session.user} accepted the rollback of the table: {what}",
            at=lading.clock.now(),
        )
        apply(session, record, event, audit(session, record, ACTION, statement=statement, facts=facts))
    return bill


def _find(record: JobRecord, target: LakeTable) -> _Found:
    job_id, bills = record.job_id, target.bills
    head = target.read_head_unchecked(job_id)
    heads = bills.heads(job_id)
    above = [bills.read(job_id, other) for other in heads if other.seq > (head.seq if head else -1)]
    newest = newest_proved(head, record.last_seen, above)
    if newest is None or (newest == head and not _is_behind(record, target)):
        msg = f"Table {record.target} was not rolled back behind job {record.full_name}"
        raise JobStateError(msg, left="Nothing was changed.", todo="RESUME the job if it is PAUSED.", job_id=job_id)
    is_known, restored = True, None
    try:
        restored = target.ends_with(job_id)
    except HeadLostError:
        is_known = False
    back = _read(target, record, restored)
    if is_known and restored is None:
        # The table has nothing of the job: to load again is to begin where it began.
        first = _read(target, record, heads[0]) if heads else None
        back = first if first is not None and first.kind is BillKind.OPENING else None
    kept = _read(target, record, newest)
    return _Found(
        head=head,
        newest=newest,
        kept=kept,
        back=back,
        restored=restored,
        is_known=is_known,
        version=target.version(),
        gone=_gone(target, record, newest, restored) if is_known else None,
        doubles=_doubles(target, kept, restored if back is not None else None),
    )


def _is_behind(record: JobRecord, target: LakeTable) -> bool:
    try:
        target.read_head(record.job_id)
    except RolledBackError:
        return True
    return False


def _read(target: LakeTable, record: JobRecord, head: Head | None) -> Bill | None:
    try:
        return target.bills.read(record.job_id, head) if head is not None else None
    except HeadLostError:
        return None


def _gone(target: LakeTable, record: JobRecord, newest: Head, restored: Head | None) -> tuple[Bill, ...] | None:
    """The commits between what was and what is; None when the bills of some are gone."""
    found: list[Bill] = []
    at: Head | None = newest
    while at is not None and at != restored:
        bill = _read(target, record, at)
        if bill is None or bill.is_without_history:
            return None
        found.append(bill)
        at = bill.continues
    return tuple(found) if at == restored else None


def _doubles(target: LakeTable, kept: Bill | None, restored: Head | None) -> bool:
    return kept is not None and restored is not None and not accounts_for(target.bills, kept, restored)


def _sight(record: JobRecord, found: _Found, *, keeps_position: bool) -> RollbackSight:
    goes_on = found.kept if keeps_position else found.back
    if goes_on is None:
        known = "which commit the table was rolled back to is not known" if not found.is_known else "its bill is gone"
        choice, other = ("KEEP POSITION", "LOAD AGAIN") if keeps_position else ("LOAD AGAIN", "KEEP POSITION")
        msg = f"{choice} is not possible for job {record.full_name}: {known}"
        todo = f"Use {other}, and move the position with ALTER; or restore the table, or make a new job."
        if found.kept is None and found.back is None:
            todo = _NEITHER
        raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id)
    # Without the bill of what the table has, totals begin again.
    restored = found.restored if found.back is not None else None
    return RollbackSight(head=found.head, restored=restored, goes_on=goes_on.head, version=found.version)


def _mark(record: JobRecord, found: _Found) -> str:
    return mark_of(record, found.head, f"{found.newest} {found.restored} {found.version}")


def _view(session: Session, record: JobRecord, found: _Found) -> RollbackView:
    compiled, _ = session.lading.compile(record)
    try:
        kept = compiled.show_position(found.kept.positions) if found.kept is not None else ""
        back = compiled.show_position(found.back.positions) if found.back is not None else ""
    finally:
        compiled.close()
    has_rows_of = found.restored is not None and found.back is not None
    return RollbackView(
        job=str(record.full_name),
        table=record.target,
        committed_seq=found.newest.seq,
        committed_at=_at(found.kept),
        ends_with_seq=found.restored.seq if found.restored is not None else None,
        ends_with_at=_at(found.back) if has_rows_of else "",
        commits_gone=len(found.gone) if found.gone is not None else None,
        rows_gone=sum(bill.tally.written for bill in found.gone) if found.gone is not None else None,
        position_kept=kept,
        position_of_table=back,
        can_keep=found.kept is not None and not found.doubles,
        can_load_again=found.back is not None,
        remark=_remark(found),
        seen=_mark(record, found),
    )


def _at(bill: Bill | None) -> str:
    return bill.billed_at.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") if bill is not None else ""


def _remark(found: _Found) -> str:
    if not found.is_known:
        return "The table does not keep enough history to tell which commit it was rolled back to"
    if found.back is None and found.kept is None:
        return f"The table has no commit of this job that its bills tell of, as one that was made again. {_NEITHER}"
    if found.back is None:
        return "The bill of the commit that the table ends with is gone: only KEEP POSITION is possible"
    if found.restored is None:
        return "The table has no commit of this job: LOAD AGAIN begins where the job began"
    if found.kept is None:
        return "The bill of the newest commit is gone: only LOAD AGAIN is possible"
    if found.doubles:
        return "The table has rows that an earlier rollback had taken away: only LOAD AGAIN loads none of them twice"
    return ""
