"""The form for a new job: source, preview, table, mapping, policy. What it says stands in the editor as statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nicegui import ui

from lading.console import formatting, queries
from lading.console.formatting import Tone
from lading.console.guide import (
    BEGINNINGS,
    KINDS,
    Guide,
    Mapped,
    is_same_source,
    mapped_again,
    mapped_to,
    missing_of,
    seen_columns,
    source_of,
    text_of,
)
from lading.console.layout import Page
from lading.console.widgets.basic import Banner, box, button, field, text
from lading.console.widgets.results import result_table
from lading.errors import LadingError
from lading.service.limits.cancellation import CancelToken
from lading.service.result import Result
from lading.service.views.build import redacted
from lading.sources.registry import kind_of
from lading.sql.statements.parts import SourceFunction
from lading.tables.registry import NAMES

NEW = "Make a new table"
MOST_MAPPED = 200
"""Of more columns than this no form is shown: they are mapped by their names."""


class GuidePanel:
    """Calls `on_text` with the statements whenever they change."""

    def __init__(self, page: Page, on_text: Callable[[str], Any]) -> None:
        self._page, self._on_text = page, on_text
        self._guide = Guide()
        self._checked: SourceFunction | None = None
        self._is_refused = False
        """What is said of the source is that it could not be checked."""
        self._source_columns: Sequence[Mapped] = ()
        self._target: Result | None = None
        """The columns of the table that was chosen; None for a new one."""
        with box("details", "ld-panel ld-pad ld-guide"):
            text("summary", "Guide me: from the source to the statement")
            with box("div", "ld-stack ld-guide-steps"):
                self._build_source()
                self._build_table()
                text("h2", "3. Mapping")
                self._mapping = box("div", "ld-stack")
                self._build_policy()
                self._missing = text("p", "", "ld-muted", role="status")
        self._draw_fields()
        self._draw_mapping()
        self._changed()

    # Building.

    def _build_source(self) -> None:
        text("h2", "1. Source")
        with box("div", "ld-bar"):
            kinds = {"S3": "S3", "KAFKA": "Kafka", "KINESIS": "Kinesis", "FILE": "Files of the machine"}
            self._kind = ui.select(kinds, value="S3", label="Kind of source", on_change=self._choose_kind)
            self._kind.props("outlined dense").classes("ld-field ld-choice")
            begins = {"beginning": "From the beginning", "now": "What comes from now on"}
            self._begin = ui.select(begins, value="beginning", label="Begin", on_change=self._choose_begin)
            self._begin.props("outlined dense").classes("ld-field ld-choice")
        self._fields = box("div", "ld-guide-fields")
        self._more = ui.textarea(
            "Other properties, one on a line", placeholder="name = value", on_change=self._choose_more
        )
        self._more.props("outlined dense autogrow stack-label debounce=300").classes("ld-field ld-mono")
        with box("div", "ld-bar"):
            self._look = button("Test and preview", self._preview)
        self._said = Banner()
        self._rows = box("div", "ld-panel")
        self._rows.set_visibility(False)

    def _build_table(self) -> None:
        text("h2", "2. Table")
        with box("div", "ld-bar"):
            self._pick = ui.select([NEW], value=NEW, label="Table", on_change=self._choose_table)
            self._pick.props("outlined dense").classes("ld-field ld-choice ld-grow")
            self._name = field("Name of the new table", example="sales.orders").props("stack-label")
            self._name.classes("ld-grow").props("debounce=300").on_value_change(self._choose_name)
            self._format = ui.select(list(NAMES), value=NAMES[0], label="Format", on_change=self._choose_name)
            self._format.props("outlined dense").classes("ld-field ld-choice")
        ui.timer(0.2, self._list_tables, once=True)

    def _build_policy(self) -> None:
        text("h2", "4. Policy")
        with box("div", "ld-bar"):
            self._job = field("Name of the job")
            self._job.classes("ld-grow").props("debounce=300").on_value_change(self._choose_policy)
            bad = {False: "A bad row refuses its batch", True: "Bad rows go to quarantine"}
            self._bad = ui.select(bad, value=False, label="Bad rows", on_change=self._choose_policy)
            self._bad.props("outlined dense").classes("ld-field ld-choice")
            self._interval = field("Seconds between batches", example="10").props("stack-label")
            self._interval.props("debounce=300").on_value_change(self._choose_policy)

    def _draw_fields(self) -> None:
        self._fields.clear()
        kind = self._guide.kind
        with self._fields:
            for each in KINDS[kind]:
                made = field(
                    each.label, is_password=each.is_secret, is_mono=not each.is_secret, example=each.example
                ).props("stack-label")
                made.props("debounce=300 autocomplete=off").on_value_change(
                    lambda event, name=each.name: self._choose_property(name, str(event.value or ""))
                )
        self._begin.set_visibility(kind in BEGINNINGS)

    def _draw_mapping(self) -> None:
        self._mapping.clear()
        columns = self._guide.columns
        with self._mapping:
            if not columns:
                text("p", "The preview of the source, or a table, says which columns there are.", "ld-muted")
            elif len(columns) > MOST_MAPPED:
                text("p", f"{formatting.count(len(columns))} columns are mapped by their names.", "ld-muted")
            else:
                for at, column in enumerate(columns):
                    with box("div", "ld-move"):
                        text("span", f"{column.name} {column.type}", "ld-mono ld-move-at")
                        made = field(f"Expression for {column.name}", value=column.expression, example="not filled")
                        made.classes("ld-mono").props("stack-label debounce=300").on_value_change(
                            lambda event, at=at: self._choose_expression(at, str(event.value or ""))
                        )

    # Choosing.

    def _choose_kind(self) -> None:
        self._guide = replace(self._guide, kind=str(self._kind.value), properties={}, found={})
        self._draw_fields()
        self._source_changed()

    def _choose_begin(self) -> None:
        self._guide = replace(self._guide, begin=str(self._begin.value))
        self._source_changed()

    def _choose_more(self) -> None:
        self._guide = replace(self._guide, more=str(self._more.value or ""))
        self._source_changed()

    def _choose_property(self, name: str, value: str) -> None:
        self._guide = replace(self._guide, properties={**self._guide.properties, name: value})
        self._source_changed()

    def _choose_expression(self, at: int, value: str) -> None:
        columns = [*self._guide.columns]
        columns[at] = replace(columns[at], expression=value)
        self._guide = replace(self._guide, columns=columns)
        self._changed()

    def _choose_policy(self) -> None:
        self._guide = replace(
            self._guide,
            job=str(self._job.value or ""),
            allows_bad_rows=bool(self._bad.value),
            interval_s=str(self._interval.value or ""),
        )
        self._changed()

    def _choose_name(self) -> None:
        if self._pick.value == NEW:
            self._guide = replace(self._guide, table=str(self._name.value or ""), makes=str(self._format.value))
            self._changed()

    async def _choose_table(self) -> None:
        chosen = str(self._pick.value)
        is_new = chosen == NEW
        self._name.set_visibility(is_new)
        self._format.set_visibility(is_new)
        if is_new:
            self._target = None
            self._guide = replace(self._guide, columns=self._source_columns)
            self._choose_name()
        else:
            console = self._page.console

            async def work() -> None:
                visitor = await self._page.visitor()
                self._target = await console.ask(queries.describe_table, console, visitor, chosen)
                columns = mapped_to(self._target, self._source_columns)
                self._guide = replace(self._guide, table=chosen, makes="", columns=columns)

            await self._page.attempt(work)
        self._draw_mapping()
        self._changed()

    async def _list_tables(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            found = await console.ask(queries.list_tables, console, visitor)
            self._pick.set_options([NEW, *(table.name for table in found)], value=self._pick.value)

        await self._page.attempt(work)

    # Looking at the source.

    def _source_changed(self) -> None:
        """What was seen of a source is said of that source, and of no other."""
        if self._checked is not None and source_of(self._guide) != self._checked:
            self._checked = None
            self._said.show("Not checked against the source", "It was changed since it was looked at.", "warn")
            self._rows.set_visibility(False)
        elif self._is_refused:
            self._said.show("")  # That was another source.
        self._is_refused = False
        self._changed()

    async def _preview(self) -> None:
        console, asked = self._page.console, replace(self._guide, found={})
        self._look.disable()
        self._look.props["loading"] = True
        try:
            visitor = await self._page.visitor()
            rows, described = await console.run(
                visitor, CancelToken(), lambda: queries.look_at_source(console, visitor, source_of(asked))
            )
        except LadingError as error:
            self._refuse(*queries.told(error), "bad")
            return
        finally:
            self._look.enable()
            self._look.props["loading"] = False
        if not is_same_source(asked, self._guide):
            # Somebody went on while it was looked at: what was seen is of another source than the form names now.
            self._refuse("Not checked against the source", "It was changed while it was looked at.", "warn")
            return
        self._take_in(asked, rows, described)

    def _refuse(self, title: str, lines: str, tone: Tone) -> None:
        """Say why nothing is known of the source."""
        self._checked, self._is_refused = None, True
        self._rows.set_visibility(False)
        self._said.show(title, lines, tone)
        self._page.announce(title)

    def _take_in(self, asked: Guide, rows: Result, described: Result) -> None:
        """Show what was seen of the source, and fill the mapping from it."""
        before = self._source_columns
        columns, found = seen_columns(described)
        what = redacted(f"{asked.kind} {source_of(asked).properties.get(kind_of(asked.kind).subject, '')}")
        if not columns:
            # An empty source says nothing of what a job would find in it: nothing was checked.
            why = rows.message if not found else ""
            self._refuse("The source has no row to look at yet", f"{what}. {why}".strip(), "warn")
            return
        self._source_columns = columns
        self._guide = replace(self._guide, found=found)
        self._checked = source_of(self._guide)
        if self._pick.value == NEW:
            self._guide = replace(self._guide, columns=self._source_columns)
        elif self._target is not None:
            filled = mapped_again(self._target, before, self._source_columns, self._guide.columns)
            self._guide = replace(self._guide, columns=filled)
        number = len(self._source_columns)
        count = f"{formatting.count(number)} {formatting.plural(number, 'columns')}"
        self._is_refused = False
        self._said.show(f"Checked against the source: {count}", f"{what}. {rows.message}".strip(), "good")
        self._page.announce(f"Checked against the source: {count}")
        self._rows.clear()
        with self._rows:
            result_table("The first rows of the source", rows.columns, rows.rows, empty="It has no row yet.")
        self._rows.set_visibility(True)
        self._draw_mapping()
        self._changed()

    def _changed(self) -> None:
        missing = missing_of(self._guide)
        self._missing.set_text(f"Still missing: {', '.join(missing)}." if missing else "The statements are below.")
        if not missing:
            self._on_text(text_of(self._guide))
