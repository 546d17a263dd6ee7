"""The application: paths, door, one shape of errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.security import HTTPBasic, HTTPBearer
from starlette.responses import Response
from starlette.routing import Match

from lading import __version__
from lading.errors import RequestError
from lading.http import actions, health, reads, sql
from lading.http.app_state import Desk, Scheduler
from lading.http.errors import add_handlers, no_such_path, respond, wrong_method
from lading.http.middleware import Door, DoorRules
from lading.service.facade import Lading
from lading.service.security.users import Access
from lading.service.telemetry.metrics import Metrics
from lading.service.views.jobs import JobViews

_ROUTERS = (reads.router, actions.router, sql.router)
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


async def _each_once(request: Request) -> None:
    """A parameter that stands twice in an address would count once, and nobody knows which."""
    names = [name for name, _ in request.query_params.multi_items()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        msg = f"The address has more than one {', '.join(twice)}"
        raise RequestError(msg, left="Nothing was done.", todo="Say each parameter once.")


def create_app(
    lading: Lading,
    *,
    access: Access | None = None,
    scheduler: Scheduler | None = None,
    metrics: Metrics | None = None,
    rules: DoorRules | None = None,
) -> FastAPI:
    """An app over one installation. Without `access` everybody may do everything: bind it to this machine only.

    What is mounted on it later (a console at `/`) gets only what no path of the API takes: all of `/api/`, `/metrics`,
    `/healthz` and `/readyz`.
    """
    told = metrics or Metrics(lading.store, lading.clock, audit=lading.audit)
    app = FastAPI(
        title="Lading",
        summary="Continuous loads of files and streams into lakehouse tables, each record exactly once.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.lading_desk = Desk(
        lading=lading,
        sights=JobViews(lading, lookout=told.lookout),
        metrics=told,
        scheduler=scheduler,
    )
    proofs = [Depends(HTTPBasic(auto_error=False)), Depends(HTTPBearer(auto_error=False))] if access else []
    app.include_router(health.router)
    for router in _ROUTERS:
        app.include_router(router, dependencies=[*proofs, Depends(_each_once)])
    app.include_router(_rest())
    app.add_middleware(Door, rules=replace(rules or DoorRules(), access=access))
    add_handlers(app)
    return app


def _rest() -> APIRouter:
    """Everything else under /api, so that nothing mounted later answers for it."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/api/{rest:path}", methods=_METHODS)
    async def nothing(request: Request) -> Response:
        known: set[str] = set()
        for route in chain.from_iterable(router.routes for router in _ROUTERS):
            if route.matches(request.scope)[0] is Match.PARTIAL:
                known |= set(getattr(route, "methods", None) or ())
        if known:
            error = wrong_method(request.method, request.url.path)
            return respond(error, {"allow": ", ".join(sorted(known))})
        return respond(no_such_path(request.url.path))

    return router
