"""One thing that happened, as the audit log keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from lading.errors import AuthError, DeniedError
from lading.service.security.origin import LOCAL, Face, Origin


class EventKind(Enum):
    """What kind of thing happened."""

    LOGIN = "login"
    ACCOUNT = "account"
    """A statement that changes users, passwords, grants or tokens."""
    STATEMENT = "statement"
    """Every other statement that a client sent."""
    REQUEST = "request"
    """What the API or the console did or refused without a statement."""


class EventResult(Enum):
    """How it ended."""

    OK = "ok"
    DENIED = "denied"
    ERROR = "error"


_DENIED_CODES = frozenset({1044, 1045, 1095, 1142, 1227})
"""Of the MySQL face, which has errors of its own."""


def result_of(error: BaseException | None) -> EventResult:
    """How something ended."""
    if error is None:
        return EventResult.OK
    is_denied = isinstance(error, AuthError | DeniedError) or getattr(error, "code", None) in _DENIED_CODES
    return EventResult.DENIED if is_denied else EventResult.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """Who did what, when, from where, and how it ended. Its texts are redacted already."""

    at: datetime
    """When it ended, UTC."""
    kind: EventKind
    result: EventResult
    user: str
    origin: Origin = LOCAL
    what: str = ""
    """The statement, redacted and cut; for a login, by what it was proven."""
    database: str = ""
    error: str = ""
    """The code of the error. Its text may repeat what the client sent, and is left out."""
    seconds: float = 0.0
    repeats: int = 0
    """So many events like this one were counted since the one before, and not written."""


def render_event(event: AuditEvent) -> bytes:
    """One line of JSON. Line ends and control characters are escaped, and everything that is not ASCII."""
    body: dict[str, object] = {
        "time": event.at.isoformat(timespec="milliseconds"),
        "kind": event.kind.value,
        "result": event.result.value,
        "user": event.user,
        "face": event.origin.face.value,
        "peer": event.origin.peer,
        "database": event.database,
        "what": event.what,
        "seconds": round(event.seconds, 6),
    }
    if event.error:
        body["error"] = event.error
    if event.repeats:
        body["repeats"] = event.repeats
    return json.dumps(body, ensure_ascii=True).encode("ascii") + b"\n"


def parse_event_or_none(line: bytes) -> AuditEvent | None:
    """An event of a line; None for a line that was cut off by a full disk or written by somebody else."""
    try:
        body = json.loads(line)
        at = datetime.fromisoformat(body["time"])
        if at.tzinfo is None:
            return None
        return AuditEvent(
            at=at,
            kind=EventKind(body["kind"]),
            result=EventResult(body["result"]),
            user=str(body["user"]),
            origin=Origin(face=Face(body["face"]), peer=str(body["peer"])),
            what=str(body["what"]),
            database=str(body["database"]),
            error=str(body.get("error", "")),
            seconds=float(body["seconds"]),
            repeats=int(body.get("repeats", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
