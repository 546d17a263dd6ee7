"""Who is there?"""

from __future__ import annotations

from nicegui import app, ui
from nicegui.events import GenericEventArguments
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lading.console.desk import Console
from lading.console.layout import Page, frame
from lading.console.widgets.basic import Banner, box, button, field, link, text
from lading.errors import LadingError

ENTER = "/login/enter"
BEGIN = "/login/oidc"


def add_login(console: Console) -> None:
    """The page, and the door behind it."""

    @ui.page("/login")
    async def login(request: Request, next: str = "/") -> Response | None:
        if await console.ask(console.visitor, request) is not None:
            return RedirectResponse(inside(next), status_code=303)
        with frame(console, None, title="Log in", here="/login") as page:
            problem = console.problems.pop(request.session.get("id", ""), None)
            _form(console, page, inside(next), problem)
        return None

    @app.get(ENTER, include_in_schema=False)
    async def enter(request: Request, ticket: str = "", next: str = "/") -> Response:
        fresh = console.visits.redeem(ticket, request.session.get("id", ""))
        if fresh is None:
            return RedirectResponse("/login", status_code=303)
        request.session["id"] = fresh
        answer = RedirectResponse(inside(next), status_code=303)
        answer.headers["referrer-policy"] = "no-referrer"
        return answer


def inside(path: str) -> str:
    """Only pages of this console are gone back to."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours and not path.startswith("/login") else "/"


_WRITTEN = """(event) => {
    const fields = event.target.closest('form').elements
    emit({user: fields.user.value, password: fields.password.value})
}"""
"""What is in the fields now. What somebody, or their browser, wrote before the page was connected reached nobody."""


def _form(console: Console, page: Page, back: str, problem: LadingError | None) -> None:
    with box("form", "ld-panel ld-login") as form:
        text("h1", "Log in")
        refused = Banner()
        if problem is not None:
            refused.show(problem.what, problem.todo, "bad")
            page.announce(problem.what)
        if console.oidc is not None:
            link(f"Sign in with {console.oidc.settings.name}", f"{BEGIN}?next={_quoted(back)}", "ld-single-sign-on")
        user = field("User").props('autocomplete="username" autofocus name=user')
        password = field("Password", is_password=True).props('autocomplete="current-password" name=password')

        async def submit(event: GenericEventArguments) -> None:
            enter.disable()
            request = page.request
            peer = request.client.host if request.client else ""
            try:
                given = str(event.args["password"] or "")
                if not given:
                    refused.show("Give a password", tone="bad")
                    page.announce("Give a password")
                    return
                identity = await console.prove(str(event.args["user"] or ""), given, peer)
            except LadingError as error:
                refused.show(error.what, error.todo, "bad")
                page.announce(error.what)
                password.set_value("")
                return
            finally:
                enter.enable()
            ticket = console.visits.issue_ticket(identity, request.session.get("id", ""))
            ui.navigate.to(f"{ENTER}?ticket={ticket}&next={_quoted(back)}")

        enter = button("Log in", None, is_main=True).on("click", submit, js_handler=_WRITTEN)
        for given in (user, password):
            given.on("keydown.enter", submit, js_handler=_WRITTEN)
    form.on("submit", js_handler="(event) => event.preventDefault()")


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="")
