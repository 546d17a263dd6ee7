"""Who did what: the newest events of the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import formatting
from lading.console.desk import Console, Visitor
from lading.console.formatting import Tone
from lading.console.layout import Page, frame, to_login
from lading.console.widgets.basic import box, field, text
from lading.console.widgets.live import Column, LiveTable, Row
from lading.service.security.audit_event import AuditEvent, EventResult
from lading.service.views.audit_log import Look, look_at_newest, visible_to
from lading.service.views.build import redacted
from lading.sql.statements.audit import KINDS, RESULTS, ShowAudit

PAGE_EVENTS = 200
REFRESH_S = 5.0
_SHORT = 160
_COLUMNS = (
    Column(name="time", label="Time (UTC)"),
    Column(name="user", label="User"),
    Column(name="result", label="Result"),
    Column(name="what", label="What"),
    Column(name="from", label="From"),
    Column(name="took", label="Took", is_number=True),
)
_TONES: dict[EventResult, Tone] = {EventResult.OK: "good", EventResult.DENIED: "bad", EventResult.ERROR: "warn"}


def add_audit(console: Console) -> None:
    """The page at `/audit`."""

    @ui.page("/audit")
    async def audit(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Audit", here="/audit") as page:
            page.every(_AuditView(page).refresh, REFRESH_S)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    events: tuple[AuditEvent, ...]
    note: str


class _AuditView:
    def __init__(self, page: Page) -> None:
        self._page = page
        asked = page.request.query_params
        text("h1", "Audit")
        with box("div", "ld-panel"):
            with box("div", "ld-bar ld-pad"):
                self._user = field("User", value=asked.get("user", "")[:200]).props("clearable debounce=300")
                self._kind = _choice("Kind", KINDS, asked.get("kind", ""))
                self._result = _choice("Result", RESULTS, asked.get("result", ""))
            self._table = LiveTable("Events, newest first", _COLUMNS, empty="No event fits the filter.")
            self._note = text("p", "", "ld-muted ld-pad", aria_live="polite")
        for chosen in (self._user, self._kind, self._result):
            chosen.on_value_change(self._filter)

    async def refresh(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        wanted = ShowAudit(
            user=str(self._user.value or "").strip() or None,
            kind=self._kind.value or None,
            result=self._result.value or None,
        )
        shown = await console.ask(_look, console, visitor, wanted)
        self._table.show([_row(number, event) for number, event in enumerate(shown.events)])
        self._note.set_text(shown.note)

    async def _filter(self) -> None:
        self._page.remember(
            user=str(self._user.value or "").strip(), kind=self._kind.value or "", result=self._result.value or ""
        )
        await self._page.attempt(self.refresh)


def _choice(label: str, known: tuple[str, ...], asked: str) -> ui.select:
    chosen = asked if asked in known else ""
    made = ui.select({"": "all", **{word: word for word in known}}, value=chosen, label=label)
    return made.props("outlined dense options-dense").classes("ld-field ld-choice")


def _look(console: Console, visitor: Visitor, wanted: ShowAudit) -> _Shown:
    visible = visible_to(visitor.rights)
    look: Look = look_at_newest(console.lading.audit, visible, wanted, most=PAGE_EVENTS)
    notes = [f"The newest {PAGE_EVENTS} are shown; SHOW AUDIT has more."] if look.has_more else []
    if look.is_cut:
        notes.append("Only the newest part of the log was searched; SHOW AUDIT searches all of it.")
    if visible.user is not None:
        notes.append("These are your own; ADMIN on everything sees those of others.")
    return _Shown(events=look.events, note=" ".join(notes))


def _row(number: int, event: AuditEvent) -> Row:
    what = redacted(event.what)
    repeats = f"and {formatting.count(event.repeats)} more like it before" if event.repeats else ""
    return {
        "key": f"{event.at.isoformat()} {number}",
        "time": {"text": event.at.strftime("%H:%M:%S"), "note": event.at.strftime("%Y-%m-%d")},
        "user": {"text": redacted(event.user), "mono": True},
        "result": {
            "text": event.result.value,
            "badge": True,
            "tone": _TONES[event.result],
            "note": event.error,
        },
        "what": {
            "text": formatting.shorten(what, _SHORT),
            "title": what if len(what) > _SHORT else "",
            "note": " · ".join(part for part in (event.kind.value, event.database, repeats) if part),
            "wide": True,
        },
        "from": {"text": event.origin.face.value, "note": event.origin.peer},
        "took": f"{event.seconds * 1000:,.0f} ms" if event.seconds else "",
    }
