"""One job: how it is, what it did, what can be done."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from urllib.parse import urlencode

from nicegui import ui
from nicegui.events import GenericEventArguments
from starlette.requests import Request
from starlette.responses import Response

from lading.console import actions, formatting
from lading.console.desk import Console
from lading.console.job_details import JobDetails
from lading.console.job_plots import JobPlots
from lading.console.job_problem import ROLLED_BACK, ProblemPanel
from lading.console.layout import Page, edit_path, frame, show_no_job, to_login
from lading.console.move_dialog import MoveDialog, StopDialog, UndoDialog
from lading.console.rollback_dialog import RollbackDialog
from lading.console.widgets.basic import Badge, Banner, Tiles, box, button, link, text
from lading.errors import JobNotFoundError
from lading.jobs.batches import NOT_LOADED
from lading.jobs.record import JobRecord
from lading.model.notices import ListeningSummary
from lading.service.operations import ALTER, UNDO
from lading.service.views.records import Health, JobDetail, JobView
from lading.sources.registry import is_stream
from lading.tables.compaction.figures import TableFigures

PLOTS_EVERY = 3
"""Plots are drawn again with every third look: their points are many seconds wide."""
HELD_S = 0.7
"""Presses of a key that come faster than this are one that is held down."""
OLD_LAG_S = 45.0
"""A lag that is older than this says so."""
CHANGES = 50
"""So many of the newest changes are looked through for one that can be taken back."""
_FIGURES = {
    "rate": "Rows/s",
    "lag": "Lag",
    "rows": "Rows loaded",
    "errors": "Bad rows",
    "done": "Partitions done",
    "commits": "Commits",
    "batches": "Batches",
    "files": "Files in the table",
}

_EVENT_FIGURES = {
    "watermark": "Watermark",
    "late": "Late rows",
    "duplicate": "Duplicate rows",
    "windows": "Open windows",
    "state": "State",
}
"""For jobs whose rows have a time."""


def add_job(console: Console) -> None:
    """The page at `/jobs/{name}`."""

    @ui.page("/jobs/{name}")
    async def job(request: Request, name: str) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title=name, here="/") as page:
            try:
                record = await console.ask(console.sights.record, name, visitor.may_see)
            except JobNotFoundError:
                show_no_job(name)
                return None
            view = _JobView(page, record)
            page.every(view.refresh)
        return None


class _JobView:
    def __init__(self, page: Page, record: JobRecord) -> None:
        name, dialect = str(record.full_name), record.dialect
        self._page, self._name, self._looks, self._state = page, name, 0, ""
        self._is_acting, self._free_at_s = False, 0.0
        self._noun = dialect.noun
        with box("div", "ld-stack"):
            with box("nav", "ld-crumb", aria_label="Where you are"):
                link("Jobs", "/")
            with box("div", "ld-bar"):
                text("h1", name)
                self._badge, self._health = Badge(), Badge()
                self._note = text("span", "", "ld-muted ld-grow")
                with box("div", "ld-bar ld-acts"):
                    self._pause = button("Pause", None).on("click", partial(self._clicked, "PAUSE"), ["detail"])
                    self._resume = button("Resume", None, is_main=True)
                    self._resume.on("click", partial(self._clicked, "RESUME"), ["detail"])
                    self._move = button("Move position", self._open_move)
                    self._undo = button("Undo last change", self._open_undo)
                    self._rollback = button("Accept rollback", self._open_rollback)
                    self._edit = link("Edit", edit_path(name), "ld-link")
                    self._copy = link("Duplicate", f"/new?{urlencode({'from': name})}", "ld-link")
                    self._stop = button("Stop", self._open_stop, is_final=True)
            self._about = text("p", "", "ld-muted")
        for hidden in (self._pause, self._resume, self._move, self._undo, self._rollback, self._stop):
            hidden.set_visibility(False)
        is_files = not is_stream(record.spec)
        self._why = ProblemPanel(
            page,
            name,
            after=self.refresh_all,
            on_resume=lambda: self._control("RESUME"),
            on_show=lambda: self._details.turn_to("Errors"),
            on_edit=lambda: ui.navigate.to(edit_path(name)),
            has_files=is_files,
        )
        self._left_out = Banner()
        self._figures, self._event_figures = Tiles(_FIGURES), Tiles(_EVENT_FIGURES)
        self._event_figures.set_visibility(False)
        self._plots = JobPlots(page, name)
        self._details = JobDetails(page, name)
        self._move_dialog = MoveDialog(page, name, self.refresh_all, is_files=is_files)
        self._undo_dialog = UndoDialog(page, name, self.refresh_all)
        self._rollback_dialog = RollbackDialog(page, name, self.refresh_all)
        self._stop_dialog = StopDialog(page, name, self.refresh_all, f"{dialect.end_verb} {dialect.form}")

    async def refresh_all(self) -> None:
        """After somebody did something: plots and timeline, too."""
        self._looks = 0
        await self.refresh()

    async def refresh(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        detail = await console.ask(console.sights.one_job, self._name, visitor.may_see)
        self._show(detail)
        changes = await console.ask(console.sights.audit, self._name, limit=CHANGES, may_see=visitor.may_see)
        can_undo = any(entry.action in (ALTER, UNDO) for entry in changes)
        self._undo.set_visibility(can_undo and detail.job.state == "PAUSED")
        self._move_dialog.follow(detail)
        await self._details.refresh(visitor, detail)
        if self._looks % PLOTS_EVERY == 0:
            await self._plots.refresh(detail.job)
        self._looks += 1

    def _show(self, detail: JobDetail) -> None:
        job = detail.job
        self._badge.show(job.state, "idle")
        self._health.show(job.health.state.value, formatting.tone_of(job))
        self._note.set_text(job.health.note or job.message)
        if self._state and self._state != job.state:
            self._page.announce(f"{job.name} is now {job.state}")
        self._state = job.state
        comment = f" · {job.comment}" if job.comment else ""
        source = f" from {job.source}" if job.source else ""
        self._about.set_text(f"A {self._noun}{source} into {job.target}, made by {job.definer or 'nobody'}{comment}")
        is_final = job.ended_at is not None
        is_paused = job.state == "PAUSED"
        self._pause.set_visibility(not is_paused and not is_final)
        self._resume.set_visibility(is_paused)
        self._move.set_visibility(not is_final)
        self._stop.set_visibility(not is_final)
        self._edit.set_visibility(not is_final)
        self._rollback.set_visibility(is_paused and job.reason is not None and ROLLED_BACK in job.reason.message)
        self._why.show(job)
        self._left_out.show(*left_out_words(job), "warn")
        self._show_figures(detail)

    def _show_figures(self, detail: JobDetail) -> None:
        job, show = detail.job, self._figures.show
        totals, batches = job.totals, job.batches
        show("rate", formatting.rate(job.rows_per_s), f"{formatting.size(job.bytes_per_s)}/s")
        show("lag", formatting.lag(job.lag), _lag_note(job, self._page.console.lading.clock.now()))
        unselected = totals.rows.unselected
        left_out = f"{formatting.count(unselected)} left out by WHERE" if unselected else ""
        show("rows", formatting.count(totals.rows.loaded), left_out)
        errors = totals.rows.error
        ratio = f"{errors / totals.rows.total:.2%} of all" if errors and totals.rows.total else ""
        show("errors", formatting.count(errors), ratio, "bad" if errors else None)
        self._show_event_time(detail)
        self._show_listening(job.listening)
        note = f"newest is {job.seq}" if job.seq is not None else "not opened yet"
        show("commits", formatting.count(totals.commits), note)
        show("batches", formatting.count(batches.succeeded), f"{formatting.count(batches.failed)} failed")
        self._show_files(self._page.console.sights.files_of(job.target), job.last_commit_at)

    def _show_files(self, found: TableFigures | None, last_commit_at: datetime | None) -> None:
        if found is None:
            self._figures.show("files", formatting.NOTHING, "not looked at yet")
            return
        age_s = (self._page.console.lading.clock.now() - found.at).total_seconds()
        is_old = last_commit_at is not None and last_commit_at > found.at
        seen = [f"seen {formatting.spell(max(age_s, 0))} ago, before the newest commit"] if is_old else []
        parts = [*seen, f"{formatting.count(found.small)} small"]
        if len(found.partitions) > 1:
            parts.append(f"{formatting.count(found.most_files)} at most in one of {len(found.partitions):,} partitions")
        if found.last is not None:
            parts.append(f"{len(found.last.replaced)} became {len(found.last.added)} at {found.last.at:%Y-%m-%d %H:%M}")
        parts += ["compaction is off"] if found.mode == "OFF" else []
        self._figures.show("files", formatting.count(found.files), "; ".join(parts))

    def _show_event_time(self, detail: JobDetail) -> None:
        job, show = detail.job, self._event_figures.show
        rows = job.totals.rows
        self._event_figures.set_visibility(job.has_event_time)
        ahead = f"{formatting.count(job.totals.ahead)} rows too far ahead do not move it" if job.totals.ahead else ""
        show("watermark", job.watermark or formatting.NOTHING, ahead if job.watermark else "no row yet")
        show("late", formatting.count(rows.late), "behind the watermark", "warn" if rows.late else None)
        show("duplicate", formatting.count(rows.duplicate), "their keys were loaded before")
        count = formatting.NOTHING if detail.open_windows is None else formatting.count(detail.open_windows)
        show("windows", count, f"the next is due at {job.state_due}" if job.state_due else "no window is open")
        size = formatting.size(job.state_bytes) if job.state_bytes is not None else formatting.NOTHING
        show(
            "state", size, f"{formatting.count(job.state_rows)} rows" if job.state_rows is not None else "nothing kept"
        )

    def _show_listening(self, known: ListeningSummary | None) -> None:
        self._figures.leave_out("done", known is None)
        if known is None:
            return
        counts = {"open": known.open, "to be told": known.pending, "rows came later": known.late_rows}
        parts = [f"{formatting.count(count)} {what}" for what, count in counts.items() if count]
        parts += [f"{each.listener}: {each.error}" for each in known.failures]
        self._figures.show("done", formatting.count(known.marked), "; ".join(parts), "bad" if known.failures else None)

    # What buttons do.

    async def _clicked(self, verb: actions.Verb, event: GenericEventArguments) -> None:
        """The other button takes the place of this one, and its focus. Neither the second click of two nor a key that
        is held down is meant for it.
        """
        clicks, now_s = int(event.args.get("detail") or 0), self._page.console.lading.clock.monotonic_s()
        is_held = clicks == 0 and now_s < self._free_at_s
        self._free_at_s = now_s + HELD_S
        if not (self._is_acting or is_held or clicks > 1):
            await self._control(verb)

    async def _control(self, verb: actions.Verb) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            self._is_acting = True
            try:
                await console.ask(actions.control, console, visitor, self._name, verb)
            finally:
                self._is_acting = False
            self._page.tell(f"{self._name} is {'paused' if verb == 'PAUSE' else 'resumed'}")
            await self.refresh_all()
            other = self._resume if verb == "PAUSE" else self._pause
            ui.run_javascript(f"lading.focus({other.id})")

        await self._page.attempt(work)

    async def _open_move(self) -> None:
        await self._page.attempt(self._move_dialog.open)

    async def _open_undo(self) -> None:
        await self._page.attempt(self._undo_dialog.open)

    async def _open_rollback(self) -> None:
        await self._page.attempt(self._rollback_dialog.open)

    def _open_stop(self) -> None:
        self._stop_dialog.open()


def _lag_note(job: JobView, now: datetime) -> str:
    """How old the figure is, unless it is of this moment."""
    if job.lag is None:
        return "nobody looks while PAUSED" if job.state == "PAUSED" else "nobody has looked"
    age_s = (now - job.lag.at).total_seconds()
    notes = [f"seen {formatting.spell(age_s)} ago"] if age_s >= OLD_LAG_S else []
    if job.lag.seconds_to_trim is not None:
        notes.append(f"{formatting.spell(job.lag.seconds_to_trim)} until rows are lost")
    return "; ".join(notes)


def left_out_words(job: JobView) -> tuple[str, str]:
    """Which files a job will not load, and what loads them; nothing for a job that leaves none out."""
    if job.health.state is not Health.LATE_FILES:
        return "", ""
    remark = job.message.partition(NOT_LOADED)[2]
    return "Some files are there and will not be loaded", f"{remark[:1].upper()}{remark[1:]}"
