"""What the statements about jobs do, in either dialect: create, control and alter."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from lading.errors import JobNotFoundError, JobStateError
from lading.jobs.dialects import DIALECTS, ROUTINE, STREAMING, Dialect
from lading.jobs.events import Event, PausedByUser, Resumed, Stopped
from lading.jobs.record import JobName, JobRecord, JobState
from lading.model.bill import Head
from lading.model.moves import PartitionMove
from lading.model.names import INTERNAL, split_key
from lading.model.positions import Positions, is_replaced
from lading.service.compile.compiler import open_source
from lading.service.compile.sourced import AnyJob, dialect_of, source_of
from lading.service.edits.audit import apply, audit
from lading.service.edits.begun import finish_begun, settled
from lading.service.edits.edit import Edit, check_paused
from lading.service.edits.lost_secrets import statement_to_alter
from lading.service.edits.plan import plan_given_up, plan_moves, plan_new_source
from lading.service.edits.state_moves import PROPERTY as STATE_PROPERTY
from lading.service.edits.state_moves import take_state_word, with_state_word
from lading.service.edits.written import statement_of
from lading.service.result import Result, done
from lading.service.runtime.ended_jobs import tell_table
from lading.service.runtime.kept_columns import accept_columns
from lading.service.runtime.refused import drop_refused
from lading.service.security.job_owner import keep_first_owner
from lading.service.security.reach import job_rules
from lading.service.session import Session
from lading.service.statements.bound import bound_names, database_of
from lading.service.statements.creating import check_joined
from lading.service.statements.errors_tables import bound_errors_table, check_errors_table
from lading.service.statements.file_words import prepare_file
from lading.service.statements.reach import check_listeners, check_source
from lading.service.telemetry.recent import forget_lag
from lading.sources.files.aside import take_file_word
from lading.sources.kind import OpenSource
from lading.sources.registry import check_load, is_stream, kind_of, stream_kind
from lading.sql.statements.alter import (
    AlteredRoutineLoad,
    alter_routine_load,
    alter_streaming_job,
    check_keys_stay,
    names_same_source,
)
from lading.sql.statements.jobs import (
    AlterJob,
    AlterRoutineLoad,
    ControlJob,
    ControlRoutineLoad,
    CreateJob,
    CreateRoutineLoad,
)
from lading.sql.statements.load_specs import load_spec, load_with_secrets
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.users import Privilege

Verb = Literal["PAUSE", "RESUME", "STOP"]
_T = TypeVar("_T", CreateJob, CreateRoutineLoad)


# Finding.


def find_job(
    session: Session, dialect: Dialect, name: QualifiedName, *, include_final: bool = False
) -> JobRecord | None:
    """The job of a name: the one that is alive, or the newest of those that were."""
    database = database_of(session, name) if dialect.has_database else ""
    wanted = JobName(kind=dialect.kind, name=name.name, database=database)
    found = session.lading.store.find_job(wanted, include_final=include_final)
    return found.record if found is not None and session.sees(found.record) else None


def operable(session: Session, dialect: Dialect, name: QualifiedName) -> JobRecord:
    """The job of a name that has not ended."""
    record = find_job(session, dialect, name)
    if record is None:
        raise not_found(session, dialect, name, dialect.missing)
    return record


def not_found(session: Session, dialect: Dialect, name: QualifiedName, text: str) -> JobNotFoundError:
    """The error for a job that is not there, or not for this session, in the words of a dialect."""
    msg = text.format(own=name.name, db=database_of(session, name))
    return JobNotFoundError(msg, left="Nothing was changed.", todo=dialect.list_todo, name=str(name))


def find_any(session: Session, name: QualifiedName, *, include_final: bool = False) -> JobRecord:
    """The job of a name: a streaming job, or else a routine load of that or of the current database."""
    for dialect in DIALECTS.values():
        if name.db is None or dialect.has_database:
            record = find_job(session, dialect, name, include_final=include_final)
            if record is not None:
                return record
    dialect = STREAMING if name.db is None else ROUTINE
    raise not_found(session, dialect, name, dialect.unseen)


def listed(session: Session, dialect: Dialect, database: str = "", *, include_final: bool = False) -> list[JobRecord]:
    """Jobs that the user may see: those of a database, where names belong to one."""
    place = database if dialect.has_database and database else None
    stored = session.lading.store.list_jobs(kind=dialect.kind, database=place, include_final=include_final)
    return [each.record for each in stored if session.sees(each.record)]


def address_of(record: JobRecord) -> tuple[Literal["JOB", "ROUTINE LOAD"], QualifiedName]:
    """How statements call a job."""
    if not record.dialect.has_database:
        return record.dialect.form, QualifiedName(name=record.name)
    catalog, database = split_key(record.database)
    named = None if catalog == INTERNAL else catalog
    return record.dialect.form, QualifiedName(name=record.name, db=database, catalog=named)


def control_of(record: JobRecord, verb: Verb) -> ControlJob | ControlRoutineLoad:
    """The statement that pauses, resumes or ends a job."""
    _, name = address_of(record)
    if name.db is not None:
        return ControlRoutineLoad(verb=verb, name=name)
    return ControlJob(verb="DROP" if verb == "STOP" else verb, name=name.name)


# Controlling.


def control(session: Session, statement: ControlJob | ControlRoutineLoad) -> Result:
    """PAUSE, RESUME, STOP or DROP of one, or of all of the current database, leaving out those that refuse."""
    dialect = dialect_of(statement)
    verb: Verb = "STOP" if statement.verb == "DROP" else statement.verb
    if statement.name is None:
        for record in listed(session, dialect, session.database):
            try:
                _control(session, record, verb)
            except JobStateError:
                continue
        return done()
    name = statement.name if isinstance(statement.name, QualifiedName) else QualifiedName(name=statement.name)
    if isinstance(statement, ControlJob) and statement.if_exists and find_job(session, dialect, name) is None:
        return done()
    _control(session, operable(session, dialect, name), verb)
    return done()


def _control(session: Session, record: JobRecord, verb: Verb) -> None:
    with session.lading.job_locks.hold(record.job_id):
        _control_in_turn(session, session.lading.runner(record.job_id).record(), verb)


def _control_in_turn(session: Session, record: JobRecord, verb: Verb) -> None:
    lading, now = session.lading, session.lading.clock.now()
    if verb == "RESUME":
        finish_begun(lading, record)
        accept_columns(lading.store, record)
        if record.spec is not None and record.spec.join is not None:
            keep_first_owner(lading.store, record.job_id, session.identity)
    events: dict[str, Event] = {
        "PAUSE": PausedByUser(user=session.user, at=now),
        "RESUME": Resumed(at=now),
        "STOP": Stopped(at=now),
    }
    word = record.dialect.end_verb if verb == "STOP" else verb
    apply(session, record, events[verb], audit(session, record, word))
    if verb != "RESUME" or record.state is JobState.RUNNING:
        lading.forget_runner(record.job_id)  # A RUNNING job that is resumed is opened again.
    if verb != "RESUME" and not is_stream(record.spec):
        forget_lag(lading.watches, record.job_id)  # Files are counted by the runner alone.
    if verb == "STOP":
        drop_refused(lading.store, record.job_id)
        tell_table(lading.catalog, record)


# Changing.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What ALTER makes of a statement."""

    new: AnyJob
    statement: AlterJob | AlterRoutineLoad
    seen: Head | None = None
    moves: tuple[PartitionMove, ...] = field(default=())
    is_new_source: bool = False


