"""Names that jobs, tables and columns can have."""

from __future__ import annotations

import re

from lading.errors import SqlError
from lading.sql.syntax.spans import Span

_JOB = re.compile(r"[^\W\d_][\w\-]{0,63}")
_INNER = "inner_"
_RULE = "A name begins with a letter and has at most 64 letters, digits, hyphens and underscores."
_MOST_NAME = 256
_USER = re.compile(r"\w[\w.@\-]{0,63}")
_ODD = re.compile(r"[/\\\x00-\x1f\x7f]")


def check_routine_load_name(name: str, place: Span | None = None) -> None:
    """Refuse a name that no routine load can have."""
    if not _JOB.fullmatch(name):
        msg = f"Incorrect ROUTINE LOAD NAME name '{name}': it is longer than 64 or contains illegal characters"
        raise SqlError(msg, place=place, hint="not a name of a job", todo=_RULE)


def check_job_name(name: str, place: Span | None = None) -> None:
    """Refuse a name that no streaming job can have."""
    if not _JOB.fullmatch(name):
        msg = f"Incorrect job name '{name}': it is longer than 64 or contains illegal characters"
        raise SqlError(msg, place=place, hint="not a name of a job", todo=_RULE)
    if name.lower().startswith(_INNER):
        msg = f"Job name '{name}' cannot be used: a job name may not start with {_INNER}"
        raise SqlError(msg, place=place, hint="reserved", todo="Choose another name.")


def check_object_name(name: str, what: str, place: Span | None = None) -> None:
    """Refuse a name that no catalog, database, table or column can have: names become parts of paths."""
    # `a.b`.c and a.`b.c` would be one name wherever the two parts are joined by a dot.
    has_dot = what in ("database", "table", "catalog") and "." in name
    if not name or len(name) > _MOST_NAME or _ODD.search(name) or name in (".", "..") or has_dot:
        msg = f"'{name}' cannot be the name of a {what}"
        raise SqlError(msg, place=place, hint="not a name", todo="Use letters, digits and underscores.")


def check_role_name(name: str, place: Span | None = None) -> None:
    """Refuse a name that no role can have: it is one that a user could have."""
    check_user_name(name, place, what="role")


def check_user_name(name: str, place: Span | None = None, *, what: str = "user") -> None:
    """Refuse a name that no user can have. HTTP puts a colon behind the name, and MySQL a host behind an @."""
    if not _USER.fullmatch(name):
        msg = f"'{name}' cannot be the name of a {what}"
        rule = (
            "A name has at most 64 letters, digits, dots, hyphens, underscores and @, and begins with one of the first."
        )
        raise SqlError(msg, place=place, hint=f"not a name of a {what}", todo=rule)
