"""A box for statements, and their answers."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import queries
from lading.console.desk import Console
from lading.console.layout import Page, frame, to_login
from lading.console.sql_editor import EDITOR_HELP, SqlEditor
from lading.console.statement_check import MOST_LETTERS, mistake_of
from lading.console.widgets.basic import Banner, box, button, field, text
from lading.console.widgets.results import show_answer
from lading.errors import LadingError
from lading.service.limits.cancellation import CancelToken


def add_sql(console: Console) -> None:
    """The page at `/sql`."""

    @ui.page("/sql")
    async def sql(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="SQL", here="/sql") as page:
            _SqlView(page, request.query_params.get("q", "")[:MOST_LETTERS])
        return None


class _SqlView:
    """A text from the address stands in the box; nothing runs before somebody presses the button."""

    def __init__(self, page: Page, begin: str) -> None:
        self._page = page
        self._stop: CancelToken | None = None
        text("h1", "SQL")
        self._editor = SqlEditor(
            page,
            begin or "SHOW JOBS",
            database=lambda: str(self._database.value or "default"),
            on_run=self._run,
        )
        text("p", f"Ctrl+Enter runs. {EDITOR_HELP}", "ld-muted")
        with box("div", "ld-bar"):
            self._database = field("Current database", value="default")
            self._run_button = button("Run", self._run, is_main=True)
            self._cancel = button("Cancel", self._end)
            self._cancel.set_visibility(False)
        self._said = Banner()
        self._answers = box("div", "ld-stack")
        ui.context.client.on_delete(self._end)

    async def _run(self) -> None:
        if self._stop is not None:  # It runs already: a key needs no button.
            return
        console, given = self._page.console, self._editor.value
        self._said.show("")
        self._editor.mark(0, 0)
        self._run_button.disable()
        self._run_button.props["loading"] = True
        self._cancel.set_visibility(True)
        stop = self._stop = CancelToken()
        answers: list[queries.Answered] = []
        try:
            visitor = await self._page.visitor()
            database = str(self._database.value or "default")
            await console.run(visitor, stop, lambda: queries.run_sql(console, visitor, given, database, answers))
        except LadingError as error:
            self._refuse(error, len(answers))
        finally:
            self._run_button.enable()
            self._run_button.props["loading"] = False
            self._cancel.set_visibility(False)
            self._stop = None
        self._show(answers)

    def _end(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _refuse(self, error: LadingError, done: int) -> None:
        mistake = mistake_of(error)
        where = f"Line {mistake.line}, column {mistake.column}: " if mistake.line else ""
        before = f"Statements done before it: {done}." if done else ""
        lines = " ".join(filter(None, (mistake.left, before, mistake.todo)))
        self._said.show(f"{where}{mistake.message}", lines, "bad")
        self._editor.mark(mistake.start, mistake.end)
        self._page.announce(f"{where}{mistake.message}")

    def _show(self, answers: list[queries.Answered]) -> None:
        self._answers.clear()
        with self._answers:
            for answer in answers:
                with box("section", "ld-panel", aria_label="Answer"):
                    show_answer(answer.columns, answer.rows, answer.message, is_cut=answer.is_cut)
        if answers:
            self._page.announce("The answer is there")
