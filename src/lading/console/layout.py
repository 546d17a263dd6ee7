"""What all pages have: the top, the way between pages, who is here, and a voice for screen readers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlencode

from nicegui import ui
from nicegui.client import Client
from nicegui.timer import Timer
from starlette.requests import Request
from starlette.responses import RedirectResponse

from lading import __version__
from lading.console.desk import Console, Visitor
from lading.console.formatting import millis
from lading.console.widgets.basic import Banner, box, button, link, text
from lading.errors import AuthError, JobNotFoundError, LadingError
from lading.service.views.build import redacted

REFRESH_S = 2.0
LOGIN_CHECK_S = 3.0
"""How soon an open page ends with its login, also when nobody looks at it."""
STORE_S = 60.0
"""So long a page may take to be made: some ask the store of a table, and all of them a machine that may be busy."""
STATIC = "/_lading"
PAGES = {"/": "Jobs", "/new": "New job", "/tables": "Tables", "/sql": "SQL", "/spark": "Spark", "/audit": "Audit"}


def job_path(name: str) -> str:
    """Where a job's page is."""
    return f"/jobs/{quote(name, safe='')}"


def commit_path(name: str, seq: int) -> str:
    """Where a commit of a job is."""
    return f"{job_path(name)}/commits/{seq}"


def table_path(name: str) -> str:
    """Where a table's page is."""
    return f"/tables/{quote(name, safe='')}"


def edit_path(name: str) -> str:
    """Where a job's definition is edited."""
    return f"{job_path(name)}/edit"


def to_login(request: Request) -> RedirectResponse:
    """Ask who this is, and come back."""
    return RedirectResponse(f"/login?{urlencode({'next': _asked(request)})}", status_code=303)


def _asked(request: Request) -> str:
    """What the browser asked for, with filters and tab."""
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


