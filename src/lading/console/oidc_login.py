"""The way to the identity provider and back."""

from __future__ import annotations

from functools import partial

from nicegui import app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lading.console.desk import Console, peer_of
from lading.console.login_page import BEGIN, inside
from lading.errors import LadingError

_SECONDS = 60.0


def add_oidc(console: Console) -> None:
    """Two paths, when there is a provider."""
    oidc = console.oidc
    if oidc is None:
        return

    @app.get(BEGIN, include_in_schema=False)
    async def begin(request: Request, next: str = "/") -> Response:
        browser = request.session.get("id", "")
        try:
            place = await console.ask_provider(partial(oidc.begin, browser, inside(next)))
        except LadingError as error:
            return _failed(console, browser, error)
        return _redirect(place)

    @app.get(f"{BEGIN}/callback", include_in_schema=False)
    async def callback(request: Request) -> Response:
        browser = request.session.get("id", "")
        try:
            finish = partial(oidc.finish, browser, dict(request.query_params), peer=peer_of(request))
            signed_in = await console.ask_provider(finish)
        except LadingError as error:
            return _failed(console, browser, error)
        life_s = oidc.settings.session_minutes * _SECONDS
        ticket = console.visits.issue_ticket(signed_in.identity, browser, life_s=life_s)
        request.session["id"] = console.visits.redeem(ticket, browser)
        return _redirect(inside(signed_in.back))


def _failed(console: Console, browser: str, error: LadingError) -> Response:
    console.note_problem(browser, error)
    return _redirect("/login")


def _redirect(place: str) -> Response:
    answer = RedirectResponse(place, status_code=303)
    # The address of the callback has a code in it.
    answer.headers["referrer-policy"] = "no-referrer"
    answer.headers["cache-control"] = "no-store"
    return answer
