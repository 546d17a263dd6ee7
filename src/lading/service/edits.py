"""Operator edits that cannot go wrong: look first, move in one commit, take it back.

An edit is prepared (`Edit`), shown (`plan_of`) and done (`commit_edit`):

1. keep the secrets of before and those of after. Dies here: the old definition stands; it uses the new secrets.
2. compile the new definition against table and stream. Nothing durable.
3. move the position: one commit of the table, without files, that raises the epoch. Dies here: the position has
   moved and the record has the old definition; the job is still PAUSED, and the same statement does the rest. Where
   the source is another one, the old definition refuses to read it: its incarnation differs.
4. save the record and the audit, both or neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lading.commit.steps import run_steps
from lading.errors import ConfigError, JobStateError
from lading.jobs.events import Altered
from lading.jobs.record import JobRecord, JobState, WindowLimits
from lading.jobs.transition import transition
from lading.model.bill import Bill, BillKind
from lading.model.positions import Positions
from lading.service.audit import apply, audit, compact
from lading.service.changes import changed_parts, has_new_secrets
from lading.service.compile_routine import window_of
from lading.service.moves import EditPlan, PartitionMove
from lading.service.result import Result, table
from lading.service.sourced import AnyJob
from lading.sql.definitions import define_routine_load
from lading.sql.masking import without_secrets
from lading.sql.render import render
from lading.sql.statements import CreateRoutineLoad, Statement
from lading.store.records import AuditEntry

if TYPE_CHECKING:
    from lading.service.session import Session

ALTER, UNDO = "ALTER", "UNDO ALTER"
PLAN_COLUMNS = ("What", "From", "To", "Direction", "LoadedAgain", "Skipped", "Unit", "Remark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of one job, ready to be shown or done."""

    record: JobRecord
    old: AnyJob
    """With its secrets, as the new one."""
    new: AnyJob
    moves: tuple[PartitionMove, ...] = ()
    is_new_source: bool = False
    gives_up: tuple[str, ...] = ()
    """Partitions that are not read any longer."""
    restored: Positions | None = None
    """All positions as they were before the edit that is taken back."""
    action: str = ALTER
    reason: str = ""
    statement: Statement | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_move(self) -> bool:
        return bool(self.moves) or self.is_new_source or self.restored is not None


def check_paused(record: JobRecord, session: Session) -> None:
    """Refuse a job that is not paused, in the words of its kind."""
    if record.state is not JobState.PAUSED:
        transition(record, Altered(at=session.lading.clock.now()))


def plan_of(edit: Edit) -> EditPlan:
    """What an edit would do."""
    return EditPlan(
        job=str(edit.record.full_name), moves=edit.moves, changed=changed_parts(edit.old, edit.new), is_done=False
    )


def show_plan(plan: EditPlan) -> Result:
    """The answer of EXPLAIN ALTER: one row for each partition, then one for each part of the definition."""
    rows: list[tuple[object, ...]] = [
        (
            f"partition {move.partition}",
            move.start,
            move.end,
            move.direction,
            _count(move.again, move.again_bytes),
            _count(move.skipped, move.skipped_bytes),
            move.unit,
            move.remark,
        )
        for move in plan.moves
    ]
    rows += [(what, old, new, "", "", "", "", "") for what, (old, new) in (plan.changed or {}).items()]
    return table(PLAN_COLUMNS, rows)


def _count(count: int | None, size: int | None) -> str:
    if count is None:
        return "unknown"
    return f"{count} ({size} bytes)" if size is not None and count else str(count)