def prepare_alter(session: Session, statement: AlterJob | AlterRoutineLoad) -> Edit:
    """ALTER JOB, ALTER ROUTINE LOAD, checked against the positions of the job and its source."""
    name = statement.name if isinstance(statement.name, QualifiedName) else QualifiedName(name=statement.name)
    record = settled(session.lading, operable(session, dialect_of(statement), name))
    check_paused(record, session)
    word, properties = take_state_word(bound_errors_table(session, statement.properties))
    file, properties = take_file_word(properties)
    if file is not None:
        return prepare_file(session, record, statement, file, word)
    statement = replace(statement, properties=properties)
    # Keys that cannot be opened any more matter only where the old source is kept.
    if isinstance(statement, AlterJob):
        whole = statement_to_alter(session, record, statement.insert.source if statement.insert else None)
        old = _form(record, whole.statement, CreateJob)
        is_state_alone = bool(word) and not properties and statement.insert is None
        change = (
            _Change(new=old, statement=statement) if is_state_alone else _changed_job(session, record, old, statement)
        )
    else:
        whole = statement_to_alter(session, record, statement.source)
        change = _changed_routine(session, record, _form(record, whole.statement, CreateRoutineLoad), statement)
    said = {**change.statement.properties, **({STATE_PROPERTY: word} if word else {})}
    edit = Edit(
        record=record,
        old=whole.statement,
        new=change.new,
        seen=change.seen,
        moves=change.moves,
        is_new_source=change.is_new_source,
        has_lost_secrets=whole.has_lost_secrets,
        reason=statement.comment or "",
        statement=replace(change.statement, properties=said),
    )
    check_errors_table(session, load_spec(edit.new), load_spec(edit.old))
    return with_state_word(session, edit, word)


