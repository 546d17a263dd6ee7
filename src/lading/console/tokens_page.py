"""The tokens of the visitor: for programs that ask the API in their name."""

from __future__ import annotations

from datetime import datetime

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import queries
from lading.console.desk import Console
from lading.console.layout import Page, frame, to_login
from lading.console.widgets.basic import Banner, box, button, field, text
from lading.console.widgets.dialogs import Dialog
from lading.console.widgets.live import LiveTable

_MOMENTS = frozenset(("Created", "Expires", "LastUsed"))
DAYS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year"}


def add_tokens(console: Console) -> None:
    """The page at `/tokens`."""

    @ui.page("/tokens")
    async def tokens(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Tokens", here="/tokens") as page:
            text("h1", "Tokens")
            if console.access is None:
                text("p", "This service runs without users: nobody needs a token.", "ld-muted")
                return None
            view = _TokensView(page)
            page.every(view.refresh, seconds=10.0)
        return None


class _TokensView:
    def __init__(self, page: Page) -> None:
        self._page, self._dropped = page, ""
        text("p", "A program that gives a token acts in your name, within the scope of the token.", "ld-muted")
        with box("section", "ld-panel ld-pad ld-stack", aria_label="New token"):
            with box("div", "ld-bar"):
                self._comment = field("What it is for").classes("ld-grow")
                self._comment.on("keydown.enter", self._create)
                self._days = ui.select(DAYS, value="30", label="Valid for").props("outlined dense")
                self._days.classes("ld-field ld-choice")
                self._reads = ui.switch("Read only", value=True)
                self._make = button("Create token", self._create, is_main=True)
            self._said = Banner()
            self._token = text("pre", "", "ld-code", tabindex="0", aria_label="The new token")
            self._token.set_visibility(False)
            with box("div", "ld-bar") as self._copy:
                button("Copy the token", lambda: ui.clipboard.write(self._token.text))
            self._copy.set_visibility(False)
        with box("div", "ld-panel"):
            self._list = LiveTable("Tokens", (), empty="There is no token.", on_act=self._ask)
        with Dialog("Drop the token?") as self._dialog:
            text("p", "Programs that use it are refused from now on. It cannot be brought back.")
            self._typed = field("Type the id of the token to go on", is_mono=True)
            self._typed.on_value_change(self._look)
            self._typed.on("keydown.enter", self._drop)
            with box("div", "ld-bar"):
                button("Keep it", self._dialog.close)
                self._go = button("Drop", self._drop, is_final=True)

    async def refresh(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        found = await console.ask(queries.list_tokens, console, visitor)
        columns = [*found.columns, ""]
        self._list.props["columns"] = [
            {"name": f"c{at}", "label": name, "number": False, "sortable": False} for at, name in enumerate(columns)
        ]
        self._list.show(
            [
                {
                    "key": str(row[0]),
                    **{f"c{at}": _cell(columns[at], value) for at, value in enumerate(row)},
                    "c0": {"text": str(row[0]), "mono": True, "whole": True},
                    f"c{len(row)}": {"text": "Drop", "action": str(row[0]), "label": f"Drop token {row[0]}"},
                }
                for row in found.rows
            ]
        )

    async def _create(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            made = await console.ask(
                queries.create_token,
                console,
                visitor,
                comment=str(self._comment.value or "").strip(),
                days=int(self._days.value or 30),
                only_reads=bool(self._reads.value),
            )
            self._show_token(made)
            self._comment.set_value("")
            await self.refresh()

        if not self._make.enabled:  # A key that is held down makes one token.
            return
        self._make.disable()
        await self._page.attempt(work)
        self._make.enable()

    def _show_token(self, made: str) -> None:
        """Once, to who made it; nothing when it is empty."""
        self._said.show("The token is shown once" if made else "", "Copy it now; nobody can show it again.", "warn")
        self._token.set_text(made)
        for shown in (self._token, self._copy):
            shown.set_visibility(bool(made))

    def _ask(self, token_id: object) -> None:
        self._dropped = str(token_id)
        self._dialog.rename(f"Drop token {self._dropped}?")
        self._typed.set_value("")
        self._look()
        self._dialog.open()

    def _look(self) -> None:
        self._go.set_enabled(bool(self._dropped) and str(self._typed.value or "").strip() == self._dropped)

    async def _drop(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(queries.drop_token, console, visitor, self._dropped)
            self._dialog.close()
            self._show_token("")  # It may be the one that is still on the page.
            self._page.tell(f"Token {self._dropped} was dropped")
            await self.refresh()

        if not self._go.enabled:
            return
        self._go.disable()
        await self._page.attempt(work)


def _cell(column: str, value: object) -> str:
    """Moments to the second."""
    text = "" if value is None else str(value)
    if column not in _MOMENTS:
        return text
    try:
        return datetime.fromisoformat(text).isoformat(sep=" ", timespec="seconds")
    except ValueError:
        return text
