"""What lies beneath a job: positions, commits, errors, definition, audit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nicegui import ui

from lading.console import formatting
from lading.console.desk import Visitor
from lading.console.layout import Page, commit_path
from lading.console.widgets.basic import box, button, facts, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.jobs.tasks import TaskState
from lading.service.views.changes import change_words
from lading.service.views.records import (
    AuditView,
    BatchView,
    BillView,
    ErrorRow,
    GapView,
    JobDetail,
)

TABS = ("Positions", "Commits", "Errors", "Definition", "Audit")
COMMITS, SAMPLES, FAILED, GAP_BILLS = 50, 50, 20, 100


class JobDetails:
    """Five tabs. Only the one that is open is read."""

    def __init__(self, page: Page, name: str) -> None:
        self._page, self._name = page, name
        self._errors_seen: object = None
        self._definition_seen: object = None
        with box("section", "ld-panel", aria_label="Details"):
            with ui.tabs().classes("ld-tabs").props("align=left dense no-caps outside-arrows mobile-arrows") as tabs:
                for tab in TABS:
                    ui.tab(tab)
            self._tabs = tabs
            asked = page.request.query_params.get("tab", "").capitalize()
            with (
                ui.tab_panels(tabs, value=asked if asked in TABS else TABS[0]).classes("ld-panels").props("keep-alive")
            ):
                with ui.tab_panel("Positions"):
                    self._epoch = text("p", "", "ld-muted ld-pad")
                    self._positions = LiveTable("Positions by partition", _POSITIONS, empty="Not opened yet.")
                with ui.tab_panel("Commits"):
                    self._commits = LiveTable("Commits, newest first", _COMMITS, empty="No commit yet.")
                    text("p", f"The newest {COMMITS} are shown.", "ld-muted ld-pad")
                with ui.tab_panel("Errors"):
                    self._failed = LiveTable(
                        "Batches that failed", _FAILED, empty="No batch that is remembered failed.", shows_caption=True
                    )
                    self._gaps = LiveTable(
                        "Gaps: rows that the source no longer had", _GAPS, empty="No gap.", shows_caption=True
                    )
                    self._samples = LiveTable(
                        f"Bad rows, the newest {SAMPLES}", _SAMPLES, empty="No bad row was kept.", shows_caption=True
                    )
                with ui.tab_panel("Definition"):
                    self._definition = box("div", "ld-pad ld-stack")
                with ui.tab_panel("Audit"):
                    self._audit = LiveTable("What people changed", _AUDIT, empty="Nobody changed anything.")
        tabs.on_value_change(self._turned)

    async def refresh(self, visitor: Visitor, detail: JobDetail) -> None:
        """Read what the open tab shows."""
        sights, ask, name = self._page.console.sights, self._page.console.ask, self._name
        match str(self._tabs.value):
            case "Positions":
                self._show_positions(detail)
            case "Commits":
                self._commits.show(
                    [
                        _commit(name, bill)
                        for bill in await ask(sights.bills, name, limit=COMMITS, may_see=visitor.may_see)
                    ]
                )
            case "Errors":
                await self._refresh_errors(visitor, detail)
            case "Definition":
                self._show_definition(detail)
            case "Audit":
                found = await ask(sights.audit, name, may_see=visitor.may_see)
                self._audit.show([_change(number, entry) for number, entry in enumerate(reversed(found))][::-1])

    def turn_to(self, tab: str) -> None:
        """Open a tab, and bring it into sight."""
        self._tabs.set_value(tab)
        ui.run_javascript(f"getHtmlElement({self._tabs.id})?.scrollIntoView({{behavior: 'smooth', block: 'start'}})")

    async def _turned(self) -> None:
        tab = str(self._tabs.value)
        self._page.remember(tab=tab.lower() if tab != TABS[0] else "")

        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            detail = await console.ask(console.sights.one_job, self._name, visitor.may_see)
            await self.refresh(visitor, detail)

        await self._page.attempt(work)

    def _show_positions(self, detail: JobDetail) -> None:
        lags = detail.job.lag.partitions if detail.job.lag else {}
        unit = detail.job.lag.unit.value if detail.job.lag else ""
        said = detail.positions_fault or (
            f"According to the table, in epoch {detail.epoch}.{_known_end(detail)}" if detail.positions else ""
        )
        self._epoch.set_text(said)
        self._epoch.set_visibility(bool(said))
        self._positions.show(
            [
                {
                    "key": found.partition,
                    "partition": {"text": found.partition, "mono": True},
                    "at": {"text": formatting.place(found.at), "mono": True, "wide": True},
                    "lag": _behind(lags.get(found.partition), unit),
                    "state": "finished" if found.finished else "open",
                    "parents": ", ".join(found.parents),
                }
                for found in detail.positions
            ]
        )

    async def _refresh_errors(self, visitor: Visitor, detail: JobDetail) -> None:
        """Bad rows are read from files: only when a commit or an error came."""
        seen = (detail.job.totals.rows.error, detail.job.seq, detail.job.batches, detail.job.last_error_at)
        if seen == self._errors_seen:
            return
        sights, ask, name = self._page.console.sights, self._page.console.ask, self._name
        samples = await ask(sights.errors, name, limit=SAMPLES, may_see=visitor.may_see)
        batches = await ask(sights.batches, name, may_see=visitor.may_see)
        gaps = await ask(sights.gaps, name, bills=GAP_BILLS, may_see=visitor.may_see)
        self._errors_seen = seen
        self._samples.show([_sample(number, row) for number, row in enumerate(samples)])
        self._failed.show([_batch(batch) for batch in batches if batch.state == TaskState.FAILED.value][:FAILED])
        self._gaps.show(_gap_rows(gaps))
        self._gaps.set_visibility(bool(gaps))

    def _show_definition(self, detail: JobDetail) -> None:
        if (detail.definition, detail.properties) == self._definition_seen:
            return
        self._definition_seen = (detail.definition, detail.properties)
        self._definition.clear()
        with self._definition:
            text("pre", detail.definition, "ld-code", tabindex="0", aria_label="Statement of the job")
            with box("div", "ld-bar"):
                button("Copy", lambda: self._copy(detail.definition))
            shown = {"Job id": detail.job.job_id, "Made": detail.job.created_at.isoformat(timespec="seconds")}
            facts({**shown, **detail.properties})

    def _copy(self, definition: str) -> None:
        ui.clipboard.write(definition)
        self._page.tell("The statement was copied")


_POSITIONS = (
    Column(name="partition", label="Partition"),
    Column(name="at", label="Position"),
    Column(name="lag", label="Lag", is_number=True),
    Column(name="state", label="State"),
    Column(name="parents", label="Parents"),
)
_COMMITS = (
    Column(name="seq", label="Seq", is_number=False),
    Column(name="kind", label="Kind"),
    Column(name="at", label="Committed"),
    Column(name="rows", label="Rows", is_number=True),
    Column(name="errors", label="Bad rows", is_number=True),
    Column(name="size", label="Data", is_number=True),
    Column(name="files", label="Files", is_number=True),
    Column(name="took", label="Took", is_number=True),
    Column(name="epoch", label="Epoch", is_number=True),
)
_SAMPLES = (
    Column(name="file", label="File"),
    Column(name="row", label="Row", is_number=True),
    Column(name="reason", label="Reason"),
    Column(name="raw", label="Record"),
    Column(name="seq", label="Seq", is_number=True),
)
_FAILED = (
    Column(name="batch", label="Batch"),
    Column(name="state", label="State"),
    Column(name="at", label="Ended"),
    Column(name="range", label="Was to read"),
    Column(name="error", label="Error"),
    Column(name="attempt", label="Attempts", is_number=True),
)
_GAPS = (
    Column(name="partition", label="Partition"),
    Column(name="start", label="From"),
    Column(name="end", label="To"),
    Column(name="reason", label="Reason"),
    Column(name="at", label="Noticed"),
)
_AUDIT = (
    Column(name="action", label="Action"),
    Column(name="at", label="When"),
    Column(name="user", label="Who"),
    Column(name="what", label="What"),
)


def _behind(number: int | None, unit: str) -> str:
    if number is None:
        return formatting.NOTHING
    return formatting.took(number / 1000) if unit == "milliseconds" else f"{number:,}"


def _known_end(detail: JobDetail) -> str:
    end = end_words(detail.job.end_offset)
    return f" When it was last asked, the source reached {end}." if end else ""


def end_words(offset: str) -> str:
    """How far the source reaches, for people: the file alone, or each partition with its position."""
    try:
        told = json.loads(offset)
    except ValueError:
        return offset
    if not isinstance(told, dict):
        return offset
    if told.keys() == {"fileName"}:
        return str(told["fileName"])
    return formatting.shorten(", ".join(f"{partition}: {at}" for partition, at in told.items()), 200)


def _commit(name: str, bill: BillView) -> Row:
    rows, errors = bill.tally.rows, bill.tally.rows.error
    return {
        "key": bill.seq,
        "seq": {"text": f"{bill.seq:,}", "href": commit_path(name, bill.seq)},
        "kind": bill.kind,
        "at": {"at": formatting.millis(bill.billed_at)},
        "rows": formatting.count(rows.loaded),
        "errors": {"text": formatting.count(errors), "tone": "bad" if errors else ""},
        "size": formatting.size(bill.tally.data_bytes),
        "files": formatting.count(bill.tally.data_files),
        "took": formatting.took(bill.seconds),
        "epoch": formatting.count(bill.epoch),
    }


def _sample(number: int, row: ErrorRow) -> Row:
    return {
        "key": f"{row.seq}/{row.file}/{row.row}/{number}",
        "file": {"text": row.file.rsplit("/", 1)[-1], "title": row.file, "mono": True},
        "row": formatting.count(row.row),
        "reason": {"text": row.reason, "wide": True},
        "raw": {"text": formatting.shorten(row.raw, 200), "title": row.raw, "mono": True, "wide": True},
        "seq": "refused" if row.seq is None else formatting.count(row.seq),
    }


def _batch(batch: BatchView) -> Row:
    ended = batch.finished_at or batch.started_at or batch.created_at
    return {
        "key": batch.batch_id,
        "batch": formatting.count(batch.batch_id),
        "state": {"text": batch.state, "badge": True, "tone": "bad"},
        "at": {"at": formatting.millis(ended)},
        "range": {"text": formatting.shorten(batch.running_offset, 120), "title": batch.running_offset, "mono": True},
        "error": {"text": formatting.shorten(batch.error or batch.first_error, 300), "wide": True},
        "attempt": formatting.count(batch.attempt),
    }


def _gap_rows(gaps: Sequence[GapView]) -> list[Row]:
    return [
        {
            "key": f"{gap.seq}/{gap.partition}/{gap.start}",
            "partition": {"text": gap.partition, "mono": True},
            "start": {"text": gap.start, "mono": True},
            "end": {"text": gap.end, "mono": True},
            "reason": {"text": gap.reason, "wide": True},
            "at": {"at": formatting.millis(gap.at)},
        }
        for gap in gaps
    ]


def _change(number: int, entry: AuditView) -> Row:
    said = change_words(entry)
    return {
        "key": number,
        "action": entry.action,
        "at": {"at": formatting.millis(entry.at)},
        "user": entry.user,
        "what": {"text": formatting.shorten(said, 400), "title": said, "mono": bool(entry.statement), "wide": True},
    }