def commit_edit(session: Session, edit: Edit) -> EditPlan:
    """Do it. See the numbered list of the module."""
    lading, record = session.lading, edit.record
    kept = without_secrets(edit.new)
    changed = replace(record, definition=render(kept), properties=dict(kept.properties))
    event = Altered(
        definition=changed.definition,
        properties=changed.properties,
        is_undo=edit.action == UNDO,
        window=_window(edit.new),
        at=lading.clock.now(),
    )
    if not edit.is_move:
        transition(record, event)  # Nothing would change: said before anything is written.
    _keep_secrets(session, edit, kept)
    bill: Bill | None = None
    try:
        compiled, _ = lading.compile(changed)
        compiled.close()
        if edit.is_move:
            bill, shown = _commit_move(session, edit, changed)
            event = replace(event, moved=bill.head, current_offset=shown)
    except Exception:
        lading.keep_secrets(record.job_id, edit.old, without_secrets(edit.old))
        raise
    apply(session, record, event, _audit(session, edit, bill))
    plan = replace(plan_of(edit), is_done=True)
    return replace(plan, epoch=bill.epoch, seq=bill.seq) if bill is not None else plan


def _commit_move(session: Session, edit: Edit, changed: JobRecord) -> tuple[Bill, str]:
    lading, reason = session.lading, _reason(session, edit)
    lading.forget_runner(edit.record.job_id)
    if not lading.bills(edit.record, 1):
        # A job that never ran begins where its old definition says, so that the edit can be taken back to there.
        _, first = lading.coordinator(edit.record)
        first.close()
    coordinator, compiled = lading.coordinator(changed)
    try:
        if edit.restored is not None:
            steps = coordinator.restore(edit.restored, reason=reason)
        elif edit.is_new_source:
            steps = coordinator.reopen(reason=reason)
        else:
            changes = {**dict.fromkeys(edit.gives_up), **{move.partition: move.end for move in edit.moves}}
            steps = coordinator.edit(changes, reason=reason)
        bill = run_steps(steps)
        return bill, compiled.show_position(bill.positions)
    finally:
        compiled.close()


def _reason(session: Session, edit: Edit) -> str:
    return f"{edit.action} by {session.user}" + (f": {edit.reason}" if edit.reason else "")


def _window(statement: AnyJob) -> WindowLimits | None:
    return window_of(define_routine_load(statement).properties) if isinstance(statement, CreateRoutineLoad) else None


def _keep_secrets(session: Session, edit: Edit, kept: AnyJob) -> None:
    """The secrets of before stay in the home too, sealed as they were, so that an edit can be taken back."""
    from lading.service.facade import secret_key

    lading, job_id = session.lading, edit.record.job_id
    before = lading.store.read_setting(secret_key(job_id)) or ""
    lading.store.write_setting(secret_key(job_id, before=True), before)
    lading.keep_secrets(job_id, edit.new, kept)


def _audit(session: Session, edit: Edit, bill: Bill | None) -> AuditEntry:
    facts = {"definition_before": edit.record.definition, **edit.facts}
    changed = changed_parts(edit.old, edit.new)
    if edit.reason:
        facts["why"] = edit.reason
    if changed:
        facts["changed"] = compact(changed)
    if edit.moves:
        facts["positions"] = compact({move.partition: [move.start, move.end] for move in edit.moves})
    if bill is not None:
        facts["head"] = bill.head.bill_name.removesuffix(".json")
        facts["epoch"] = str(bill.epoch)
    if has_new_secrets(edit.old, edit.new):
        facts["secrets"] = "changed"
    return audit(session, edit.record, edit.action, statement=edit.statement, facts=facts)


# Taking back.


def prepare_undo(session: Session, record: JobRecord, *, reason: str = "", statement: Statement | None = None) -> Edit:
    """Take back the last edit: definition and position. An undo is an edit too, and can be taken back.

    Refused when rows were loaded since a position was moved: going back would load them twice, or leave rows out.
    """
    check_paused(record, session)
    entries = session.lading.store.list_audit(job_id=record.job_id)
    entry = next((found for found in entries if found.action in (ALTER, UNDO)), None)
    if entry is None or "definition_before" not in entry.facts:
        msg = f"There is no change of job {record.full_name} to take back"
        raise JobStateError(msg, left="Nothing was changed.", todo="See SHOW LOAD AUDIT.", job_id=record.job_id)
    old = session.lading.statement_of(record)
    new = _statement_before(session, record, entry.facts)
    restored: Positions | None = None
    moves: tuple[PartitionMove, ...] = ()
    if head := entry.facts.get("head"):
        restored, now = _positions_before(session, record, head)
        moves = _moves_back(now, restored)
    return Edit(
        record=record,
        old=old,
        new=new,
        moves=moves,
        restored=restored,
        action=UNDO,
        reason=reason,
        statement=statement,
        facts={"undoes": f"{entry.action} of {entry.at.isoformat(timespec='seconds')} by {entry.user}"},
    )


