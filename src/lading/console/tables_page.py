"""Tables: which there are, and one of them with its columns, files, commits, and how others read it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import formatting, queries
from lading.console.desk import Console
from lading.console.layout import STORE_S, Page, commit_path, frame, job_path, table_path, to_login
from lading.console.queries import TablePage
from lading.console.widgets.basic import Tiles, box, button, facts, field, link, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.console.widgets.results import result_table
from lading.errors import DeniedError, LadingError, TableNotFoundError
from lading.service.views.build import redacted
from lading.service.views.tables import TableChange, TableView
from lading.sql.syntax.render_parts import name_text
from lading.tables.registry import kind_of

_TABLES = (
    Column(name="name", label="Table"),
    Column(name="format", label="Format"),
    Column(name="jobs", label="Loaded by"),
    Column(name="location", label="Location"),
    Column(name="made", label="Made"),
)
_HISTORY = (
    Column(name="version", label="Version"),
    Column(name="at", label="When"),
    Column(name="what", label="What"),
    Column(name="job", label="Job"),
    Column(name="seq", label="Commit"),
    Column(name="rows", label="Rows", is_number=True),
    Column(name="errors", label="Bad rows", is_number=True),
    Column(name="files", label="Files", is_number=True),
    Column(name="size", label="Data", is_number=True),
)


def add_tables(console: Console) -> None:
    """The pages at `/tables`."""

    @ui.page("/tables")
    async def tables(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Tables", here="/tables") as page:
            view = _TablesView(page)
            page.every(view.refresh, seconds=10.0)
        return None

    @ui.page("/tables/{name}", response_timeout=STORE_S)
    async def table(request: Request, name: str) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title=name, here="/tables"):
            try:
                found = await console.ask(queries.look_at_table, console, visitor, name)
            except LadingError as error:
                is_gone = isinstance(error, TableNotFoundError | DeniedError)
                ui.context.client.status_code = 404 if is_gone else 503
                text("h1", "There is no such table" if is_gone else "This table cannot be read right now")
                text("p", redacted(str(error)), "ld-muted")
                link("All tables", "/tables")
                return None
            _show_table(found)
        return None


class _TablesView:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._tables: Sequence[TableView] = ()
        self._wanted = page.request.query_params.get("q", "")[:200]
        with box("div", "ld-bar"):
            text("h1", "Tables", "ld-grow")
            link("Query", "/sql", "ld-link")
        with box("div", "ld-panel"):
            with box("div", "ld-bar ld-pad"):
                self._filter = field("Filter by name, format or job", value=self._wanted).classes("ld-grow")
                self._filter.props("clearable debounce=200").on_value_change(self._typed)
            self._list = LiveTable("Tables", _TABLES, empty="No table, or none that fits the filter.", is_broad=True)

    async def refresh(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        self._tables = await console.ask(queries.list_tables, console, visitor)
        self._draw()

    def _typed(self) -> None:
        self._wanted = str(self._filter.value or "")
        self._page.remember(q=self._wanted)
        self._draw()

    def _draw(self) -> None:
        words = self._wanted.lower().split()
        found = [each for each in self._tables if all(word in _searched(each) for word in words)]
        self._list.show([_row(each) for each in found])


def _searched(table: TableView) -> str:
    return f"{table.name} {table.format} {' '.join(table.jobs)}".lower()


def _row(table: TableView) -> Row:
    return {
        "key": table.name,
        "name": {"text": table.name, "href": table_path(table.name)},
        "format": table.format,
        "jobs": ", ".join(table.jobs),
        "location": {"text": table.location, "mono": True, "wide": True},
        "made": {"at": formatting.millis(table.created_at)} if table.location else "",
    }


def _show_table(found: TablePage) -> None:
    table = found.table
    with box("div", "ld-stack"):
        with box("nav", "ld-crumb", aria_label="Where you are"):
            link("Tables", "/tables")
        with box("div", "ld-bar"):
            text("h1", table.name, "ld-grow")
            link("First rows", f"/sql?{urlencode({'q': first_rows(found)})}", "ld-link ld-main-act")
    tiles = Tiles({"format": "Format", "files": "Files", "size": "Size", "rows": "Rows in files", "jobs": "Loaded by"})
    tiles.show("format", table.format)
    tiles.show("files", formatting.count(found.total("Files")), found.fault)
    tiles.show("size", formatting.size(found.total("Bytes")))
    tiles.show("rows", formatting.count(found.total("Rows")))
    tiles.show("jobs", formatting.count(len(table.jobs)), ", ".join(table.jobs))
    with box("section", "ld-panel", aria_label="Columns"):
        text("h2", "Columns", "ld-pad")
        result_table("Columns", found.columns.columns, found.columns.rows, empty="No column.")
    if found.partitions is not None and len(found.partitions.rows) > 1:
        with box("section", "ld-panel", aria_label="Files by partition"):
            text("h2", "Files by partition", "ld-pad")
            result_table("Files by partition", found.partitions.columns, found.partitions.rows, empty="No file.")
    _show_snippets(table)
    with box("section", "ld-panel", aria_label="History"):
        text("h2", "History, newest first", "ld-pad")
        shown = LiveTable("History, newest first", _HISTORY, empty="Nothing was committed yet.")
        shown.show([_change(number, each) for number, each in enumerate(found.history)])


def first_rows(found: TablePage) -> str:
    """The query that shows a few rows."""
    return f"SELECT * FROM {name_text(found.full_name)} LIMIT 20"  # noqa: S608 - stands in a box for somebody to run


def _change(number: int, each: TableChange) -> Row:
    """A version of the table, with the job and the commit that it is of; others have neither."""
    bill = each.bill
    told: dict[str, object] = {}
    if bill is not None:
        errors = bill.tally.rows.error
        told = {
            "rows": formatting.count(bill.tally.rows.loaded),
            "errors": {"text": formatting.count(errors), "tone": "bad" if errors else ""},
            "files": formatting.count(bill.tally.data_files),
            "size": formatting.size(bill.tally.data_bytes),
        }
    return {
        "key": f"{number}/{each.version}/{each.job}/{each.seq}",
        "version": {"text": each.version or formatting.NOTHING, "mono": True},
        "at": {"at": formatting.millis(each.at)} if each.at is not None else "",
        "what": bill.kind if bill is not None else each.what,
        "job": {"text": each.job, "href": job_path(each.job)} if each.job else "",
        "seq": {"text": f"{each.seq:,}", "href": commit_path(each.job, each.seq)} if each.seq is not None else "",
        **told,
    }


def _show_snippets(table: TableView) -> None:
    found = kind_of(table.format).read_elsewhere(table.name, table.location) if table.location else {}
    with box("section", "ld-panel ld-pad ld-stack", aria_label="Read it elsewhere"):
        text("h2", "Read it elsewhere")
        facts({"Location": table.location or "the catalog knows it"})
        for engine, lines in found.items():
            with box("details", "ld-more"):
                text("summary", engine)
                text("pre", lines, "ld-code", tabindex="0", aria_label=f"To read it with {engine}")
                button("Copy", partial(ui.clipboard.write, lines))
