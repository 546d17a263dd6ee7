"""ADMIN CLEAN ORPHANS and SHOW SERVICES: the records and their parsers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lading.errors import SqlError
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.cursor import Cursor

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOrphans:
    """ADMIN CLEAN ORPHANS [FROM [db.]table] [OLDER THAN n HOURS|DAYS] [DRY RUN]"""

    table: QualifiedName | None = None
    """None: all tables."""
    older_than: timedelta | None = None
    dry_run: bool = False
    """Only tell what would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowServices:
    """SHOW SERVICES"""


def parse_show_services(cursor: Cursor) -> ShowServices:
    """SHOW SERVICES"""
    cursor.expect("SHOW", "SERVICES")
    return ShowServices()


def parse_clean_orphans(cursor: Cursor) -> CleanOrphans:
    """ADMIN CLEAN ORPHANS [FROM [db.]table] [OLDER THAN n HOURS|DAYS] [DRY RUN]"""
    cursor.expect("ADMIN", "CLEAN", "ORPHANS")
    table = cursor.qualified("the name of a table") if cursor.accept("FROM") else None
    older_than = _age(cursor) if cursor.accept("OLDER", "THAN") else None
    return CleanOrphans(table=table, older_than=older_than, dry_run=cursor.accept("DRY", "RUN"))


def _age(cursor: Cursor) -> timedelta:
    span = cursor.token.span
    count = cursor.number("a number")
    unit = _DAY if cursor.choose("HOURS", "HOUR", "DAYS", "DAY").startswith("DAY") else _HOUR
    try:
        return count * unit
    except OverflowError as error:
        msg = f"{count} is too many"
        raise SqlError(msg, place=span, hint="at most 999999999 days") from error
