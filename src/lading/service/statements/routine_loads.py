"""What the statements about routine loads do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from lading.errors import ConfigError, ConflictError, JobNotFoundError, JobStateError
from lading.ids import new_job_id
from lading.jobs.events import Created, Event, PausedByUser, Resumed, Stopped
from lading.jobs.record import JobKind, JobName, JobRecord, JobState
from lading.jobs.transition import create_record
from lading.model.bill import Head
from lading.model.moves import PartitionMove
from lading.model.positions import Positions, is_replaced
from lading.service.compile.routine import window_of
from lading.service.compile.sourced import AnyJob
from lading.service.compile.streams import open_stream
from lading.service.edits.audit import apply, audit
from lading.service.edits.begun import finish_begun, settled
from lading.service.edits.create import create_open_job
from lading.service.edits.edit import Edit, check_paused
from lading.service.edits.lost_secrets import statement_to_alter
from lading.service.edits.plan import plan_given_up, plan_new_source, plan_stream_moves
from lading.service.edits.written import statement_of
from lading.service.result import Result, done, table
from lading.service.runtime.ended_jobs import tell_table
from lading.service.security.reach import job_rules
from lading.service.session import Session
from lading.service.statements.reach import allow_hosts, check_source
from lading.service.views.routine import (
    NO_ROWS,
    create_text,
    like_pattern,
    show_jobs,
    show_tasks,
    views_of,
)
from lading.sources.kind import Stream
from lading.sources.registry import stream_kind
from lading.sql.statements.alter import AlteredRoutineLoad, alter_routine_load, check_keys_stay, names_same_source
from lading.sql.statements.definitions import define_routine_load
from lading.sql.statements.jobs import (
    AlterRoutineLoad,
    ControlRoutineLoad,
    CreateRoutineLoad,
    ShowCreateRoutineLoad,
    ShowRoutineLoad,
    ShowRoutineLoadTask,
)
from lading.sql.statements.load_specs import load_spec, load_with_secrets
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.users import Privilege
from lading.sql.syntax.masking import without_secrets
from lading.sql.syntax.render import render

MAX_JOBS_SETTING = "max_routine_load_job_num"
DEFAULT_MAX_JOBS = 10_000


# Finding.


def database_of(session: Session, name: QualifiedName) -> str:
    """The database that a name means."""
    return name.db if name.db is not None else session.database


def find_routine(session: Session, name: QualifiedName, *, include_final: bool = False) -> JobRecord | None:
    """The routine load of a name: the one that is alive, or the newest of those that were."""
    wanted = JobName(kind=JobKind.ROUTINE, name=name.name, database=database_of(session, name))
    found = session.lading.store.find_job(wanted, include_final=include_final)
    return found.record if found is not None and session.sees(found.record) else None


def operable(session: Session, name: QualifiedName) -> JobRecord:
    """The routine load of a name that is not stopped or cancelled."""
    record = find_routine(session, name)
    if record is None:
        msg = f"There is not operable routine load job with name {name.name}"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="See SHOW ALL ROUTINE LOAD.", name=str(name))
    return record


def _listed(session: Session, database: str, *, include_final: bool = False) -> list[JobRecord]:
    """Routine loads of a database that the user may see."""
    stored = session.lading.store.list_jobs(kind=JobKind.ROUTINE, database=database, include_final=include_final)
    return [found.record for found in stored if session.sees(found.record)]


# Making.


def create_routine(session: Session, statement: CreateRoutineLoad) -> Result:
    """CREATE ROUTINE LOAD. All is checked against table and stream before the job exists; it begins now."""
    lading = session.lading
    database = database_of(session, statement.name)
    check_source(session, statement.source)
    lading.catalog.require_database(database)
    define_routine_load(statement)
    _check_room(session, statement.name.name, database)
    statement = replace(statement, name=replace(statement.name, db=database))
    kept, spec = without_secrets(statement), load_spec(statement)
    event = Created(
        job_id=new_job_id(),
        name=statement.name.name,
        database=database,
        kind=JobKind.ROUTINE,
        definition=render(kept),
        spec=spec,
        target=spec.target,
        properties=dict(kept.properties),
        comment=statement.comment or "",
        user=session.user,
        window=window_of(spec),
        at=lading.clock.now(),
    )
    record, _ = create_record(event)
    # Dies after this: secrets of a job that does not exist, which nobody reads.
    lading.keep_secrets(record.job_id, statement.source.properties, kept.source.properties)
    allow_hosts(session, record.job_id, statement.source)
    create_open_job(session, record, statement)
    return done(f"routine load {database}.{statement.name.name} created")


def _check_room(session: Session, name: str, database: str) -> None:
    store = session.lading.store
    if store.find_job(JobName(kind=JobKind.ROUTINE, name=name, database=database)) is not None:
        msg = f"Name {name} already used in db {database}"
        raise ConflictError(
            msg, code="JobExists", left="It was not touched.", todo="Choose another name, or stop it first."
        )
    most = int(store.read_setting(MAX_JOBS_SETTING) or DEFAULT_MAX_JOBS)
    alive = len(store.list_jobs(kind=JobKind.ROUTINE))
    if alive > most:
        msg = f"There are more than {most} routine load jobs. exceed limit: {MAX_JOBS_SETTING} is {most}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Stop jobs that are not needed.")


# Controlling.


def control_routine(session: Session, statement: ControlRoutineLoad) -> Result:
    """PAUSE, RESUME or STOP of one, or of all of the current database, leaving out those that refuse."""
    if statement.name is not None:
        _control(session, operable(session, statement.name), statement)
        return done()
    for record in _listed(session, session.database):
        try:
            _control(session, record, statement)
        except JobStateError:
            continue
    return done()


def _control(session: Session, record: JobRecord, statement: ControlRoutineLoad) -> None:
    with session.lading.job_locks.hold(record.job_id):
        _control_in_turn(session, session.lading.runner(record.job_id).record(), statement)


def _control_in_turn(session: Session, record: JobRecord, statement: ControlRoutineLoad) -> None:
    now = session.lading.clock.now()
    if statement.verb == "RESUME":
        finish_begun(session.lading, record)
    events: dict[str, Event] = {
        "PAUSE": PausedByUser(user=session.user, at=now),
        "RESUME": Resumed(at=now),
        "STOP": Stopped(at=now),
    }
    apply(session, record, events[statement.verb], audit(session, record, statement.verb))
    if statement.verb != "RESUME" or record.state is JobState.RUNNING:
        # A RUNNING job that is resumed is opened again.
        session.lading.forget_runner(record.job_id)
    if statement.verb == "STOP":
        tell_table(session.lading.catalog, record)


# Changing.


def prepare_routine_alter(session: Session, statement: AlterRoutineLoad) -> Edit:
    """ALTER ROUTINE LOAD, checked against the positions of the job and its stream."""
    record = settled(session.lading, operable(session, statement.name))
    check_paused(record, session)
    whole = statement_to_alter(session, record, statement.source)
    old = _as_routine(record, whole.statement)
    if session.rights is not None and not session.rights.allow(Privilege.ADMIN):
        check_keys_stay(old, statement)  # A user who may load into a table need not know the keys of its jobs.
    if statement.source is not None:
        asked = {**old.source.properties, **statement.source.properties}
        check_source(session, replace(statement.source, name=old.source.name, properties=asked), old.source)
    seen, positions = _positions(session, record, old)
    altered = _altered(session, record, old, statement, positions)
    new, kind = altered.statement, stream_kind(old.source.name)
    moves: tuple[PartitionMove, ...] = ()
    if altered.is_new_source or altered.moves:
        with closing(_stream(session, record, new)) as stream:
            if altered.is_new_source:
                moves = plan_new_source(positions, stream.source.open(stream.start))
            else:
                moves = plan_stream_moves(kind, stream, positions, altered.moves)
    if not altered.is_new_source:
        left_out = kind.given_up_by(old.source.properties, new.source.properties, positions)
        moves += plan_given_up(positions, left_out)
    return Edit(
        record=record,
        old=old,
        new=new,
        seen=seen,
        moves=moves,
        is_new_source=altered.is_new_source,
        has_lost_secrets=whole.has_lost_secrets,
        reason=statement.comment or "",
        statement=statement,
    )


def _altered(
    session: Session, record: JobRecord, old: CreateRoutineLoad, statement: AlterRoutineLoad, positions: Positions
) -> AlteredRoutineLoad:
    """The definition after ALTER. A topic or stream that is named again is asked whether it was made again."""
    consumed, kind = [*positions.partitions], stream_kind(old.source.name)
    if names_same_source(old, statement, kind) and positions.incarnation:
        made_again = alter_routine_load(old, statement, kind, consumed=consumed, is_made_again=True)
        with closing(_stream(session, record, made_again.statement)) as stream:
            if is_replaced(positions, stream.source.list_partitions().incarnation):
                return made_again
    return alter_routine_load(old, statement, kind, consumed=consumed)


def prepare_routine_move(
    session: Session, record: JobRecord, old: CreateRoutineLoad, positions: Mapping[str, str | None], reason: str
) -> Edit:
    """Positions alone."""
    seen, known = _positions(session, record, old)
    with closing(_stream(session, record, old)) as stream:
        moves = plan_stream_moves(stream_kind(old.source.name), stream, known, positions)
    return Edit(record=record, old=old, new=old, seen=seen, moves=moves, reason=reason)


def _routine_statement(session: Session, record: JobRecord) -> CreateRoutineLoad:
    return _as_routine(record, statement_of(session.lading, record))


def _as_routine(record: JobRecord, found: AnyJob) -> CreateRoutineLoad:
    if not isinstance(found, CreateRoutineLoad):
        msg = f"{record.full_name} is not a routine load"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="Use the statements of streaming jobs.")
    return found


def _stream(session: Session, record: JobRecord, statement: CreateRoutineLoad) -> Stream:
    """The stream of a definition, for questions only: no row is read."""
    lading, load = session.lading, load_with_secrets(statement)
    addresses = job_rules(lading.endpoints, record.job_id, load.source, is_trusted=session.is_admin)
    return open_stream(record, lading.followed(load), NO_ROWS, session.lading.clock, addresses)


def _positions(session: Session, record: JobRecord, statement: CreateRoutineLoad) -> tuple[Head | None, Positions]:
    """The head and where the job stands there, or where it would begin when it never ran."""
    bills = session.lading.bills(record, 1)
    if bills:
        return bills[0].head, bills[0].positions
    with closing(_stream(session, record, statement)) as stream:
        return None, stream.source.open(stream.start)


# Showing.


def show_routine(session: Session, statement: ShowRoutineLoad) -> Result:
    """SHOW [ALL] ROUTINE LOAD."""
    database = database_of(session, statement.name) if statement.name is not None else session.database
    records = _listed(session, database, include_final=statement.all)
    if statement.name is not None:
        records = [record for record in records if record.name == statement.name.name]
        if not records:
            msg = f"There is no job named {statement.name.name} in db {database}"
            raise JobNotFoundError(
                msg, left="Nothing was changed.", todo="See SHOW ALL ROUTINE LOAD.", name=str(statement.name)
            )
    if statement.like is not None:
        pattern = like_pattern(statement.like)
        records = [record for record in records if pattern.fullmatch(record.name)]
    return show_jobs(session.lading, records)


def show_routine_tasks(session: Session, statement: ShowRoutineLoadTask) -> Result:
    """SHOW ROUTINE LOAD TASK."""
    record = find_routine(session, statement.name)
    if record is None:
        msg = f"The job named {statement.name.name} does not exists or job state is stopped or cancelled"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="See SHOW ALL ROUTINE LOAD.")
    return show_tasks(session.lading, record)


def show_create_routine(session: Session, statement: ShowCreateRoutineLoad) -> Result:
    """SHOW [ALL] CREATE ROUTINE LOAD: a statement that makes a job which goes on from here."""
    database = database_of(session, statement.name)
    everything = _listed(session, database, include_final=statement.all)
    records = [record for record in everything if record.name == statement.name.name]
    if not records:
        msg = f"There is no job named {statement.name.name} in db {database}"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="See SHOW ALL ROUTINE LOAD.")
    rows = []
    for record in records:
        bills = session.lading.bills(record, 1)
        positions = bills[0].positions if bills else Positions()
        rows.append((record.job_id, record.name, create_text(_routine_statement(session, record), positions)))
    return table(("JobId", "JobName", "CreateStmt"), rows)


def after_change(session: Session, record: JobRecord) -> None:
    """What was remembered of the job's stream may be of another one."""
    views_of(session.lading).watch.forget(record.job_id)
