"""SHOW AUDIT: the record, from text and to text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lading.errors import SqlError
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.tokens import Kind, quote_string

KINDS = ("login", "account", "statement", "request")
RESULTS = ("ok", "denied", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowAudit:
    """SHOW AUDIT [FOR 'user'] [KIND 'kind'] [RESULT 'result'] [SINCE 'time'] [LIKE 'pattern'] [LIMIT n]"""

    user: str | None = None
    kind: str | None = None
    result: str | None = None
    since: datetime | None = None
    """UTC."""
    like: str | None = None
    """A pattern for the statement."""
    limit: int | None = None


def parse_show_audit(cursor: Cursor) -> ShowAudit:
    """SHOW AUDIT [FOR 'user'] [KIND 'kind'] [RESULT 'result'] [SINCE 'time'] [LIKE 'pattern'] [LIMIT n]"""
    cursor.expect("SHOW", "AUDIT")
    return ShowAudit(
        user=_user(cursor) if cursor.accept("FOR") else None,
        kind=_one_of(cursor, KINDS) if cursor.accept("KIND") else None,
        result=_one_of(cursor, RESULTS) if cursor.accept("RESULT") else None,
        since=_time(cursor) if cursor.accept("SINCE") else None,
        like=cursor.string("a pattern in quotes") if cursor.accept("LIKE") else None,
        limit=cursor.number("a number") if cursor.accept("LIMIT") else None,
    )


def audit_text(it: ShowAudit) -> str:
    """The canonical text of a SHOW AUDIT."""
    since = it.since.isoformat(sep=" ") if it.since is not None else None
    words = (("FOR", it.user), ("KIND", it.kind), ("RESULT", it.result), ("SINCE", since), ("LIKE", it.like))
    parts = [f"{word} {quote_string(value, chr(39))}" for word, value in words if value is not None]
    limit = [f"LIMIT {it.limit}"] if it.limit is not None else []
    return " ".join(["SHOW AUDIT", *parts, *limit])


def _user(cursor: Cursor) -> str:
    """Any name: also that of a user who was dropped."""
    if cursor.token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        cursor.fail("the name of a user")
    return cursor.take().value


def _one_of(cursor: Cursor, known: tuple[str, ...]) -> str:
    span = cursor.token.span
    word = cursor.string("a word in quotes").lower()
    if word not in known:
        msg = f"'{word}' is none of {', '.join(known)}"
        raise SqlError(msg, place=span, hint=f"expected {' or '.join(known)}")
    return word


def _time(cursor: Cursor) -> datetime:
    """A time without a zone is UTC."""
    span = cursor.token.span
    text = cursor.string("a time in quotes")
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        msg = f"'{text}' is not a time"
        todo = "Write it as '2026-01-31 18:00:00', in UTC."
        raise SqlError(msg, place=span, hint="not a time", todo=todo) from error
