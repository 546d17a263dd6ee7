"""Reading the audit log: ADMIN on everything sees all events, everybody else their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from lading.errors import DeniedError
from lading.service.limits.cancellation import current_stop
from lading.service.result import Result, table
from lading.service.security.audit_event import AuditEvent
from lading.service.security.audit_log import AuditLog
from lading.service.security.privileges import Rights
from lading.service.session import Session
from lading.service.views.loads import like_pattern
from lading.sql.statements.audit import ShowAudit
from lading.sql.statements.users import Privilege

DEFAULT_EVENTS = 100
MOST_EVENTS = 10_000
LOOKED_AT = 20_000
"""Events that a page searches."""
COLUMNS = ("Time", "User", "Face", "Address", "Kind", "Result", "Error", "Database", "What", "Seconds", "Repeats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """Which events somebody may see."""

    user: str | None = None
    """None: those of everybody."""
    since: datetime | None = None
    """Not those of an earlier user of the same name."""


def visible_to(rights: Rights | None) -> Visible:
    """Which events a user may see; None: somebody who may do everything."""
    if rights is None or rights.allow(Privilege.ADMIN):
        return Visible()
    return Visible(user=rights.identity.user, since=rights.identity.created_at)


def show_audit(session: Session, statement: ShowAudit) -> Result:
    visible = visible_to(session.rights)
    if visible.user is not None and statement.user not in (None, visible.user):
        msg = f"ADMIN command denied to user '{visible.user}': events of others"
        todo = "Leave FOR out to see your own."
        raise DeniedError(msg, left="Nothing was changed.", todo=todo, user=visible.user, privilege="ADMIN")
    limit = min(statement.limit if statement.limit is not None else DEFAULT_EVENTS, MOST_EVENTS)
    found = islice(find_events(session.lading.audit, visible, statement), limit)
    return table(COLUMNS, [_row(event) for event in found])


def find_events(log: AuditLog, visible: Visible, wanted: ShowAudit) -> Iterator[AuditEvent]:
    """Events that somebody may see and wants to see, newest first."""
    return _matching(log.parsed(log.lines(), _users(visible, wanted)), visible, wanted)


def _users(visible: Visible, wanted: ShowAudit) -> set[str]:
    return {user for user in (visible.user, wanted.user) if user is not None}


def _matching(events: Iterable[AuditEvent], visible: Visible, wanted: ShowAudit) -> Iterator[AuditEvent]:
    stop, users = current_stop(), _users(visible, wanted)
    pattern = like_pattern(wanted.like) if wanted.like is not None else None
    bounds = [bound for bound in (visible.since, wanted.since) if bound is not None]
    since = max(bounds, default=None)
    for event in events:
        stop.check()
        if since is not None and event.at < since:
            continue  # The clock of the machine may have been set back: older events can follow newer ones.
        if (
            all(event.user == user for user in users)
            and wanted.kind in (None, event.kind.value)
            and wanted.result in (None, event.result.value)
            and (pattern is None or pattern.fullmatch(event.what))
        ):
            yield event


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The newest events, as a page shows them."""

    events: tuple[AuditEvent, ...]
    has_more: bool
    is_cut: bool
    """Not the whole log was searched."""


def look_at_newest(log: AuditLog, visible: Visible, wanted: ShowAudit, *, most: int) -> Look:
    """The newest events of the newest part of the log: a page looks every few seconds, and must stay cheap."""
    seen = 0

    def newest() -> Iterator[bytes]:
        nonlocal seen
        for line in islice(log.lines(), LOOKED_AT + 1):
            seen += 1
            if seen <= LOOKED_AT:
                yield line

    events = tuple(islice(_matching(log.parsed(newest(), _users(visible, wanted)), visible, wanted), most + 1))
    return Look(events=events[:most], has_more=len(events) > most, is_cut=seen > LOOKED_AT)


def _row(event: AuditEvent) -> tuple[object, ...]:
    return (
        event.at.isoformat(sep=" ", timespec="milliseconds"),
        event.user,
        event.origin.face.value,
        event.origin.peer,
        event.kind.value,
        event.result.value,
        event.error,
        event.database,
        event.what,
        event.seconds,
        event.repeats,
    )
