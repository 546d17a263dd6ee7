"""The list of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import actions, formatting
from lading.console.desk import Console
from lading.console.layout import Page, frame, job_path, to_login
from lading.console.new_page import EXAMPLE
from lading.console.widgets.basic import Choices, box, button, field, link, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.ids import JobId
from lading.service.views.records import Health, JobView
from lading.sql.statements.users import Privilege

PAGE_ROWS = 100
MOST_NAMED = 5
"""Of more jobs at once, only their number is said."""
DEFAULT_SORT = "health"
_NEVER = datetime.fromtimestamp(0, UTC)

_COLUMNS = (
    Column(name="name", label="Job", is_sortable=True),
    Column(name="health", label="Health", is_sortable=True),
    Column(name="state", label="State", is_sortable=True),
    Column(name="lag", label="Lag", is_number=True, is_sortable=True),
    Column(name="rate", label="Rows/s", is_number=True, is_sortable=True),
    Column(name="rows", label="Rows loaded", is_number=True, is_sortable=True),
    Column(name="errors", label="Bad rows", is_number=True, is_sortable=True),
    Column(name="commit", label="Last commit", is_sortable=True),
    Column(name="trouble", label="Last error"),
    Column(name="act", label="Action"),
)

_ORDERS: dict[str, Callable[[JobView], Any]] = {
    "name": lambda job: job.name,
    "health": lambda job: job.health.state.rank,
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
            view = _JobsView(page, sees_all=visitor.rights is None or visitor.rights.allow(Privilege.LOAD))
            view.show(await console.ask(console.sights.list_jobs, visitor.may_see))
            page.every(view.refresh)
        return None


class _JobsView:
    def __init__(self, page: Page, *, sees_all: bool) -> None:
        self._page = page
        self._jobs: Sequence[JobView] = ()
        self._told: dict[str, tuple[str, str]] = {}
        self._picked: set[str] = set()
        self._read_address(page.request)
        self._most = PAGE_ROWS
        with box("div", "ld-bar"):
            text("h1", "Jobs")
            self._rate = text("span", "", "ld-muted ld-grow")
            link("New job", "/new", "ld-link ld-main-act")
        self._full = box("div", "ld-stack")
        with self._full:
            names = {each.name: each.value.capitalize() for each in Health if each is not Health.ENDED}
            self._tiles = Choices(names, "Show only jobs that are", self._choose)
            with box("div", "ld-panel"):
                with box("div", "ld-bar ld-pad"):
                    self._filter = field("Filter by name, table, state or health", value=self._wanted)
                    self._filter.classes("ld-grow").props("clearable debounce=200")
                    self._filter.on_value_change(self._typed)
                    self._found = text("span", "", "ld-muted", aria_live="polite")
                with box("div", "ld-bar ld-pad", role="group", aria_label="Chosen jobs") as self._bulk:
                    self._count = text("strong", "", "ld-grow")
                    with box("div", "ld-bar ld-acts"):
                        button("Pause", lambda: self._control_all("PAUSE"))
                        button("Resume", lambda: self._control_all("RESUME"))
                        button("Choose all found", self._pick_all)
                        button("Choose none", self._pick_none)
                self._table = LiveTable(
                    "Jobs",
                    _COLUMNS,
                    empty="No job fits the filter.",
                    is_broad=True,
                    on_sort=self._sort_by,
                    on_act=self._act,
                    on_pick=self._pick,
                )
                with box("div", "ld-bar ld-pad") as self._rest:
                    button(f"Show {PAGE_ROWS} more", self._show_more)
        self._empty = box("section", "ld-panel ld-pad ld-stack")
        with self._empty:
            _first_job(sees_all=sees_all)

    def _read_address(self, request: Request) -> None:
        asked = request.query_params
        self._wanted = asked.get("q", "")[:200]
        self._health = next((each for each in Health if each.value == asked.get("health")), None)
        sort = asked.get("sort", DEFAULT_SORT)
        self._sort = sort if sort in _ORDERS else DEFAULT_SORT
        self._descending = asked.get("order") == "down"

    def _keep_address(self) -> None:
        self._page.remember(
            q=self._wanted,
            health=self._health.value if self._health else "",
            sort=self._sort if self._sort != DEFAULT_SORT else "",
            order="down" if self._descending else "",
        )

    async def refresh(self) -> None:
        console = self._page.console
        visitor = await self._page.visitor()
        self.show(await console.ask(console.sights.list_jobs, visitor.may_see))

    def show(self, jobs: Sequence[JobView]) -> None:
        """Show jobs, and say which changed their state or health."""
        self._jobs = jobs
        told = {job.name: (job.state, job.health.state.value) for job in jobs}
        changed = []
        for name, now in told.items():
            before = self._told.get(name, now)
            if before[0] != now[0]:
                changed.append(f"{name} is now {now[0]}")
            elif before[1] != now[1]:
                changed.append(f"{name} is now {now[1]}")
        self._told = told
        if changed:
            many = f"{formatting.count(len(changed))} jobs changed their state or health"
            self._page.announce("; ".join(changed) if len(changed) <= MOST_NAMED else many)
        self._draw()

    def _draw(self) -> None:
        jobs = self._jobs
        self._full.set_visibility(bool(jobs))
        self._empty.set_visibility(not jobs)
        counts = Counter(job.health.state for job in jobs)
        for each in Health:
            if each is not Health.ENDED:
                tone = formatting.TONES[each] if counts[each] and each is not Health.HEALTHY else None
                self._tiles.show(each.name, formatting.count(counts[each]), tone=tone, is_chosen=each is self._health)
        self._rate.set_text(f"{formatting.rate(sum(job.rows_per_s for job in jobs))} rows/s in all" if jobs else "")
        found = found_jobs(jobs, self._wanted, self._health)
        found.sort(key=lambda job: job.name)
        found.sort(key=_ORDERS[self._sort], reverse=self._descending)
        is_filtered = bool(self._wanted.strip() or self._health)
        self._found.set_visibility(is_filtered)
        said = f"{formatting.count(len(found))} of {formatting.count(len(jobs))}"
        self._found.set_text(said if is_filtered else "")
        self._table.show_sort(self._sort, descending=self._descending)
        self._table.show([self._row(job) for job in found[: self._most]])
        self._rest.set_visibility(len(found) > self._most)
        self._picked &= {job.name for job in jobs}
        self._bulk.set_visibility(bool(self._picked))
        number = len(self._picked)
        self._count.set_text(f"{formatting.count(number)} {formatting.plural(number, 'jobs')} chosen")

    def _row(self, job: JobView) -> Row:
        errors = job.totals.rows.error
        verb = "Resume" if job.state == "PAUSED" else "Pause"
        return {
            "key": job.name,
            "name": {
                "text": job.name,
                "href": job_path(job.name),
                "note": f"into {job.target}",
                "title": job.comment,
                "pick": {"on": job.name in self._picked, "label": f"Choose {job.name}"},
            },
            "health": {
                "text": job.health.state.value,
                "badge": True,
                "tone": formatting.tone_of(job),
                "note": job.health.note,
            },
            "state": {"text": job.state, "note": "batch on its way" if job.is_busy else ""},
            "lag": formatting.lag(job.lag),
            "rate": {
                "text": formatting.rate(job.rows_per_s),
                "pulse": self._page.console.memory.pulse(JobId(job.job_id)),
            },
            "rows": formatting.count(job.totals.rows.loaded),
            "errors": {"text": formatting.count(errors), "tone": "bad" if errors else ""},
            "commit": {"at": formatting.millis(job.last_commit_at)} if job.last_commit_at else formatting.NOTHING,
            "trouble": _trouble(job),
            "act": {"text": verb, "action": f"{verb.upper()} {job.name}", "label": f"{verb} {job.name}"},
        }

    # What people choose.

    def _typed(self) -> None:
        self._wanted = str(self._filter.value or "")
        self._keep_address()
        self._draw()

    def _choose(self, name: str) -> None:
        chosen = Health[name]
        self._health = None if chosen is self._health else chosen
        self._keep_address()
        self._draw()

    def _sort_by(self, name: str) -> None:
        if name in _ORDERS:
            numbers = {column.name for column in _COLUMNS if column.is_number} | {"commit"}
            self._descending = not self._descending if name == self._sort else name in numbers
            self._sort = name
            self._keep_address()
            self._draw()

    def _show_more(self) -> None:
        self._most += PAGE_ROWS
        self._draw()

    def _pick(self, name: str, is_on: bool) -> None:
        (self._picked.add if is_on else self._picked.discard)(name)
        self._draw()

    def _pick_all(self) -> None:
        self._picked = {job.name for job in found_jobs(self._jobs, self._wanted, self._health)}
        self._draw()

    def _pick_none(self) -> None:
        self._picked.clear()
        self._draw()

    # What people do.

    async def _act(self, asked: object) -> None:
        verb, _, name = str(asked).partition(" ")
        if verb in ("PAUSE", "RESUME"):
            await self._control([name], "PAUSE" if verb == "PAUSE" else "RESUME")

    async def _control_all(self, verb: actions.Verb) -> None:
        paused = {job.name for job in self._jobs if job.state == "PAUSED"}
        wanted = self._picked - paused if verb == "PAUSE" else self._picked & paused
        await self._control(sorted(wanted), verb)

    async def _control(self, names: Sequence[str], verb: actions.Verb) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            done, refused = await console.ask(actions.control_all, console, visitor, names, verb)
            past = "paused" if verb == "PAUSE" else "resumed"
            if done:
                self._page.tell(f"{_listed(done)} {'is' if len(done) == 1 else 'are'} {past}")
            if refused:
                rest = len(refused) - MOST_NAMED
                more = (f"and {formatting.count(rest)} more",) if rest > 0 else ()
                self._page.tell("; ".join((*refused[:MOST_NAMED], *more)), is_error=True)
            if not done and not refused:
                self._page.tell(f"None of them can be {past} now")
            await self.refresh()

        await self._page.attempt(work)


def found_jobs(jobs: Sequence[JobView], words: str, health: Health | None) -> list[JobView]:
    """Jobs that have all words somewhere, and this health."""
    wanted = words.lower().split()
    fits = [job for job in jobs if health in (None, job.health.state)]
    return [job for job in fits if all(word in _searched(job) for word in wanted)]


def _searched(job: JobView) -> str:
    health = f"{job.health.state.value} {job.health.note}"
    return f"{job.name} {job.target} {job.state} {health} {job.comment}".lower()


def _listed(names: Sequence[str]) -> str:
    """Names, as long as somebody would read them."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{formatting.count(len(names))} jobs"


def _trouble(job: JobView) -> object:
    said, whole = (job.problem.sentence, job.problem.detail) if job.problem else (job.last_error, job.last_error)
    if not said:
        return ""
    since = formatting.millis(job.last_error_at) if job.last_error_at else None
    return {"text": formatting.shorten(said, 140), "title": whole, "wide": True, "since": since}


def _first_job(*, sees_all: bool) -> None:
    text("h2", "There is no job yet" if sees_all else "There is no job that you may see")
    if not sees_all:
        text("p", "A job is shown to those who have LOAD on its table.", "ld-muted")
    text(
        "p",
        "A job loads files or a stream into a table, for ever, and each record once. One statement makes it:",
        "ld-muted",
    )
    text("pre", EXAMPLE, "ld-code")
    with box("div", "ld-bar"):
        link("Write the first job" if sees_all else "Write a job", "/new", "ld-link ld-main-act")
