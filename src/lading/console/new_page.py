"""A page for a new job: the statement is checked while it is typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from nicegui import ui
from nicegui.events import GenericEventArguments
from starlette.requests import Request
from starlette.responses import Response

from lading.console import actions, formatting
from lading.console.desk import Console
from lading.console.guide_panel import GuidePanel
from lading.console.layout import Page, frame, job_path, to_login
from lading.console.sql_editor import EDITOR_HELP, SqlEditor
from lading.console.statement_check import MOST_LETTERS, Catalog, Checked, Mistake, check_text, mistake_of
from lading.console.widgets.basic import Banner, box, button, facts, field, text
from lading.console.widgets.dialogs import Dialog
from lading.errors import LadingError
from lading.service.views.build import redacted
from lading.sql.syntax.spans import mask_text

DEBOUNCE_S = 0.3
NOT_ASKED = "Its source was not asked: that is done when the job is created."
EXAMPLE = """\
CREATE TABLE IF NOT EXISTS orders (id BIGINT NOT NULL, city VARCHAR(64), amount DECIMAL(10,2)) USING delta;

CREATE JOB orders ON STREAMING DO
INSERT INTO orders SELECT id, city, amount
FROM S3(
  "uri" = "s3://shop/orders/*.csv",
  "format" = "csv_with_names",
  "column_separator" = ",",
  "s3.region" = "eu-west-1"
);
"""
_STREAM = """\
CREATE TABLE IF NOT EXISTS clicks (id BIGINT NOT NULL, page STRING, at DATETIME) USING delta;

CREATE ROUTINE LOAD clicks ON clicks
PROPERTIES ("format" = "json")
FROM KINESIS (
  "aws.region" = "eu-west-1",
  "kinesis_stream" = "clicks",
  "property.kinesis_default_pos" = "TRIM_HORIZON"
);
"""
_TOPIC = """\
CREATE TABLE IF NOT EXISTS clicks (id BIGINT NOT NULL, page STRING, at DATETIME) USING delta;

