"""The console on an app that answers the API already."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exception_handlers import http_exception_handler
from nicegui import app as pages
from nicegui import core, ui
from nicegui.client import Client
from nicegui.page import page
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lading.console.audit_page import add_audit
from lading.console.commit_page import add_commit
from lading.console.desk import Console, Scheduler
from lading.console.edit_page import add_edit
from lading.console.help_page import add_help
from lading.console.job_page import add_job
from lading.console.jobs_page import add_jobs
from lading.console.layout import STATIC, STORE_S, frame
from lading.console.login_page import add_login
from lading.console.new_page import add_new
from lading.console.oidc_login import add_oidc
from lading.console.spark_page import add_spark
from lading.console.sql_page import add_sql
from lading.console.step_timings import StepMemory
from lading.console.tables_page import add_tables
from lading.console.tokens_page import add_tokens
from lading.console.visits import Visits
from lading.console.widgets.basic import link, text
from lading.service.facade import Lading
from lading.service.security.users import Access
from lading.service.telemetry.metrics import Metrics
from lading.service.views.jobs import JobViews

if TYPE_CHECKING:  # Its libraries are an extra.
    from lading.service.security.oidc import OpenIdConnect

FOLDER = Path(__file__).parent / "static"

_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""Pages are made of scripts that stand in them and of templates that are compiled in the browser; nothing is ever
asked of another host."""
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
# A page that is not made within three seconds would be a 500, as on a machine that is busy with loading.
page.__init__.__kwdefaults__["response_timeout"] = STORE_S  # type: ignore[index]  # it has defaults


def mount_console(
    app: FastAPI,
    lading: Lading,
    *,
    access: Access | None = None,
    metrics: Metrics | None = None,
    scheduler: Scheduler | None = None,
    is_https: bool = False,
    oidc: OpenIdConnect | None = None,
) -> Console:
    """Put the pages at `/`, behind every path that the app has already. Once in a process: NiceGUI has one app.

    Without `access` everybody may do everything: bind it to this machine only. `metrics` are those that hear of
    commits and lags, as the API has them.
    """
    memory = StepMemory(lading.clock)
    console = Console(
        lading=lading,
        sights=JobViews(lading, lookout=metrics.lookout if metrics is not None else None),
        memory=memory,
        visits=Visits(lading.clock),
        access=access,
        scheduler=scheduler,
        oidc=oidc,
    )
    lading.watches.append(memory)
    for add in (
        add_jobs,
        add_job,
        add_edit,
        add_commit,
        add_new,
        add_tables,
        add_sql,
        add_spark,
        add_audit,
        add_tokens,
        add_help,
        add_login,
        add_oidc,
        add_missing,
    ):
        add(console)
    pages.add_static_files(STATIC, str(FOLDER), max_cache_age=3600)
    pages.add_middleware(_Headers)
    pages.on_shutdown(console.close)
    # Only pages of this host may open the socket. Who owns a page is known by its id, which nobody can guess; this
    # is the second lock.
    core.sio.eio.cors_allowed_origins = None
    home = hashlib.sha256(str(lading.home.path).encode()).hexdigest()[:8]
    ui.run_with(
        app,
        title="Lading",
        favicon=FOLDER / "favicon.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
        show_welcome_message=False,
        storage_secret=secrets.token_urlsafe(32),
        session_middleware_kwargs={
            # Cookies know no ports: two services of one machine must not log each other out.
            "session_cookie": f"lading_{home}",
            "same_site": "lax",
            "https_only": is_https,
            "max_age": None,
        },
    )
    return console


class _Headers:
    """What browsers are told with every page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        await self._app(scope, receive, told if scope["type"] == "http" else send)


def add_missing(console: Console) -> None:
    """The page for every other path."""

    async def missing(request: Request, error: Exception) -> Response:
        if request.scope.get("endpoint") not in (None, pages) and isinstance(error, HTTPException):
            return await http_exception_handler(request, error)  # A part of a page, not a page.
        visitor = await console.ask(console.visitor, request)
        with Client(page(""), request=request) as client, frame(console, visitor, title="No such page", here=""):
            text("h1", "There is no such page")
            link("All jobs", "/")
        return client.build_response(request, 404)

    pages.add_exception_handler(404, missing)