def _changed_job(session: Session, record: JobRecord, old: CreateJob, statement: AlterJob) -> _Change:
    kind, insert = kind_of(old.insert.source.name), statement.insert
    _, properties = kind.located(old.insert.source.properties, statement.properties)
    if insert is not None:
        where, _ = kind_of(insert.source.name).located(insert.source.properties, {})
        insert = bound_names(session, replace(insert, source=replace(insert.source, properties=where)))
        check_source(session, insert.source, old.insert.source)
    statement = replace(statement, properties=properties, insert=insert)
    offset = properties.get("offset")
    if offset is None or kind.keeps_offset:
        new = _altered_job(session, old, statement)
    else:
        # Where a stream is read next is no part of the definition: the bills say it.
        others = replace(statement, properties={name: at for name, at in properties.items() if name != "offset"})
        new = _altered_job(session, old, others) if others.properties or insert is not None else old
    check_listeners(session, new.properties, old.properties)
    if offset is None:
        return _Change(new=new, statement=statement)
    seen, positions = _positions(session, record, old)
    with closing(_opened(session, record, new)) as opened:
        moves = plan_moves(kind, opened, positions, kind.places_of(offset, positions.partitions))
    return _Change(new=new, statement=statement, seen=seen, moves=moves)


def _altered_job(session: Session, old: CreateJob, statement: AlterJob) -> CreateJob:
    kind = kind_of(old.insert.source.name)
    fixed = (kind.subject, *kind.start_properties)
    new = alter_streaming_job(old, statement, current_db=session.database, fixed=fixed)
    check_load(new)
    check_joined(session, load_spec(new))
    return new


def _changed_routine(
    session: Session, record: JobRecord, old: CreateRoutineLoad, statement: AlterRoutineLoad
) -> _Change:
    if session.rights is not None and not session.rights.allow(Privilege.ADMIN):
        # A user who may load into a table need not know the keys of its jobs.
        check_keys_stay(old, statement, stream_kind(old.source.name))
    if statement.source is not None:
        asked = {**old.source.properties, **statement.source.properties}
        check_source(session, replace(statement.source, name=old.source.name, properties=asked), old.source)
    seen, positions = _positions(session, record, old)
    consumed, kind = [*positions.partitions], stream_kind(old.source.name)
    again: AlteredRoutineLoad | None = None
    if names_same_source(old, statement, kind) and positions.incarnation:
        # A topic or stream that is named again is asked whether it was made again.
        again = alter_routine_load(old, statement, kind, consumed=consumed, is_made_again=True)
        with closing(_opened(session, record, again.statement)) as opened:
            if not is_replaced(positions, opened.driver.list_partitions().incarnation):
                again = None
    altered = again or alter_routine_load(old, statement, kind, consumed=consumed)
    check_listeners(session, altered.statement.properties, old.properties)
    if statement.source is not None:
        kind.check(load_with_secrets(altered.statement))
    moves: tuple[PartitionMove, ...] = ()
    if altered.is_new_source or altered.moves:
        with closing(_opened(session, record, altered.statement)) as opened:
            if altered.is_new_source:
                moves = plan_new_source(positions, opened.driver.open(opened.start))
            else:
                moves = plan_moves(kind, opened, positions, altered.moves)
    if not altered.is_new_source:
        left_out = kind.given_up_by(old.source.properties, altered.statement.source.properties, positions)
        moves += plan_given_up(positions, left_out)
    return _Change(
        new=altered.statement, statement=statement, seen=seen, moves=moves, is_new_source=altered.is_new_source
    )


def prepare_move(session: Session, record: JobRecord, positions: Mapping[str, str | None], reason: str) -> Edit:
    """Positions alone."""
    old = statement_of(session.lading, record)
    kind = kind_of(source_of(old).name)
    seen, known = _positions(session, record, old)
    with closing(_opened(session, record, old)) as opened:
        moves = plan_moves(kind, opened, known, positions)
    new = replace(old, properties=kind.moved(old.properties, moves))
    return with_state_word(session, Edit(record=record, old=old, new=new, seen=seen, moves=moves, reason=reason), "")


def _form(record: JobRecord, found: AnyJob, form: type[_T]) -> _T:
    if not isinstance(found, form):
        msg = f"The definition of {record.full_name} is not CREATE {record.dialect.form}"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="Drop the job and create it again.")
    return found


def _opened(session: Session, record: JobRecord, statement: AnyJob) -> OpenSource:
    """The source of a definition, for questions only: no row is read."""
    lading, load = session.lading, load_with_secrets(statement)
    addresses = job_rules(lading.endpoints, record.job_id, load.source, is_trusted=session.is_admin)
    return open_source(record, lading.followed(load), lading.clock, addresses)


def _positions(session: Session, record: JobRecord, statement: AnyJob) -> tuple[Head | None, Positions]:
    """The head and where the job is there, or where it would begin when it never ran."""
    bills = session.lading.bills(record, 1)
    if bills:
        return bills[0].head, bills[0].positions
    with closing(_opened(session, record, statement)) as opened:
        return None, opened.driver.open(opened.start)
