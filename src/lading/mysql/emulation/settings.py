"""SET: variables of the connection, and words about transactions that mean nothing here."""

from __future__ import annotations

from typing import Any

from lading.errors import SqlError
from lading.mysql.emulation.constants import LONGEST, NotConstantError, Surroundings, parse, value_of
from lading.mysql.protocol.errors import Fault
from lading.service.result import Result, done
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.tokens import Kind, Token

_TRANSACTIONS = (
    ("BEGIN",),
    ("START", "TRANSACTION"),
    ("COMMIT",),
    ("ROLLBACK",),
    ("SAVEPOINT",),
    ("RELEASE", "SAVEPOINT"),
    ("LOCK", "TABLES"),
    ("LOCK", "TABLE"),
    ("UNLOCK", "TABLES"),
    ("UNLOCK", "TABLE"),
)
_NOT_OURS = ("PASSWORD", "ROLE", "DEFAULT", "PROPERTY")
_SWITCHES = {"ON": 1, "OFF": 0, "TRUE": 1, "FALSE": 0}


def change_settings(text: str, around: Surroundings) -> Result | None:
    """Do what SET, BEGIN and the like ask; None when the text is something else.

    Every statement is whole by itself in Lading, so transactions and locks begin and end without any effect.
    """
    if len(text) > LONGEST:
        return None
    try:
        cursor = Cursor(text)
        if any(cursor.sees(*words) for words in _TRANSACTIONS):
            return done("")
        if not cursor.accept("SET") or cursor.token.upper in _NOT_OURS:
            return None
        _set(cursor, around)
    except SqlError:
        return None
    return done("")


def _set(cursor: Cursor, around: Surroundings) -> None:
    if cursor.look(0).upper == "TRANSACTION" or cursor.look(1).upper == "TRANSACTION":
        return
    while True:
        if cursor.accept("NAMES") or cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            around.variables.set_names(_name(cursor.take()))
            if cursor.accept("COLLATE"):
                cursor.take()
        else:
            _assign(cursor, around)
        if not cursor.accept_symbol(","):
            break
    if cursor.token.kind is not Kind.END:
        cursor.fail("the end of the statement")


def _name(token: Token) -> str:
    return "utf8mb4" if token.upper == "DEFAULT" else token.value


def _assign(cursor: Cursor, around: Surroundings) -> None:
    marks = 0
    while cursor.accept_symbol("@"):
        marks += 1
    scoped = marks != 1 and cursor.look(1).upper and cursor.token.upper in ("GLOBAL", "PERSIST", "SESSION", "LOCAL")
    dotted = marks == 2 and cursor.look(1).is_symbol(".")
    scope = cursor.take().upper if scoped or dotted else "SESSION"
    if dotted:
        cursor.expect_symbol(".")
    name = cursor.identifier("the name of a variable")
    if not cursor.accept_symbol(":="):
        cursor.expect_symbol("=")
    value = _value(cursor, around)
    if scope in ("GLOBAL", "PERSIST"):
        msg = f"Variable {name} cannot be set for everybody. Nothing was changed. Set it for the connection."
        raise Fault(1235, "42000", msg)
    if marks == 1:
        around.variables.set_own(name, value)
    else:
        around.variables.set(name, value)


def _value(cursor: Cursor, around: Surroundings) -> Any:
    written = cursor.expression(())
    word = written.text.strip()
    if word.upper() in _SWITCHES:
        return _SWITCHES[word.upper()]
    try:
        return value_of(parse(word), around)
    except (NotConstantError, RecursionError):
        return word