class Page:
    """One open page of one visitor."""

    def __init__(self, console: Console, client: Client) -> None:
        self.console = console
        self._client = client
        self._voice = text("div", "", "ld-sr", role="status", aria_live="polite")
        self._trouble = Banner()
        self._stumbled = ""
        self._is_leaving = False

    @property
    def request(self) -> Request:
        return self._client.request

    async def visitor(self) -> Visitor:
        """The visitor, looked up again. Raises AuthError when they are not logged in any longer."""
        found = await self.console.ask(self.console.visitor, self.request)
        if found is None:
            ui.navigate.to(f"/login?{urlencode({'next': _asked(self.request)})}")
            msg = "The login has ended"
            raise AuthError(msg, left="Nothing was changed.", todo="Log in again.")
        return found

    def end_with_login(self) -> None:
        """Leave the page when its login ends. A browser that does not go is cut off: nothing here answers it again."""

        async def beat() -> None:
            try:
                await self.visitor()
            except AuthError:
                # A browser that has gone is removed by NiceGUI itself, after the time that it has to come back.
                if self._is_leaving and self._client.has_socket_connection:
                    timer.cancel()
                    self._client.delete()
                self._is_leaving = True
            except LadingError:
                return  # The store does not answer right now: the page says so elsewhere, and this is tried again.

        timer = ui.timer(LOGIN_CHECK_S, beat, immediate=False)

    def remember(self, **query: str) -> None:
        """Keep what is chosen in the address, so that it can be sent to somebody. Empty is what is usual."""
        ui.run_javascript(f"lading.keepQuery({json.dumps(query)})")

    def announce(self, words: str) -> None:
        """Say something to those who do not see the page. Said twice, it differs in a space: else nobody hears it."""
        self._voice.set_text(f"{words}\u00a0" if self._voice.text == words else words)

    def tell(self, words: str, *, is_error: bool = False) -> None:
        """Show the outcome of what somebody did. Screen readers read it as an alert."""
        ui.notify(
            words,
            classes=f"ld-told ld-told-{'bad' if is_error else 'good'}",
            position="bottom",
            close_button="Close",
            timeout=12_000 if is_error else 4_000,
            multi_line=is_error,
        )

    async def attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do what somebody asked for; a refusal is shown. Says whether it was done."""
        try:
            await work()
        except LadingError as error:
            self.tell(redacted(str(error)), is_error=True)
            return False
        return True

    def _stumble(self, why: str) -> None:
        title = "This cannot be shown right now" if why else ""
        self._trouble.show(title, why, "bad")
        if why and why != self._stumbled:
            self.announce(f"{title}: {why}")
        self._stumbled = why

    def every(self, work: Callable[[], Awaitable[None]], seconds: float = REFRESH_S) -> Timer:
        """Do something now and again while somebody looks. What cannot be read is said, and tried again."""

        async def beat() -> None:
            try:
                await work()
            except AuthError:
                timer.deactivate()
            except JobNotFoundError:
                # Nothing of a job stays on the page of somebody who may not see it any longer.
                timer.deactivate()
                ui.navigate.reload()
            except LadingError as error:
                self._stumble(redacted(str(error)))
            else:
                self._stumble("")

        timer = ui.timer(seconds, beat)

        async def seen(is_seen: bool) -> None:
            timer.active = is_seen
            if is_seen:
                await beat()

        ui.on("lading_seen", lambda event: seen(bool(event.args)))
        return timer


@contextmanager
def frame(console: Console, visitor: Visitor | None, *, title: str, here: str) -> Iterator[Page]:
    """A page with its frame; what is made inside stands in its middle."""
    client = ui.context.client
    ui.page_title(f"{title} · Lading")
    now = millis(console.lading.clock.now())
    ui.add_head_html(
        f'<link rel="stylesheet" href="{STATIC}/console.css?{__version__}">'
        f'<script src="{STATIC}/console.js?{__version__}" data-now="{now}"></script>'
    )
    link("Skip to the content", "#main", "ld-skip")
    text("div", "", "ld-lost", role="alert")
    with box("header", "ld-top"):
        with box("a", "ld-brand", href="/"):
            box("img", src=f"{STATIC}/favicon.svg", alt="")
            text("span", "Lading")
        if visitor is not None:
            with box("nav", "ld-nav", aria_label="Pages"):
                for path, name in PAGES.items():
                    link(name, path, **({"aria_current": "page"} if path == here else {}))
        else:
            box("div", "ld-grow")
        _menu(console, client, visitor)
    with box("main", "ld-main", id="main"):
        page = Page(console, client)
        if visitor is not None and console.access is not None:
            page.end_with_login()
        yield page
    with box("footer", "ld-foot"):
        text("span", f"Lading {__version__}")


def _menu(console: Console, client: Client, visitor: Visitor | None) -> None:
    """Theme and help, and who is here with their tokens."""
    with box("div", "ld-who"):
        text("button", "Theme", "ld-theme", type="button").on("click", js_handler="() => lading.nextTheme()")
        if visitor is None:
            return
        if console.access is None:
            link("Help", "/help")
            return
        with box("details", "ld-menu"):
            text("summary", visitor.user, aria_label=f"Menu of {visitor.user}")
            with box("div", "ld-menu-list"):
                link("Tokens", "/tokens")
                link("Help", "/help")
                if visitor.has_logged_in:
                    button("Log out", lambda: _log_out(console, client))


async def _log_out(console: Console, client: Client) -> None:
    console.visits.end(client.request.session.get("id", ""))
    ui.run_javascript("lading.keepDraft('')")
    ui.navigate.to("/login")


def show_no_job(name: str) -> None:
    """What is said in the place of a job that is not there, or not for this visitor."""
    ui.context.client.status_code = 404
    text("h1", "There is no such job")
    text("p", f"{name} does not exist, or you may not see it. A routine load is named database.name.", "ld-muted")
    link("All jobs", "/")
