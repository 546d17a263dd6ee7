"""What a session does, as events of the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from lading.service.installation import Installation
from lading.service.security.audit_event import AuditEvent, EventKind, result_of
from lading.service.security.audit_text import cut, statement_text, unparsed_text
from lading.service.security.origin import Origin
from lading.service.security.redaction import redact
from lading.sql.statements.jobs import Statement
from lading.sql.statements.users import UserStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class RawText:
    """What a client sent as SQL, before anybody has parsed it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Something that was asked for without SQL, in words of our own."""

    words: str

    @classmethod
    def to_move(cls, job: str, positions: Mapping[str, str | None]) -> Self:
        """Partitions of a job get other positions."""
        return cls(words=f"move positions of job {job}: {json.dumps(dict(positions), ensure_ascii=False)}")


Recorded = Statement | RawText | Request


@dataclass(slots=True)
class Recording:
    """What a session does now."""

    what: Recorded
    database: str


class Actor(Protocol):
    """Who does it: a session."""

    lading: Installation
    user: str
    database: str
    origin: Origin
    recording: Recording | None


@contextmanager
def recorded(session: Actor, what: Recorded, *, only_failures: bool = False) -> Iterator[None]:
    """Record what happens inside as one event. Inside of another one it only says more exactly what that is."""
    if session.recording is not None:
        session.recording.what = what
        yield
        return
    clock = session.lading.clock
    session.recording = recording = Recording(what=what, database=session.database)
    began_s = clock.monotonic_s()
    try:
        yield
    except BaseException as error:
        _record(session, recording, clock.monotonic_s() - began_s, error)
        raise
    else:
        if not only_failures:
            _record(session, recording, clock.monotonic_s() - began_s, None)
    finally:
        session.recording = None


def _record(session: Actor, recording: Recording, seconds: float, error: BaseException | None) -> None:
    log = session.lading.audit
    log.record(
        AuditEvent(
            at=session.lading.clock.now(),
            kind=_kind(recording.what),
            result=result_of(error),
            user=session.user,
            origin=session.origin,
            what=_text(recording.what, log.settings.audit_characters),
            database=recording.database,
            error=error_class(error),
            seconds=seconds,
        )
    )


def _kind(what: Recorded) -> EventKind:
    if isinstance(what, Request):
        return EventKind.REQUEST
    changes_users = isinstance(what, UserStatement) and not type(what).__name__.startswith("Show")
    return EventKind.ACCOUNT if changes_users else EventKind.STATEMENT


def _text(what: Recorded, most: int) -> str:
    match what:
        case RawText():
            return unparsed_text(what.text, most)
        case Request():
            return cut(redact(what.words), most)
        case _:
            return statement_text(what, most)


def error_class(error: BaseException | None) -> str:
    """The code of an error of ours or of MySQL, else its class."""
    return "" if error is None else str(getattr(error, "code", type(error).__name__))
