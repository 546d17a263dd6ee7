"""Operator edits that cannot go wrong: look first, move in one commit, take it back.

An edit is prepared (`Edit`), shown (`plan_of`) and done (`commit_edit`):

1. keep the new secrets, in a slot of their own. Dies here: nobody reads them; the old definition uses the old ones.
2. compile the new definition against table and stream. Nothing durable.
3. where the position is moved, pause a job that would go on by itself. Dies here: it waits for RESUME.
4. where the position is moved, keep what steps 5 and 6 will write (`begun_edits`). Dies here: no bill fits it.
5. move the position: one commit of the table, without files, that raises the epoch, on the head that was looked at.
   Dies here: the position has moved and the record has the old definition. The next start does the rest. If the store
   lost what step 4 kept, the bill still has the new definition, so that the job is not run with the old one
   (`cut_off`); the same statement does the rest, and UNDO takes the position back.
6. save the record, which names the slot of the secrets, and the audit, both or neither; forget what step 4 kept.
7. forget the secrets of before the last edit but one. Dies here: they stay, sealed.

All of it in the job's turn: another statement waits, or finds the job changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

from lading.commit.steps import run_steps
from lading.errors import JobStateError, LadingError, UnknownOutcomeError
from lading.ids import JobId, new_token
from lading.jobs.events import Altered, PausedByUser
from lading.jobs.record import JobRecord, JobState
from lading.jobs.transition import transition
from lading.model.bill import Bill, BillKind, Head
from lading.model.moves import PartitionMove
from lading.service.compile.compiler import window_of
from lading.service.compile.sourced import AnyJob, source_of
from lading.service.edits.audit import apply, audit, compact
from lading.service.edits.begun import BegunEdit, head_facts, keep_begun, may_have_landed
from lading.service.edits.diff import changed_parts, has_new_secrets, has_secrets
from lading.service.edits.fingerprint import changed_since, mark_of
from lading.service.edits.history import EDITS, last_edit
from lading.service.edits.plan import EditPlan
from lading.service.installation import Installation
from lading.service.result import Result, table
from lading.service.runtime.interrupted import drop_begun
from lading.service.security.endpoints import endpoints_of
from lading.service.security.job_owner import owned_by
from lading.service.session import Session
from lading.service.telemetry.recent import forget_lag
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, Statement
from lading.sql.statements.load_specs import load_spec
from lading.sql.syntax.masking import without_secrets
from lading.sql.syntax.render import render
from lading.store.records import AuditEntry

ALTER, UNDO = EDITS
PLAN_COLUMNS = ("What", "From", "To", "Direction", "LoadedAgain", "Skipped", "Unit", "Remark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of one job, ready to be shown or done."""

    record: JobRecord
    old: AnyJob
    """With its secrets, as the new one."""
    new: AnyJob
    seen: Head | None = None
    """The head that it was looked at; None when the job has none yet."""
    moves: tuple[PartitionMove, ...] = ()
    is_new_source: bool = False
    has_lost_secrets: bool = False
    """The old secrets cannot be opened, and all of them are given again."""
    restored: Bill | None = None
    """The commit whose positions and state come back, all of them."""
    marked: Bill | None = None
    """The newest bill with what becomes of its positions: a file is left out, or loaded after all."""
    resets_state: bool = False
    """What the job keeps of its rows is forgotten."""
    action: str = ALTER
    reason: str = ""
    statement: Statement | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_move(self) -> bool:
        return bool(self.moves) or self.is_new_source or self.goes_to is not None or self.resets_state

    @property
    def goes_to(self) -> Bill | None:
        """The bill whose positions and state are those of the job after it."""
        return self.restored or self.marked


def check_paused(record: JobRecord, session: Session) -> None:
    """Refuse a job that is not paused, in the words of its kind."""
    if record.state is not JobState.PAUSED:
        transition(record, Altered(at=session.lading.clock.now()))


def plan_of(edit: Edit) -> EditPlan:
    """What an edit would do."""
    return EditPlan(
        job=str(edit.record.full_name),
        moves=edit.moves,
        changed=changed_parts(edit.old, edit.new) | _state_change(edit),
        is_done=False,
        seen=mark_of(edit.record, edit.seen, edit.facts.get("undoes", "")),
    )


def _state_change(edit: Edit) -> dict[str, tuple[str, str]]:
    if edit.resets_state:
        return {"state and watermark": ("kept", "begin again")}
    return {"state": ("of now", f"of commit {edit.restored.seq}")} if edit.restored is not None else {}


