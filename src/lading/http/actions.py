"""Paths that change jobs. Each runs the statement that a person would write, so rules and audit are the same."""

from __future__ import annotations

from fastapi import APIRouter

from lading.http.app_state import Desk, TheCaller, TheDesk, TheName
from lading.http.callers import Caller
from lading.http.errors import ERRORS
from lading.http.models import PositionRequest, RollbackRequest, VerdictBody
from lading.http.sessions import open_session
from lading.jobs.record import JobRecord
from lading.service import operations
from lading.service.operations import EditPlan, RollbackView
from lading.service.session import Session
from lading.service.views.records import JobDetail
from lading.service.views.verify import verify_job

router = APIRouter(prefix="/api/jobs", tags=["actions"], responses=ERRORS)


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
    session = _session(desk, caller, record)
    if body.dry_run:
        return operations.plan_move(session, record, body.positions)
    return operations.move(session, record, body.positions, reason=body.reason, seen=body.seen)


@router.get("/{name}/rollback")
def rollback(desk: TheDesk, caller: TheCaller, name: TheName) -> RollbackView:
    """What a rollback of the table took from a job, and how it could go on. 409 when there was none."""
    record = desk.sights.record(name, caller.may_see)
    return operations.look_at_rollback(_session(desk, caller, record), record)


@router.post("/{name}/rollback")
def accept_rollback(desk: TheDesk, caller: TheCaller, name: TheName, body: RollbackRequest) -> JobDetail:
    """ACCEPT ROLLBACK: go on behind what was taken away, or load it again. The job stays PAUSED."""
    record = desk.sights.record(name, caller.may_see)
    operations.accept_rollback(
        _session(desk, caller, record),
        record,
        keeps_position=body.choice == "keep",
        seen=body.seen,
        reason=body.reason,
    )
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


def _control(desk: Desk, caller: Caller, name: str, verb: operations.Verb) -> JobDetail:
    record = desk.sights.record(name, caller.may_see)
    operations.control(_session(desk, caller, record), record, verb)
    return desk.sights.one_job(name, caller.may_see)


def _session(desk: Desk, caller: Caller, record: JobRecord) -> Session:
    return open_session(desk.lading, caller, record.database or "default")
