"""Taking the last edit back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from lading.errors import JobStateError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill, Head
from lading.model.moves import PartitionMove
from lading.service.compile.sourced import AnyJob, source_of
from lading.service.edits.begun import settled
from lading.service.edits.edit import UNDO, Edit, check_paused
from lading.service.edits.history import bill_before, cut_off_edit, last_edit, moves_back, name_of
from lading.service.edits.state_moves import with_state_word
from lading.service.edits.written import statement_of
from lading.service.session import Session
from lading.sources.registry import kind_of
from lading.sql.statements.jobs import Statement


def prepare_undo(session: Session, found: JobRecord, *, reason: str = "", statement: Statement | None = None) -> Edit:
    """Take back the last edit: definition and position. An undo is an edit too, and can be taken back.

    Refused when rows were loaded since a position was moved: going back would load them twice, or leave rows out.
    """
    record = settled(session.lading, found)
    check_paused(record, session)
    entries = session.lading.store.list_audit(job_id=record.job_id)
    saved = {found.facts["head"] for found in entries if "head" in found.facts}
    cut_off = cut_off_edit(session.lading, record, saved)
    if cut_off is not None:
        return _undo_cut_off(session, record, cut_off, saved, reason=reason, statement=statement)
    entry = last_edit(entries)
    if entry is None or "definition_before" not in entry.facts:
        msg = f"There is no change of job {record.full_name} to take back"
        raise JobStateError(msg, left="Nothing was changed.", todo="See SHOW LOAD AUDIT.", job_id=record.job_id)
    old = statement_of(session.lading, record)
    new = _statement_before(session, record, entry.facts)
    restored: Bill | None = None
    moves: tuple[PartitionMove, ...] = ()
    seen: Head | None = None
    if head := entry.facts.get("head"):
        newest, restored = bill_before(session, record, head, saved)
        seen, moves = newest.head, moves_back(kind_of(source_of(old).name), newest.positions, restored.positions)
    edit = Edit(
        record=record,
        old=old,
        new=new,
        seen=seen,
        moves=moves,
        restored=restored,
        action=UNDO,
        reason=reason,
        statement=statement,
        facts={"undoes": f"{entry.action} of {entry.at.isoformat(timespec='seconds')} by {entry.user}"},
    )
    return with_state_word(session, edit, "")


def _statement_before(session: Session, record: JobRecord, facts: Mapping[str, str]) -> AnyJob:
    """The definition of before, with the secrets of before where those were changed."""
    slot = facts.get("slot_before", "")
    return statement_of(session.lading, replace(record, definition=facts["definition_before"], secrets_slot=slot))


def _undo_cut_off(
    session: Session,
    record: JobRecord,
    edited: Bill,
    saved: Collection[str],
    *,
    reason: str,
    statement: Statement | None,
) -> Edit:
    """Only the position is taken back: the definition was not changed."""
    old = statement_of(session.lading, record)
    newest, restored = bill_before(session, record, name_of(edited), saved)
    edit = Edit(
        record=record,
        old=old,
        new=old,
        seen=newest.head,
        moves=moves_back(kind_of(source_of(old).name), newest.positions, restored.positions),
        restored=restored,
        action=UNDO,
        reason=reason,
        statement=statement,
        facts={"undoes": f"{edited.reason}, of {edited.billed_at.isoformat(timespec='seconds')}, which was cut off"},
    )
    return with_state_word(session, edit, "")