def check_seen(edit: Edit, seen: str) -> None:
    """Refuse an edit that begins elsewhere than the plan that somebody was shown. Raises JobChangedError."""
    if seen != plan_of(edit).seen:
        raise changed_since(edit.record, "was changed since this was shown", "Look again at what would happen.")


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
    """Do it. See the numbered list of the module. Raises JobChangedError when what was looked at is no longer true."""
    lading, job_id = session.lading, edit.record.job_id
    old, new = load_spec(edit.old), load_spec(edit.new)
    # Who writes what is read of another table is asked for the right to do so from then on.
    is_written = isinstance(edit.statement, AlterJob) and edit.statement.insert is not None
    is_changed = (old.mapping, old.join) != (new.mapping, new.join)
    is_rewritten = new.join is not None and (is_written or is_changed)
    owned = owned_by(lading.store, job_id, session.identity) if is_rewritten else nullcontext()
    with lading.job_locks.hold(job_id), owned:
        return _commit_in_turn(session, edit)


def _is_said_again(session: Session, edit: Edit) -> bool:
    """The same text from another user can be meant: a join is theirs then, and hosts are those that an admin named."""
    match edit.statement:
        case AlterJob(insert=insert) if insert is not None:
            return insert.join is not None
        case AlterRoutineLoad(source=source) if source is not None:
            return session.is_admin and bool(endpoints_of(source.properties))
        case _:
            return False


def _commit_in_turn(session: Session, edit: Edit) -> EditPlan:
    lading, job_id = session.lading, edit.record.job_id
    record = _unchanged(session, edit)
    kept, spec = without_secrets(edit.new), load_spec(edit.new)
    event = Altered(
        definition=render(kept),
        spec=spec,
        properties=dict(kept.properties),
        is_undo=edit.action == UNDO,
        window=window_of(spec),
        secrets_slot=_slot(edit, record),
        is_said_again=_is_said_again(session, edit),
        at=lading.clock.now(),
    )
    changed = _with(record, event)
    if not edit.is_move:
        # Nothing would change: said before anything is written.
        has_new = edit.has_lost_secrets or has_new_secrets(edit.old, edit.new)
        transition(record, event if has_new else replace(event, secrets_slot=None))
    bill: Bill | None = None
    begun: BegunEdit | None = None
    try:
        if changed.secrets_slot != record.secrets_slot:
            whole = source_of(edit.new).properties
            lading.keep_secrets(job_id, whole, source_of(kept).properties, changed.secrets_slot)
        compiled, _ = lading.compile(changed)
        compiled.close()
        if edit.is_move:
            _hold(session, record)
            lading.forget_runner(job_id)
            begun = BegunEdit(event=event, entry=_audit(session, edit), reason=_reason(session, edit), at=event.at)
            keep_begun(lading.store, job_id, begun)
            bill, shown = _commit_move(session, edit, _with(_unchanged(session, edit), event))
            forget_lag(lading.watches, job_id)
            event = replace(
                event,
                moved=bill.head,
                current_offset=shown,
                watermark_us=bill.positions.watermark_us,
                kept=bill.state,
                joined=bill.joined,
            )
    except UnknownOutcomeError:
        raise  # It may have landed, and is finished then: with its secrets.
    except Exception:
        if begun is not None and may_have_landed(lading, record, begun):
            raise  # What failed came after the commit, such as the index of bills: it is finished with its secrets.
        with suppress(LadingError):
            drop_begun(lading.store, job_id)
        if changed.secrets_slot != record.secrets_slot:
            with suppress(LadingError):  # What went wrong first is told; sealed secrets that nobody names do no harm.
                lading.drop_secrets(job_id, changed.secrets_slot)
        raise
    entry = _audit(session, edit)
    if bill is not None:
        entry = replace(entry, facts={**entry.facts, **head_facts(bill)})
    older = last_edit(lading.store.list_audit(job_id=job_id))
    try:
        apply(session, record, event, entry)
    except LadingError as error:
        raise (_half_done(record, bill, error) if bill is not None else error) from error
    drop_begun(lading.store, job_id)
    if older is not None:
        _forget(lading, job_id, older.facts.get("slot_before", ""), {record.secrets_slot, changed.secrets_slot})
    plan = replace(plan_of(edit), is_done=True)
    return replace(plan, epoch=bill.epoch, seq=bill.seq) if bill is not None else plan


