"""What happened to a job, below its plots and over the same time."""

from __future__ import annotations

from collections.abc import Sequence

from lading.console import formatting
from lading.console.layout import Page, commit_path
from lading.console.widgets.basic import box, button, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.service.views.records import HappenedView

PAGE_EVENTS = 12
_COLUMNS = (
    Column(name="at", label="When"),
    Column(name="kind", label="What"),
    Column(name="told", label="Details"),
    Column(name="user", label="Who"),
)
_TONES = {"commit": "good", "failure": "bad", "retry": "warn", "pause": "warn", "resume": "idle", "edit": "idle"}


class JobTimeline:
    """Newest first; as many as fit are shown, and the rest on demand."""

    def __init__(self, page: Page, name: str) -> None:
        self._page, self._name, self._most = page, name, PAGE_EVENTS
        self._events: Sequence[HappenedView] = ()
        with box("section", "ld-panel", aria_label="Timeline"):
            with box("div", "ld-bar ld-pad"):
                text("h3", "Timeline", "ld-h3 ld-grow")
                self._count = text("span", "", "ld-muted")
            self._list = LiveTable("Timeline, newest first", _COLUMNS, empty="Nothing happened in this time.")
            with box("div", "ld-bar ld-pad") as self._rest:
                button("Show all", self._show_all)

    async def refresh(self, minutes: int) -> None:
        """Read what happened in the last minutes."""
        console, visitor = self._page.console, await self._page.visitor()
        self._events = await console.ask(console.sights.timeline, self._name, minutes=minutes, may_see=visitor.may_see)
        self._draw()

    def _show_all(self) -> None:
        self._most = 10_000
        self._draw()

    def _draw(self) -> None:
        self._list.show([event_row(self._name, event) for event in self._events[: self._most]])
        self._rest.set_visibility(len(self._events) > self._most)
        failures = sum(event.kind == "failure" for event in self._events)
        self._count.set_text(f"{formatting.count(failures)} failed {'batch' if failures == 1 else 'batches'}")


def event_row(name: str, event: HappenedView) -> Row:
    """One line of the timeline. A single commit leads to its page."""
    told: dict[str, object] = {"text": formatting.shorten(event.what, 200), "title": event.what, "wide": True}
    if event.kind == "commit":
        told = _commit_cell(name, event)
    return {
        "key": f"{event.kind}/{event.at.isoformat()}/{event.last_seq}",
        "at": {"at": formatting.millis(event.at)},
        "kind": {"text": event.kind, "badge": True, "tone": _TONES.get(event.kind, "idle")},
        "told": told,
        "user": event.user,
    }


def _commit_cell(name: str, event: HappenedView) -> dict[str, object]:
    rows = f"{formatting.count(event.rows)} {formatting.plural(event.rows or 0, 'rows')}"
    bad = f", {formatting.count(event.bad_rows)} bad" if event.bad_rows else ""
    first, last = event.first_seq or 0, event.last_seq or 0
    if first == last:
        kind = "" if event.what == "load" else f" ({event.what})"
        return {"text": f"Commit {last:,}{kind}", "href": commit_path(name, last), "note": f"{rows}{bad}"}
    return {
        "text": f"{last - first + 1:,} commits, {first:,} to {last:,}",
        "href": commit_path(name, last),
        "note": f"{rows}{bad}",
    }
