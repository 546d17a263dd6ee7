"""What people do to a job without SQL, the same for every face.

Each takes the session of somebody and the record of a job that they may see. What was shown to them has a `seen`: with
it, a change happens only if the job is still as it was shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from lading.jobs.record import JobRecord
from lading.model.moves import PartitionMove
from lading.service.edits import rollbacks
from lading.service.edits.edit import ALTER, UNDO, check_seen, plan_of
from lading.service.edits.fingerprint import changed_since
from lading.service.edits.plan import EditPlan
from lading.service.edits.rollbacks import RollbackView
from lading.service.edits.undo import prepare_undo
from lading.service.recording import Request, recorded
from lading.service.session import Session
from lading.service.statements.loads import Verb, address_of, control_of
from lading.service.statements.positions import edit_positions, plan_edit
from lading.service.views.loads import after_change
from lading.sql.statements.jobs import AcceptRollback, UndoAlter

__all__ = (
    "ALTER",
    "UNDO",
    "EditPlan",
    "PartitionMove",
    "RollbackView",
    "Verb",
    "accept_rollback",
    "control",
    "look_at_rollback",
    "move",
    "plan_move",
    "plan_undo",
    "undo",
)

Moves = Mapping[str, str | None]


def control(session: Session, record: JobRecord, verb: Verb) -> None:
    """PAUSE, RESUME, or the end of a job: DROP JOB, STOP ROUTINE LOAD."""
    session.execute(control_of(record, verb))


def plan_move(session: Session, record: JobRecord, positions: Moves) -> EditPlan:
    """What moving these partitions would do. Changes nothing."""
    return plan_edit(session, str(record.full_name), positions)


def move(session: Session, record: JobRecord, positions: Moves, *, seen: str = "", reason: str = "") -> EditPlan:
    """Move these partitions. Raises JobChangedError when the job is not as it was when the plan was `seen`."""
    name = str(record.full_name)
    with recorded(session, Request.to_move(name, positions)):
        plan = edit_positions(session, name, positions, reason=reason, seen=seen)
    after_change(session, record)
    session.lading.changed()
    return plan


def plan_undo(session: Session, record: JobRecord) -> EditPlan:
    """What taking back the last change would do. Changes nothing."""
    return plan_of(prepare_undo(session, record))


def undo(session: Session, record: JobRecord, *, seen: str, reason: str = "") -> None:
    """Take back the last change, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    with session.lading.job_locks.hold(record.job_id):
        record = session.lading.runner(record.job_id).record()
        check_seen(prepare_undo(session, record), seen)
        kind, name = address_of(record)
        session.execute(UndoAlter(kind=kind, name=name, comment=reason or None))


def look_at_rollback(session: Session, record: JobRecord) -> RollbackView:
    """What a rollback of the table took from a job. Raises JobStateError when there was none."""
    return rollbacks.look_at(session, record)


def accept_rollback(
    session: Session, record: JobRecord, *, keeps_position: bool, seen: str = "", reason: str = ""
) -> None:
    """Go on after a rollback, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    with session.lading.job_locks.hold(record.job_id):
        record = session.lading.runner(record.job_id).record()
        if seen and rollbacks.look_at(session, record).seen != seen:
            raise changed_since(record, "or its table was changed since this was shown", "Look again.")
        kind, name = address_of(record)
        session.execute(
            AcceptRollback(kind=kind, name=name, keeps_position=keeps_position, comment=reason or None),
        )