def _unchanged(session: Session, edit: Edit) -> JobRecord:
    """The record as it is now. Raises unless the edit still fits it."""
    record = session.lading.runner(edit.record.job_id).record()
    check_paused(record, session)
    if (record.definition, record.secrets_slot) != (edit.record.definition, edit.record.secrets_slot):
        raise changed_since(record, "was altered since it was looked at")
    return record


def _with(record: JobRecord, event: Altered) -> JobRecord:
    return replace(
        record,
        definition=event.definition or record.definition,
        spec=event.spec or record.spec,
        properties=event.properties,
        secrets_slot=event.secrets_slot or record.secrets_slot,
    )


def _slot(edit: Edit, record: JobRecord) -> str:
    """Every edit seals the secrets again, in a slot of their own: those that are in force are never overwritten."""
    has_any = edit.has_lost_secrets or has_secrets(edit.old) or has_secrets(edit.new)
    return f"{new_token():016x}" if has_any else record.secrets_slot


def _hold(session: Session, record: JobRecord) -> None:
    """A job that would go on by itself waits for a person, so that it does not while its position is being moved."""
    if record.reason is not None and not record.reason.needs_attention:
        event = PausedByUser(user=session.user, at=session.lading.clock.now())
        apply(session, record, event, audit(session, record, "PAUSE"))


def _commit_move(session: Session, edit: Edit, changed: JobRecord) -> tuple[Bill, str]:
    lading, reason, seen = session.lading, _reason(session, edit), edit.seen
    if seen is None and not edit.has_lost_secrets:
        seen = _open_first(session, edit, changed)
    coordinator, compiled = lading.coordinator(changed)
    try:
        if (back := edit.goes_to) is not None and seen is not None:
            steps = coordinator.restore(back.positions, state=back.state, reason=reason, seen=seen)
        elif edit.is_new_source:
            steps = coordinator.reopen(reason=reason, seen=seen)
        else:
            moves = {move.partition: move.end for move in edit.moves}
            steps = coordinator.edit(moves, reason=reason, seen=seen, resets_state=edit.resets_state)
        bill = run_steps(steps)
        return bill, compiled.show_position(bill.positions)
    finally:
        compiled.close()


def _open_first(session: Session, edit: Edit, changed: JobRecord) -> Head:
    """A job that never ran begins where its old definition says, so that the edit can be taken back to there."""
    before = edit.record
    old = replace(changed, definition=before.definition, spec=before.spec, secrets_slot=before.secrets_slot)
    coordinator, first = session.lading.coordinator(old)
    first.close()
    bill = coordinator.bill
    if bill is None or bill.kind is not BillKind.OPENING:
        raise changed_since(old, "was opened since it was looked at")
    return bill.head


def _half_done(record: JobRecord, bill: Bill, error: LadingError) -> JobStateError:
    msg = f"The position of job {record.full_name} was moved, but its record could not be saved: {error.what}"
    return JobStateError(
        msg,
        left=f"The table has bill {bill.seq}; definition and secrets are the old ones.",
        todo="RESUME finishes it; UNDO ALTER takes it back.",
        job_id=record.job_id,
        seq=bill.seq,
    )


def _forget(lading: Installation, job_id: JobId, slot: str, used: Collection[str]) -> None:
    """Secrets of before the last edit but one: UNDO does not reach them. Dies before: they stay, sealed."""
    if slot not in used:
        lading.drop_secrets(job_id, slot)


def _reason(session: Session, edit: Edit) -> str:
    return f"{edit.action} by {session.user}" + (f": {edit.reason}" if edit.reason else "")


def _audit(session: Session, edit: Edit) -> AuditEntry:
    facts = {"definition_before": edit.record.definition, **edit.facts}
    if edit.record.secrets_slot:
        facts["slot_before"] = edit.record.secrets_slot
    changed = changed_parts(edit.old, edit.new)
    if edit.reason:
        facts["why"] = edit.reason
    if changed:
        facts["changed"] = compact(changed)
    if edit.resets_state:
        facts["state"] = "reset"
    if edit.moves:
        facts["positions"] = compact({move.partition: [move.start, move.end] for move in edit.moves})
    if has_new_secrets(edit.old, edit.new):
        facts["secrets"] = "changed"
    return audit(session, edit.record, edit.action, statement=edit.statement, facts=facts)


# For HTTP and other callers without SQL.


def facts_text(facts: Mapping[str, str]) -> str:
    """Facts as SHOW LOAD AUDIT prints them: what is JSON inside stays JSON."""
    return json.dumps({name: _plain(name, value) for name, value in facts.items()}, ensure_ascii=False)


def _plain(name: str, value: str) -> object:
    return json.loads(value) if name in ("changed", "positions") else value
