"""Editing the definition of a job: an ALTER, what it would change, and then the change."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import actions
from lading.console.desk import Console
from lading.console.layout import Page, frame, job_path, show_no_job, to_login
from lading.console.sql_editor import EDITOR_HELP, SqlEditor
from lading.console.statement_check import mistake_of
from lading.console.widgets.basic import Banner, box, button, link, text
from lading.console.widgets.results import show_answer
from lading.errors import JobNotFoundError, LadingError
from lading.service.result import Result

_CHANGED = "This is no longer what would change"


def add_edit(console: Console) -> None:
    """The page at `/jobs/{name}/edit`."""

    @ui.page("/jobs/{name}/edit")
    async def edit(request: Request, name: str) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title=f"Edit {name}", here="/") as page:
            try:
                draft = await console.ask(actions.edit_draft, console, visitor, name)
            except JobNotFoundError:
                show_no_job(name)
                return None
            view = _EditView(page, name, draft)
            page.every(view.refresh)
        return None


class _EditView:
    def __init__(self, page: Page, name: str, draft: actions.EditDraft) -> None:
        self._page, self._name = page, name
        self._shown: tuple[str, Result] | None = None
        self._job_state = ""
        with box("nav", "ld-crumb", aria_label="Where you are"):
            link("Jobs", "/")
            text("span", " / ")
            link(name, job_path(name))
        text("h1", f"Edit {name}")
        self._state = Banner()
        with box("div", "ld-bar") as self._first:
            button("Pause the job", self._pause)
        self._first.set_visibility(False)
        if draft.remark:
            text("p", draft.remark, "ld-muted")
        self._editor = SqlEditor(page, draft.text, database=lambda: draft.database, on_change=self._forget)
        text("p", EDITOR_HELP, "ld-muted")
        with box("div", "ld-bar"):
            self._look_button = button("Show what would change", self._look)
            self._go = button("Apply", self._apply, is_main=True)
            link("Cancel", job_path(name), "ld-link")
        self._go.disable()
        self._said = Banner()
        with box("section", "ld-panel", aria_label="What would change") as self._diff:
            pass
        self._diff.set_visibility(False)

    async def refresh(self) -> None:
        """Follow the state: a job that runs cannot be altered."""
        console, visitor = self._page.console, await self._page.visitor()
        record = await console.ask(console.sights.record, self._name, visitor.may_see)
        state = record.state.value
        if state != self._job_state:
            self._job_state = state
            is_paused = state == "PAUSED"
            todo = "A definition can be changed while the job is PAUSED."
            if record.is_final:
                todo = "It has ended, and cannot be changed any more. Its page can duplicate it."
            self._state.show("" if is_paused else f"The job is {state}", todo, "warn")
            self._first.set_visibility(not is_paused and not record.is_final)
            self._look_button.set_enabled(is_paused)
            self._forget()

    def _forget(self) -> None:
        """What was shown is not what the text says now."""
        self._shown = None
        self._go.disable()
        self._diff.set_visibility(False)

    async def _pause(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(actions.control, console, visitor, self._name, "PAUSE")
            await self.refresh()

        await self._page.attempt(work)

    async def _look(self) -> None:
        console, given = self._page.console, self._editor.value
        self._forget()
        self._editor.mark(0, 0)
        self._said.show("")
        try:
            visitor = await self._page.visitor()
            found = await console.ask(actions.explain_edit, console, visitor, self._name, given)
        except LadingError as error:
            self._refuse(error)
            return
        if given != self._editor.value:
            return
        self._show(given, found)

    def _show(self, given: str, found: Result) -> None:
        self._shown = (given, found)
        self._diff.clear()
        with self._diff:
            text("h2", "What would change", "ld-pad")
            show_answer(found.columns, found.rows, found.message)
        self._diff.set_visibility(True)
        self._go.enable()
        self._page.announce("What would change is shown")

    def _refuse(self, error: LadingError) -> None:
        mistake = mistake_of(error)
        where = f"Line {mistake.line}, column {mistake.column}: " if mistake.line else ""
        self._said.show(f"{where}{mistake.message}", " ".join(filter(None, (mistake.left, mistake.todo))), "bad")
        self._editor.mark(mistake.start, mistake.end)
        self._page.announce(f"{where}{mistake.message}")

    async def _apply(self) -> None:
        if self._shown is None or self._shown[0] != self._editor.value:
            self._forget()
            return
        given, shown = self._shown
        console = self._page.console
        self._go.disable()
        try:
            visitor = await self._page.visitor()
            # The job may have been changed since: only what was shown is done.
            found = await console.ask(actions.explain_edit, console, visitor, self._name, given)
            if (found.columns, list(found.rows)) != (shown.columns, list(shown.rows)):
                self._show(given, found)
                self._said.show(_CHANGED, "Nothing was changed. Look at it again, then apply it.", "warn")
                return
            await console.ask(actions.apply_edit, console, visitor, self._name, given)
        except LadingError as error:
            self._refuse(error)
            return
        ui.navigate.to(job_path(self._name))
