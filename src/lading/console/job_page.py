"""One job: how it is, what it did, what can be done."""

from __future__ import annotations

from functools import partial

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import acts, words
from lading.console.desk import Console
from lading.console.frame import Page, frame, to_login
from lading.console.job_details import JobDetails
from lading.console.job_plots import JobPlots
from lading.console.move_dialog import MoveDialog, UndoDialog
from lading.console.parts.basic import Badge, Banner, Tiles, box, button, link, text
from lading.errors import JobNotFoundError
from lading.service.edits import ALTER, UNDO
from lading.service.sight_records import JobDetail, JobSight

PLOTS_EVERY = 3
"""Plots are drawn anew with every third look: their points are many seconds wide."""
CHANGES = 50
"""So many of the newest changes are looked through for one that can be taken back."""
_FIGURES = {
    "rate": "Rows/s",
    "lag": "Lag",
    "rows": "Rows loaded",
    "errors": "Bad rows",
    "commits": "Commits",
    "batches": "Batches",
}


def add_job(console: Console) -> None:
    """The page at `/jobs/{name}`."""

    @ui.page("/jobs/{name}")
    async def job(request: Request, name: str) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title=name, here="/jobs") as page:
            try:
                record = await console.ask(console.sights.record, name, visitor.may_see)
            except JobNotFoundError as error:
                ui.context.client.status_code = 404
                text("h1", "There is no such job")
                text("p", str(error), "ld-muted")
                link("All jobs", "/")
                return None
            view = _JobView(page, str(record.full_name))
            page.every(view.refresh)
        return None


class _JobView:
    def __init__(self, page: Page, name: str) -> None:
        self._page, self._name, self._looks, self._state = page, name, 0, ""
        with box("div", "ld-stack"):
            with box("nav", "ld-crumb", aria_label="Where you are"):
                link("Jobs", "/")
            with box("div", "ld-bar"):
                text("h1", name)
                self._badge = Badge()
                self._note = text("span", "", "ld-muted ld-grow")
                with box("div", "ld-bar ld-acts"):
                    self._pause = button("Pause", partial(self._control, "PAUSE"))
                    self._resume = button("Resume", partial(self._control, "RESUME"), is_main=True)
                    self._move = button("Move position", self._open_move)
                    self._undo = button("Undo last change", self._open_undo)
            self._about = text("p", "", "ld-muted")
        for hidden in (self._pause, self._resume, self._move, self._undo):
            hidden.set_visibility(False)
        self._why = Banner()
        self._figures = Tiles(_FIGURES)
        self._plots = JobPlots(page, name)
        self._details = JobDetails(page, name)
        self._move_dialog = MoveDialog(page, name, self.refresh)
        self._undo_dialog = UndoDialog(page, name, self.refresh)

    async def refresh(self) -> None:
        """Look again."""
        console, visitor = self._page.console, await self._page.visitor()
        detail = await console.ask(console.sights.one_job, self._name, visitor.may_see)
        self._show(detail)
        changes = await console.ask(console.sights.audit, self._name, limit=CHANGES, may_see=visitor.may_see)
        can_undo = any(entry.action in (ALTER, UNDO) for entry in changes)
        self._undo.set_visibility(can_undo and detail.job.state == "PAUSED")
        await self._details.refresh(visitor, detail)
        if self._looks % PLOTS_EVERY == 0:
            await self._plots.refresh()
        self._looks += 1

    def _show(self, detail: JobDetail) -> None:
        job = detail.job
        self._badge.show(job.state, words.tone_of(job))
        self._note.set_text(words.state_note(job) or job.message)
        if self._state and self._state != job.state:
            self._page.announce(f"{job.name} is now {job.state}")
        self._state = job.state
        comment = f" · {job.comment}" if job.comment else ""
        kind = "routine load" if job.kind == "routine" else "job that loads files"
        self._about.set_text(f"A {kind} into {job.target}, made by {job.definer or 'nobody'}{comment}")
        is_final = job.ended_at is not None
        is_paused = job.state == "PAUSED"
        self._pause.set_visibility(not is_paused and not is_final)
        self._resume.set_visibility(is_paused)
        self._move.set_visibility(not is_final)
        self._show_reason(job)
        self._show_figures(job)

    def _show_reason(self, job: JobSight) -> None:
        tone = words.tone_of(job)
        if job.reason is not None and tone == "bad":
            after = "It does not go on before a person resumes it."
            if not job.reason.needs_a_person:
                after = "It is tried again without a person."
            self._why.show(f"{job.state}: {job.reason.code}", f"{job.reason.message} {after}", "bad")
        elif job.failures_in_a_row and job.last_error:
            self._why.show("The last batch failed", job.last_error, "warn")
        else:
            self._why.show("")

    def _show_figures(self, job: JobSight) -> None:
        show, totals, batches = self._figures.show, job.totals, job.batches
        show("rate", words.rate(job.rows_per_s), f"{words.size(job.bytes_per_s)}/s")
        show("lag", words.lag(job.lag), _trim(job))
        show("rows", words.count(totals.rows.loaded), f"{words.count(totals.rows.unselected)} left out by WHERE")
        errors = totals.rows.error
        ratio = f"{errors / totals.rows.total:.2%} of all" if errors and totals.rows.total else ""
        show("errors", words.count(errors), ratio, "bad" if errors else None)
        note = f"newest is {job.seq}" if job.seq is not None else "not opened yet"
        show("commits", words.count(totals.commits), note)
        show("batches", words.count(batches.succeeded), f"{words.count(batches.failed)} failed")

    # What buttons do.

    async def _control(self, verb: acts.Verb) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(acts.control, console, visitor, self._name, verb)
            self._page.tell(f"{self._name} is {'paused' if verb == 'PAUSE' else 'resumed'}")
            await self.refresh()

        await self._page.attempt(work)

    async def _open_move(self) -> None:
        await self._page.attempt(self._move_dialog.open)

    async def _open_undo(self) -> None:
        await self._page.attempt(self._undo_dialog.open)


def _trim(job: JobSight) -> str:
    if job.lag is None:
        return "nobody has looked"
    if job.lag.seconds_to_trim is None:
        return ""
    return f"{words.spell(job.lag.seconds_to_trim)} until rows are lost"
