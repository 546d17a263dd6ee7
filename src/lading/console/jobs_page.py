"""The list of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import formatting
from lading.console.desk import Console
from lading.console.layout import Page, frame, job_path, to_login
from lading.console.new_page import EXAMPLE
from lading.console.widgets.basic import Tiles, box, button, field, link, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.ids import JobId
from lading.service.views.records import JobView

PAGE_ROWS = 100
_NEVER = datetime.fromtimestamp(0, UTC)

_COLUMNS = (
    Column(name="name", label="Job", is_sortable=True),
    Column(name="state", label="State", is_sortable=True),
    Column(name="lag", label="Lag", is_number=True, is_sortable=True),
    Column(name="rate", label="Rows/s", is_number=True, is_sortable=True),
    Column(name="rows", label="Rows loaded", is_number=True, is_sortable=True),
    Column(name="errors", label="Bad rows", is_number=True, is_sortable=True),
    Column(name="commit", label="Last commit", is_sortable=True),
    Column(name="trouble", label="Last error"),
)

_ORDERS: dict[str, Callable[[JobView], Any]] = {
    "name": lambda job: job.name,
    "state": lambda job: job.state,
    "lag": lambda job: (job.lag.behind or 0) if job.lag else -1,
    "rate": lambda job: job.rows_per_s,
    "rows": lambda job: job.totals.rows.loaded,
    "errors": lambda job: job.totals.rows.error,
    "commit": lambda job: job.last_commit_at or _NEVER,
}


def add_jobs(console: Console) -> None:
    """The page at `/`."""

    @ui.page("/")
    async def jobs(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Jobs", here="/") as page:
            view = _JobsView(page)
            view.show(await console.ask(console.sights.list_jobs, visitor.may_see))
            page.every(view.refresh)
        return None


class _JobsView:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._jobs: Sequence[JobView] = ()
        self._states: dict[str, str] = {}
        self._sort, self._descending, self._most = "name", False, PAGE_ROWS
        with box("div", "ld-bar"):
            text("h1", "Jobs", "ld-grow")
            link("New job", "/new", "ld-link ld-main-act")
        self._full = box("div", "ld-stack")
        with self._full:
            names = {"running": "Running", "paused": "Paused", "failing": "Need attention", "rate": "Rows/s, all jobs"}
            self._tiles = Tiles(names, has_notes=False)
            with box("div", "ld-panel"):
                with box("div", "ld-bar ld-pad"):
                    self._filter = field("Filter by name, table or state").classes("ld-grow")
                    self._filter.props("clearable debounce=200")
                    self._filter.on_value_change(self._draw)
                    self._found = text("span", "", "ld-muted", aria_live="polite")
                self._table = LiveTable("Jobs", _COLUMNS, empty="No job fits the filter.", on_sort=self._sort_by)
                with box("div", "ld-bar ld-pad") as self._rest:
                    button(f"Show {PAGE_ROWS} more", self._show_more)
        self._empty = box("section", "ld-panel ld-pad ld-stack")
        with self._empty:
            _first_job()

    async def refresh(self) -> None:
        console = self._page.console
        visitor = await self._page.visitor()
        self.show(await console.ask(console.sights.list_jobs, visitor.may_see))

    def show(self, jobs: Sequence[JobView]) -> None:
        """Show jobs, and say which changed their state."""
        self._jobs = jobs
        states = {job.name: job.state for job in jobs}
        changed = [f"{name} is now {state}" for name, state in states.items() if self._states.get(name, state) != state]
        self._states = states
        if changed:
            self._page.announce("; ".join(changed))
        self._draw()

    def _draw(self) -> None:
        jobs = self._jobs
        self._full.set_visibility(bool(jobs))
        self._empty.set_visibility(not jobs)
        tones = [formatting.tone_of(job) for job in jobs]
        self._tiles.show("running", formatting.count(sum(job.state == "RUNNING" for job in jobs)))
        self._tiles.show("paused", formatting.count(sum(job.state == "PAUSED" for job in jobs)))
        bad = tones.count("bad")
        self._tiles.show("failing", formatting.count(bad), tone="bad" if bad else None)
        self._tiles.show("rate", formatting.rate(sum(job.rows_per_s for job in jobs)))
        wanted = str(self._filter.value or "").lower().split()
        found = [job for job in jobs if all(word in _searched(job) for word in wanted)]
        found.sort(key=_ORDERS[self._sort], reverse=self._descending)
        self._found.set_visibility(bool(wanted))
        self._found.set_text(f"{formatting.count(len(found))} of {formatting.count(len(jobs))}" if wanted else "")
        self._table.show_sort(self._sort, descending=self._descending)
        self._table.show([self._row(job) for job in found[: self._most]])
        self._rest.set_visibility(len(found) > self._most)

    def _row(self, job: JobView) -> Row:
        errors = job.totals.rows.error
        return {
            "key": job.job_id,
            "name": {"text": job.name, "href": job_path(job.name), "note": f"into {job.target}", "title": job.comment},
            "state": {
                "text": job.state,
                "badge": True,
                "tone": formatting.tone_of(job),
                "note": formatting.state_note(job),
                "title": job.reason.message if job.reason else "",
            },
            "lag": formatting.lag(job.lag),
            "rate": {
                "text": formatting.rate(job.rows_per_s),
                "pulse": self._page.console.memory.pulse(JobId(job.job_id)),
            },
            "rows": formatting.count(job.totals.rows.loaded),
            "errors": {"text": formatting.count(errors), "tone": "bad" if errors else ""},
            "commit": {"at": formatting.millis(job.last_commit_at)} if job.last_commit_at else formatting.NOTHING,
            "trouble": _trouble(job),
        }

    def _sort_by(self, name: str) -> None:
        if name in _ORDERS:
            numbers = {column.name for column in _COLUMNS if column.is_number} | {"commit"}
            self._descending = not self._descending if name == self._sort else name in numbers
            self._sort = name
            self._draw()

    def _show_more(self) -> None:
        self._most += PAGE_ROWS
        self._draw()


def _searched(job: JobView) -> str:
    return f"{job.name} {job.target} {job.state} {formatting.state_note(job)} {job.comment}".lower()


def _trouble(job: JobView) -> object:
    said = job.reason.message if job.reason and formatting.tone_of(job) == "bad" else job.last_error
    if not said:
        return ""
    return {"text": formatting.shorten(said, 140), "title": said, "wide": True}


def _first_job() -> None:
    text("h2", "There is no job yet")
    text(
        "p",
        "A job loads files or a stream into a table, for ever, and each record once. One statement makes it:",
        "ld-muted",
    )
    text("pre", EXAMPLE, "ld-code")
    with box("div", "ld-bar"):
        link("Write the first job", "/new", "ld-link ld-main-act")
