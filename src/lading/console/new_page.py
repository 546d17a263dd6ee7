"""A page for a new job: the statement is checked while it is typed."""

from __future__ import annotations

from functools import partial

from nicegui import ui
from nicegui.events import GenericEventArguments
from starlette.requests import Request
from starlette.responses import Response

from lading.console import acts, words
from lading.console.checking import Checked, Mistake, check_text, mistake_of
from lading.console.desk import Console
from lading.console.frame import Page, frame, job_path, to_login
from lading.console.parts.basic import Banner, box, button, facts, field, text
from lading.errors import LadingError

DEBOUNCE_S = 0.3
EXAMPLE = """\
CREATE TABLE IF NOT EXISTS orders (id BIGINT NOT NULL, city VARCHAR(64), amount DECIMAL(10,2)) USING delta;

CREATE JOB orders ON STREAMING DO
INSERT INTO orders SELECT id, city, amount
FROM S3(
  "uri" = "s3://shop/orders/*.csv",
  "format" = "csv_with_names",
  "s3.region" = "eu-west-1"
);
"""
_STREAM = """\
CREATE ROUTINE LOAD clicks ON clicks
PROPERTIES ("format" = "json")
FROM KINESIS (
  "aws.region" = "eu-west-1",
  "kinesis_stream" = "clicks",
  "property.kinesis_default_pos" = "TRIM_HORIZON"
);
"""
_TOPIC = """\
CREATE ROUTINE LOAD clicks ON clicks
PROPERTIES ("format" = "json")
FROM KAFKA (
  "kafka_broker_list" = "broker:9092",
  "kafka_topic" = "clicks",
  "property.kafka_default_offsets" = "OFFSET_BEGINNING"
);
"""
_SET_UP = """
(async () => {
  const box = getElement(EDITOR);
  const editor = await box.editorPromise;
  editor.contentDOM.setAttribute("aria-label", "Statement");
  const found = await box.findLanguage("MySQL").load();
  editor.dispatch({ effects: box.languageConfig.reconfigure([found.language]) });
  const tell = () => emitEvent("lading_dark", lading.isDark());
  window.addEventListener("lading-theme", tell);
  tell();
})();
"""
"""Colours of MySQL without its list of words: that would take Enter and the arrows for itself."""
_EXAMPLES = {"Files": EXAMPLE, "Kinesis": _STREAM, "Kafka": _TOPIC}


def add_new(console: Console) -> None:
    """The page at `/new`."""

    @ui.page("/new")
    async def new(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="New job", here="/new") as page:
            _NewView(page)
        return None


class _NewView:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._turn = 0
        text("h1", "New job")
        with box("div", "ld-columns"):
            with box("div", "ld-stack"):
                with box("div", "ld-bar"):
                    text("span", "Begin with an example:", "ld-muted")
                    for name, example in _EXAMPLES.items():
                        text("button", name, "ld-small", type="button").on("click", partial(self._begin, example))
                self._editor = ui.codemirror("", theme="githubLight", line_wrapping=True)
                self._editor.classes("ld-editor").props["aria-label"] = "Statement"
                self._editor.on_value_change(self._typed)
                text("p", "Tab indents; to leave the editor press Escape, then Tab.", "ld-muted")
                with box("div", "ld-bar ld-acts"):
                    self._create = button("Create job", self._run, is_main=True)
                    self._create.disable()
            with box("div", "ld-stack"):
                self._database = field("Current database", value="default")
                self._database.on_value_change(self._typed)
                self._said = Banner()
                self._place = text("pre", "", "ld-code ld-place")
                self._place.set_visibility(False)
                with box("section", "ld-panel ld-pad ld-stack", aria_label="What it will do") as self._drafts:
                    text("p", "What the statement will do stands here while you type.", "ld-muted")
        ui.timer(0.1, self._label, once=True)
        ui.on("lading_dark", self._dark)

    # Typing.

    def _begin(self, example: str) -> None:
        self._editor.set_value(example)

    async def _typed(self) -> None:
        """Check once nothing was typed for a moment; only the newest text counts."""
        self._turn += 1
        turn = self._turn
        self._create.disable()
        ui.timer(DEBOUNCE_S, lambda: self._check(turn), once=True)

    async def _check(self, turn: int) -> None:
        if turn != self._turn:
            return
        console, given = self._page.console, str(self._editor.value or "")
        database = str(self._database.value or "default")
        checked = await console.ask(check_text, given, database=database, tables=console.lading.store)
        if turn == self._turn:
            self._show(checked)

    def _show(self, checked: Checked) -> None:
        self._show_mistake(checked.mistake)
        self._create.set_enabled(checked.is_ready)
        if checked.mistake is None:
            self._said.show("")
        if checked.is_ready:
            title = "The statement is right" if len(checked.jobs) == 1 else "The statements are right"
            self._said.show(title, " ".join(checked.remarks), "warn" if checked.remarks else "good")
            self._page.announce(f"{title}. {' '.join(checked.remarks)}")
        self._drafts.clear()
        with self._drafts:
            if not checked.jobs:
                text("p", "What the statement will do stands here while you type.", "ld-muted")
            for draft in checked.jobs:
                text("h2", f"A {draft.what}")
                facts({"Name": draft.name, "Reads": draft.source, "Loads into": draft.target})
            if checked.jobs and checked.others:
                before = f"{checked.others} other {words.plural(checked.others, 'statements')}"
                text("p", f"{before} beside it: databases and tables.", "ld-muted")

    def _show_mistake(self, mistake: Mistake | None) -> None:
        marks: list[dict[str, object]] = []
        self._place.set_visibility(False)
        if mistake is not None:
            where = f"Line {mistake.line}, column {mistake.column}: " if mistake.line else ""
            self._said.show(f"{where}{mistake.message}", mistake.todo, "bad")
            self._page.announce(f"{where}{mistake.message}")
            if mistake.end > mistake.start:
                marks = [{"kind": "mark", "from": mistake.start, "to": mistake.end, "class": "ld-wrong"}]
                self._place.set_text(mistake.excerpt)
                self._place.set_visibility(True)
        self._editor.decorations = marks

    # Doing.

    async def _run(self) -> None:
        console, given = self._page.console, str(self._editor.value or "")
        self._create.disable()
        self._create.props["loading"] = True
        try:
            visitor = await self._page.visitor()
            database = str(self._database.value or "default")
            name = await console.ask(acts.create, console, visitor, given, database)
        except LadingError as error:
            mistake = mistake_of(error)
            self._show_mistake(mistake)
            self._said.show(mistake.message, f"{mistake.left} {mistake.todo}".strip(), "bad")
            self._page.announce(mistake.message)
            self._create.enable()
            return
        finally:
            self._create.props["loading"] = False
        ui.navigate.to(job_path(name))

    def _label(self) -> None:
        ui.run_javascript(_SET_UP.replace("EDITOR", str(self._editor.id)))

    def _dark(self, event: GenericEventArguments) -> None:
        self._editor.set_theme("githubDark" if event.args else "githubLight")
