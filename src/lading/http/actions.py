"""Paths that change jobs. Each runs the statement that a person would write, so rules and audit are the same."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from lading.errors import ConfigError, PartitionLostError
from lading.http.app_state import Desk, TheCaller, TheDesk, TheName
from lading.http.callers import Caller
from lading.http.errors import ERRORS
from lading.http.models import PositionRequest, RollbackRequest, VerdictBody
from lading.http.sessions import open_session
from lading.jobs.record import JobKind, JobRecord, JobState
from lading.model.positions import PartitionState, Positions
from lading.service.edits import rollbacks
from lading.service.edits.edit import edit_positions, plan_edit
from lading.service.edits.fingerprint import changed_since
from lading.service.edits.plan import EditPlan, check_partitions
from lading.service.edits.rollbacks import RollbackView
from lading.service.security.recording import Request, recorded
from lading.service.session import Session
from lading.service.statements.routine_loads import after_change
from lading.service.views.records import JobDetail
from lading.service.views.verify import verify_job
from lading.sql.parts import QualifiedName
from lading.sql.statements import AcceptRollback, ControlJob, ControlRoutineLoad, Statement

router = APIRouter(prefix="/api/jobs", tags=["actions"], responses=ERRORS)

Verb = Literal["PAUSE", "RESUME", "STOP"]


@router.post("/{name}/pause")
def pause(desk: TheDesk, caller: TheCaller, name: TheName) -> JobDetail:
    """PAUSE JOB, or PAUSE ROUTINE LOAD."""
    return _control(desk, caller, name, "PAUSE")


@router.post("/{name}/resume")
def resume(desk: TheDesk, caller: TheCaller, name: TheName) -> JobDetail:
    """RESUME JOB, or RESUME ROUTINE LOAD."""
    return _control(desk, caller, name, "RESUME")


@router.post("/{name}/stop")
def stop(desk: TheDesk, caller: TheCaller, name: TheName) -> JobDetail:
    """DROP JOB, or STOP ROUTINE LOAD: the job ends for good; its rows and bills stay."""
    return _control(desk, caller, name, "STOP")


@router.post("/{name}/position")
def position(desk: TheDesk, caller: TheCaller, name: TheName, body: PositionRequest) -> EditPlan:
    """Move a PAUSED job to other positions; with `dry_run`, only say what that would mean."""
    record = desk.sights.record(name, caller.may_see)
    session, name = open_session(desk.lading, caller, record.database or "default"), str(record.full_name)
    try:
        if record.kind is JobKind.STREAMING and record.state is JobState.PAUSED:
            _check_file_move(desk, session, record, body)
        if body.dry_run:
            return plan_edit(session, name, body.positions)
        with recorded(session, Request.to_move(name, body.positions)):
            plan = edit_positions(session, name, body.positions, reason=body.reason, seen=body.seen)
        after_change(session, record)
        desk.lading.changed()
        return plan
    except PartitionLostError as error:
        # Here it is the request that names a partition which is not there, and not the source that lost one.
        raise ConfigError(error.what, left=error.left, todo=error.todo) from error


@router.get("/{name}/rollback")
def rollback(desk: TheDesk, caller: TheCaller, name: TheName) -> RollbackView:
    """What a rollback of the table took from a job, and how it could go on. 409 when there was none."""
    record = desk.sights.record(name, caller.may_see)
    return rollbacks.look_at(open_session(desk.lading, caller, record.database or "default"), record)


@router.post("/{name}/rollback")
def accept_rollback(desk: TheDesk, caller: TheCaller, name: TheName, body: RollbackRequest) -> JobDetail:
    """ACCEPT ROLLBACK: go on behind what was taken away, or load it again. The job stays PAUSED."""
    record = desk.sights.record(name, caller.may_see)
    session = open_session(desk.lading, caller, record.database or "default")
    if body.seen and body.seen != rollbacks.look_at(session, record).seen:
        raise changed_since(record, "or its table was changed since this was shown", "Look again.")
    is_routine = record.kind is JobKind.ROUTINE
    statement = AcceptRollback(
        kind="ROUTINE LOAD" if is_routine else "JOB",
        name=QualifiedName(name=record.name, db=record.database if is_routine else None),
        keeps_position=body.choice == "keep",
        comment=body.reason or None,
    )
    session.execute(statement)
    return desk.sights.one_job(name, caller.may_see)


@router.post("/{name}/verify")
def verify(desk: TheDesk, caller: TheCaller, name: TheName) -> VerdictBody:
    """Compare the bills of a job with its table. Reads the footer of every data file."""
    record = desk.sights.record(name, caller.may_see)
    verdict = verify_job(record, desk.lading.open_target(record))
    return VerdictBody(
        job=verdict.job,
        bills=verdict.bills,
        rows=verdict.rows,
        is_clean=verdict.is_clean,
        findings=list(verdict.findings),
        removed=dict(verdict.removed),
        rewritten=dict(verdict.rewritten),
        told=verdict.told,
    )


def _check_file_move(desk: Desk, session: Session, record: JobRecord, body: PositionRequest) -> None:
    """A job that loads files has one partition, which cannot be given up: nobody else would read its files."""
    if len(body.positions) > 1 or None in body.positions.values():
        msg = f"Job {record.name} loads files: it has one partition, which has a position"
        todo = "Name that partition and the last file that counts as loaded."
        raise ConfigError(msg, left="Nothing was changed.", todo=todo)
    if bills := desk.lading.bills(record, 1):
        check_partitions(bills[0].positions, body.positions)
        return
    # A job that never ran has no bill; what it would read is in the plan, which names the one partition there is.
    plan = plan_edit(session, str(record.full_name), body.positions)
    check_partitions(
        Positions(partitions={move.partition: PartitionState(at=move.start) for move in plan.moves}), body.positions
    )


def _control(desk: Desk, caller: Caller, name: str, verb: Verb) -> JobDetail:
    record = desk.sights.record(name, caller.may_see)
    open_session(desk.lading, caller, record.database or "default").execute(_statement(record, verb))
    return desk.sights.one_job(name, caller.may_see)


def _statement(record: JobRecord, verb: Verb) -> Statement:
    if record.kind is JobKind.ROUTINE:
        return ControlRoutineLoad(verb=verb, name=QualifiedName(name=record.name, db=record.database))
    return ControlJob(verb="DROP" if verb == "STOP" else verb, name=record.name)