def _statement_before(session: Session, record: JobRecord, facts: Mapping[str, str]) -> AnyJob:
    """The definition of before, with the secrets of before where those were changed."""
    lading, before = session.lading, replace(record, definition=facts["definition_before"])
    return lading.statement_of(before, before=facts.get("secrets") == "changed")


def _positions_before(session: Session, record: JobRecord, head: str) -> tuple[Positions, Positions]:
    """Positions before the edit, and those of now. Raises JobStateError when rows were loaded since."""
    seq = int(head.partition("-")[0])
    newest = session.lading.bills(record, 1)
    if not newest:
        msg = f"Job {record.full_name} has no head in its table"
        raise JobStateError(msg, left="Nothing was changed.", todo="Start the job first.", job_id=record.job_id)
    lineage = session.lading.bills(record, newest[0].seq - seq + 2)
    edited = next((bill for bill in lineage if f"{bill.seq}-{bill.token}" == head), None)
    before = next((bill for bill in lineage if edited is not None and bill.head == edited.continues), None)
    if edited is None or before is None:
        msg = f"The bill of the last change of job {record.full_name} is gone"
        raise JobStateError(
            msg, left="Nothing was changed.", todo="Move the position with ALTER.", job_id=record.job_id
        )
    loads = [bill for bill in lineage if bill.seq > edited.seq and bill.kind is BillKind.LOAD]
    if loads:
        rows = sum(bill.tally.rows.total for bill in loads)
        msg = (
            f"The last change of job {record.full_name} cannot be taken back: {rows} rows were read in {len(loads)} "
            "commits since"
        )
        todo = "Move the position with ALTER; EXPLAIN ALTER says what would be loaded again or skipped."
        raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id, rows=rows)
    return before.positions, newest[0].positions


def _moves_back(now: Positions, before: Positions) -> tuple[PartitionMove, ...]:
    found = []
    for name, state in before.partitions.items():
        there = now.partitions.get(name)
        if there != state:
            start = there.at if there is not None else ""
            remark = "as it was before the change"
            found.append(
                PartitionMove(
                    partition=name, start=start, end=state.at, direction="BACK", again=0, skipped=0, remark=remark
                )
            )
    return tuple(found)


# For HTTP and other callers without SQL.


def plan_edit(session: Session, job: str, positions: Mapping[str, str | None]) -> EditPlan:
    """What moving these partitions would do, by the words of SQL; None gives a partition up. Changes nothing."""
    return plan_of(_prepared(session, job, positions, ""))


def edit_positions(session: Session, job: str, positions: Mapping[str, str | None], *, reason: str = "") -> EditPlan:
    """Move these partitions, through the same code as ALTER."""
    return commit_edit(session, _prepared(session, job, positions, reason))


def _prepared(session: Session, job: str, positions: Mapping[str, str | None], reason: str) -> Edit:
    from lading.service.routine import prepare_routine_move
    from lading.service.streaming import prepare_file_move

    if not positions:
        msg = "No position is named"
        raise ConfigError(msg, left="Nothing was changed.", todo="Name a partition and where it should go.")
    record = session.lading.any_job(job)
    check_paused(record, session)
    old = session.lading.statement_of(record)
    if isinstance(old, CreateRoutineLoad):
        return prepare_routine_move(session, record, old, positions, reason)
    return prepare_file_move(session, record, old, next(iter(positions.values())) or "", reason)


def facts_text(facts: Mapping[str, str]) -> str:
    """Facts as SHOW LOAD AUDIT prints them: what is JSON inside stays JSON."""
    return json.dumps({name: _plain(name, value) for name, value in facts.items()}, ensure_ascii=False)


def _plain(name: str, value: str) -> object:
    return json.loads(value) if name in ("changed", "positions") else value