CREATE ROUTINE LOAD clicks ON clicks
PROPERTIES ("format" = "json")
FROM KAFKA (
  "kafka_broker_list" = "broker:9092",
  "kafka_topic" = "clicks",
  "property.kafka_default_offsets" = "OFFSET_BEGINNING"
);
"""
EXAMPLES = {"Files": EXAMPLE, "Kinesis": _STREAM, "Kafka": _TOPIC}


def draft_of(text: str) -> str:
    """What the browser may keep of a text that is being typed: all of it, or nothing when there is a secret in it."""
    return text if len(text) <= MOST_LETTERS and mask_text(text) == text else ""


def add_new(console: Console) -> None:
    """The page at `/new`."""

    @ui.page("/new")
    async def new(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="New job", here="/new") as page:
            begin = actions.EditDraft()
            if original := request.query_params.get("from"):
                try:
                    begin = await console.ask(actions.copy_draft, console, visitor, original)
                except LadingError as error:
                    page.tell(redacted(str(error)), is_error=True)
            _NewView(page, begin)
        return None


class _NewView:
    def __init__(self, page: Page, begin: actions.EditDraft) -> None:
        self._page = page
        self._turn, self._example = 0, ""
        text("h1", "New job")
        if begin.remark:
            text("p", begin.remark, "ld-muted")
        self._guided = ""
        GuidePanel(page, self._follow)
        with box("div", "ld-columns"):
            with box("div", "ld-stack"):
                with box("div", "ld-bar"):
                    text("span", "Begin with an example:", "ld-muted")
                    for name, example in EXAMPLES.items():
                        text("button", name, "ld-small", type="button").on("click", partial(self._begin, example))
                self._editor = SqlEditor(
                    page,
                    begin.text,
                    database=lambda: str(self._database.value or "default"),
                    on_change=self._typed,
                    keeps_draft=not begin.text,
                )
                text("p", EDITOR_HELP, "ld-muted")
                with box("div", "ld-bar ld-acts"):
                    self._create = button("Create job", self._run, is_main=True)
                    self._create.disable()
            with box("div", "ld-stack"):
                self._database = field("Current database", value=begin.database)
                self._database.on_value_change(self._typed)
                self._said = Banner()
                self._place = text("pre", "", "ld-code ld-place")
                self._place.set_visibility(False)
                with box("section", "ld-panel ld-pad ld-stack", aria_label="What it will do") as self._drafts:
                    text("p", "What the statement will do is shown here while you type.", "ld-muted")
        with Dialog("Replace what was typed?") as self._ask:
            text("p", "An example or the form takes the place of the text in the editor.")
            with box("div", "ld-bar"):
                button("Keep the text", self._ask.close)
                button("Replace it", self._replace, is_main=True)
        ui.on("lading_draft", self._take_up)
        if begin.text:
            ui.timer(0.1, self._typed, once=True)

    # Typing.

    def _follow(self, given: str) -> None:
        """Write what the form says, unless somebody has typed something else."""
        self._example = given
        if self._editor.value.strip() in ("", self._guided.strip()):
            self._guided = given
            self._editor.set_value(given)
        elif given != self._guided:
            self._guided = given
            self._ask.open()

    def _begin(self, example: str) -> None:
        self._example = example
        given = self._editor.value.strip()
        if given and given not in {known.strip() for known in EXAMPLES.values()}:
            self._ask.open()
        else:
            self._editor.set_value(example)

    def _replace(self) -> None:
        self._ask.close()
        self._editor.set_value(self._example)

    def _take_up(self, event: GenericEventArguments) -> None:
        if not self._editor.value:
            self._editor.set_value(str(event.args)[:MOST_LETTERS])
            self._page.announce("The text that you were writing is back")

    async def _typed(self) -> None:
        """Check once nothing was typed for a moment; only the newest text counts."""
        self._turn += 1
        turn = self._turn
        self._create.disable()
        ui.timer(DEBOUNCE_S, lambda: self._check(turn), once=True)

    async def _check(self, turn: int) -> None:
        if turn != self._turn:
            return
        console, given = self._page.console, self._editor.value
        database = str(self._database.value or "default")
        ui.run_javascript(f"lading.keepDraft({json.dumps(draft_of(given))})")
        visitor = await console.ask(console.visitor, self._page.request)
        lading = console.lading
        known = Catalog(lading.store, visitor, lading.catalog.external.has) if visitor is not None else None
        checked = await console.ask(check_text, given, database=database, known=known)
        if turn == self._turn:
            self._show(checked)

    def _show(self, checked: Checked) -> None:
        self._show_mistake(checked.mistake)
        self._create.set_enabled(checked.is_ready)
        if checked.mistake is None:
            self._said.show("")
        if checked.is_ready:
            title = "The statement is right" if len(checked.jobs) == 1 else "The statements are right"
            if checked.remarks:  # It is one, and creating the job would be refused as things are.
                title = "The statement can be read"
            said = " ".join((*checked.remarks, NOT_ASKED))
            self._said.show(title, said, "warn" if checked.remarks else "good")
            self._page.announce(f"{title}. {' '.join(checked.remarks)}")
        self._drafts.clear()
        with self._drafts:
            if not checked.jobs:
                text("p", "What the statement will do is shown here while you type.", "ld-muted")
            for draft in checked.jobs:
                text("h2", f"A {draft.what}")
                facts({"Name": draft.name, "Reads": draft.source, "Loads into": draft.target})
            if checked.jobs and checked.others:
                before = f"{checked.others} other {formatting.plural(checked.others, 'statements')}"
                text("p", f"{before} beside it: databases and tables.", "ld-muted")

    def _show_mistake(self, mistake: Mistake | None) -> None:
        start, end = 0, 0
        self._place.set_visibility(False)
        if mistake is not None:
            where = f"Line {mistake.line}, column {mistake.column}: " if mistake.line else ""
            self._said.show(f"{where}{mistake.message}", mistake.todo, "bad")
            self._page.announce(f"{where}{mistake.message}")
            if mistake.end > mistake.start:
                start, end = mistake.start, mistake.end
                self._place.set_text(mistake.excerpt)
                self._place.set_visibility(True)
        self._editor.mark(start, end)

    # Doing.

    async def _run(self) -> None:
        console, given = self._page.console, self._editor.value
        self._create.disable()
        self._create.props["loading"] = True
        try:
            visitor = await self._page.visitor()
            database = str(self._database.value or "default")
            made = await console.ask(actions.create, console, visitor, given, database)
        except LadingError as error:
            self._refuse(error)
            return
        finally:
            self._create.props["loading"] = False
        if made.fault is not None:
            self._refuse(made.fault, made.done)
            return
        ui.run_javascript("lading.keepDraft('')")
        ui.navigate.to(job_path(made.name))

    def _refuse(self, error: LadingError, done: Sequence[str] = ()) -> None:
        mistake = mistake_of(error)
        self._show_mistake(mistake)
        left = f"Made before it, and there now: {', '.join(done)}." if done else ""
        self._said.show(mistake.message, " ".join(filter(None, (mistake.left, left, mistake.todo))), "bad")
        self._page.announce(f"{mistake.message}. {left}")
        self._create.enable()
