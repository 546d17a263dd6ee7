"""Is the process there, can it work, what does it count."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from lading import __version__
from lading.errors import UnavailableError
from lading.http.app_state import Desk, TheCaller, TheDesk
from lading.http.errors import ERRORS
from lading.http.models import CheckBody, Checkup, Health, Readiness
from lading.service.security.redaction import redact
from lading.service.telemetry.metrics import CONTENT_TYPE
from lading.service.views.checkup import check_up
from lading.sql.statements.users import Privilege

router = APIRouter(tags=["service"])


@router.get("/healthz", responses={405: ERRORS[405]})
async def healthz() -> Health:
    """The process answers. It looks at nothing else, so that a slow store restarts nobody."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", responses={status: ERRORS[status] for status in (405, 503)})
def readyz(desk: TheDesk) -> Readiness:
    """The store can be written and jobs are being run."""
    checks = {"store": _store(desk)}
    if desk.scheduler is not None:
        checks["scheduler"] = _scheduler(desk)
    wrong = {name: said for name, said in checks.items() if said != "ok"}
    if wrong:
        msg = "; ".join(f"{name}: {said}" for name, said in wrong.items())
        raise UnavailableError(
            msg,
            code="NotReady",
            left="Progress is in the tables and is not touched.",
            todo="Look at the log.",
            **checks,
        )
    return Readiness(status="ready", checks=checks)


@router.post("/api/checkup", responses={status: ERRORS[status] for status in (401, 403, 405)})
def checkup(desk: TheDesk, caller: TheCaller) -> Checkup:
    """What `lading doctor` says: store, disk, tables, catalogs and sources are asked now, which may take a while."""
    caller.require_everywhere(Privilege.ADMIN)
    found = [
        CheckBody(name=each.name, state=each.state.value, said=each.said, todo=each.todo)
        for each in check_up(desk.lading)
    ]
    return Checkup(checks=found)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        **{status: ERRORS[status] for status in (401, 403, 405)},
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Samples"},
    },
)
def metrics(desk: TheDesk, caller: TheCaller) -> Response:
    """What Prometheus reads. Names of jobs are in it: only who may see all jobs may read it."""
    caller.require_everywhere(Privilege.LOAD)
    return Response(desk.metrics.render(), media_type=CONTENT_TYPE)


def _store(desk: Desk) -> str:
    return redact(desk.metrics.health.check().said)


def _scheduler(desk: Desk) -> str:
    return "ok" if desk.scheduler is None or desk.scheduler.is_alive else "it does not beat"
