"""What people do to a job without SQL, the same for every face.

Each takes the session of somebody and the record of a job that they may see. What was shown to them has a `seen`: with
it, a change happens only if the job is still as it was shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lading.errors import ConfigError, SecretError
from lading.jobs.record import JobRecord
from lading.model.moves import PartitionMove
from lading.service.edits import rollbacks
from lading.service.edits.diff import has_secrets
from lading.service.edits.edit import ALTER, UNDO, check_seen, plan_of
from lading.service.edits.fingerprint import changed_since
from lading.service.edits.plan import EditPlan
from lading.service.edits.rollbacks import RollbackView
from lading.service.edits.undo import prepare_undo
from lading.service.edits.written import written_statement
from lading.service.recording import Request, recorded
from lading.service.session import Session
from lading.service.statements.loads import Verb, address_of, control_of
from lading.service.statements.positions import edit_positions, plan_edit
from lading.service.views.loads import after_change
from lading.sources.files.aside import SKIP
from lading.sql.statements.jobs import AcceptRollback, AlterJob, AlterRoutineLoad, CreateJob, UndoAlter
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render

__all__ = (
    "ALTER",
    "UNDO",
    "EditPlan",
    "PartitionMove",
    "RollbackView",
    "Verb",
    "accept_rollback",
    "allow_bad_rows",
    "alter_of",
    "alter_text",
    "control",
    "copy_text",
    "has_keys",
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


def allow_bad_rows(session: Session, record: JobRecord, properties: Mapping[str, str], *, reason: str = "") -> None:
    """ALTER the properties that let bad rows pass, as the problem of the job names them, and RESUME it."""
    kind, name = address_of(record)
    if kind == "JOB":
        session.execute(AlterJob(name=name.name, properties=dict(properties), comment=reason or None))
    else:
        session.execute(AlterRoutineLoad(name=name, properties=dict(properties), comment=reason or None))
    control(session, record, "RESUME")


def skip_file(session: Session, record: JobRecord, file: str, *, reason: str = "") -> None:
    """SKIP FILE, and RESUME the job: it never reads that file."""
    session.execute(AlterJob(name=record.name, properties={SKIP: file}, comment=reason or None))
    control(session, record, "RESUME")


def alter_of(session: Session, record: JobRecord, text: str) -> AlterJob | AlterRoutineLoad:
    """The ALTER of this job that a text is. Raises ConfigError when it is anything else."""
    statements = session.parse(text)
    kind, name = address_of(record)
    alter = statements[0] if len(statements) == 1 else None
    if kind == "JOB" and isinstance(alter, AlterJob) and alter.name == name.name:
        return alter
    if isinstance(alter, AlterRoutineLoad) and alter.name.bound(session.database) == name.bound(session.database):
        return alter
    msg = f"The text is not one ALTER of {record.full_name}"
    begin = f"ALTER {kind} {'FOR ' if kind != 'JOB' else ''}{record.full_name}"
    raise ConfigError(msg, left="Nothing was changed.", todo=f"Begin with {begin}.")


def has_keys(session: Session, record: JobRecord) -> bool:
    """Whether the source of a job has values that are shown to nobody."""
    try:
        return bool(session.lading.secrets_of(record)) or has_secrets(written_statement(record))
    except SecretError:
        return True  # They are there, and cannot be opened.


def alter_text(session: Session, record: JobRecord) -> str:
    """An ALTER that names what a job has, without its secrets. The source of a job with keys is left out: written
    without them, it would lose them.
    """
    written = written_statement(record)
    properties = {name: value for name, value in written.properties.items() if name != "offset"}
    _, name = address_of(record)
    if isinstance(written, CreateJob):
        insert = None if has_keys(session, record) else written.insert
        return render(mask(AlterJob(name=name.name, properties=properties, insert=insert)))
    return render(mask(AlterRoutineLoad(name=name, clauses=written.clauses, properties=properties)))


def copy_text(session: Session, record: JobRecord) -> str:
    """The statement of a job under a name that is free, without its secrets."""
    written = written_statement(record)
    store, number, name = session.lading.store, 1, f"{record.name}_copy"
    while store.find_job(replace(record.full_name, name=name)) is not None:
        number += 1
        name = f"{record.name}_copy{number}"
    if isinstance(written, CreateJob):
        return f"{render(mask(replace(written, name=name)))};\n"
    return f"{render(mask(replace(written, name=replace(written.name, name=name))))};\n"


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
