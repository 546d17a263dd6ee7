"""SELECT without a table: what clients ask about the connection, answered without any engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lading.errors import SqlError
from lading.model.names import split_key
from lading.mysql.emulation.arithmetic import OPERATORS, calculate, exact_of
from lading.mysql.emulation.variables import VERSION, Variables
from lading.mysql.protocol.errors import Fault
from lading.service.result import Result
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.tokens import Kind

LONGEST = 16 * 1024
"""Longer texts are no chatter."""
MOST = 1024 * 1024
"""Letters of an answer: it is made at once, of variables that can stand in it often."""


class NotConstantError(Exception):
    """An expression that an engine must answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the functions of a connection answer."""

    variables: Variables
    connection_id: int
    user: str
    host: str
    database: str
    """With its catalog: `db`, or `catalog.db`."""
    catalog: str
    """The current one."""
    now: datetime


def select_constants(text: str, around: Surroundings) -> Result | None:
    """The answer to SELECT with nothing but constants, variables and the like; None when it has more than that."""
    if len(text) > LONGEST:
        return None
    try:
        cursor = Cursor(text)
        if not cursor.accept("SELECT"):
            return None
        items = [cursor.expression(("FROM", "LIMIT", "WHERE", "UNION", "ORDER", "INTO")).text]
        while cursor.accept_symbol(","):
            items.append(cursor.expression(("FROM", "LIMIT", "WHERE", "UNION", "ORDER", "INTO")).text)
        if cursor.accept("FROM"):
            cursor.expect("DUAL")
        if cursor.accept("LIMIT") and not cursor.number("a number"):
            return None
        if cursor.token.kind is not Kind.END:
            return None
        found = [_item(item, around) for item in items]
    except (SqlError, NotConstantError, RecursionError):
        return None
    if sum(len(value) for _, value in found if isinstance(value, str)) > MOST:
        raise Fault(1301, "HY000", f"The row is longer than allowed ({MOST})")
    return Result(columns=tuple(name for name, _ in found), rows=(tuple(value for _, value in found),))


def _item(text: str, around: Surroundings) -> tuple[str, Any]:
    tree = parse(text)
    if isinstance(tree, exp.Alias):
        return tree.alias, value_of(tree.this, around)
    name = tree.name if isinstance(tree, exp.Literal) else text
    return name, value_of(tree, around)


def parse(text: str) -> exp.Expr:
    """An expression. Raises NotConstantError when it is none."""
    try:
        return parse_one(text, dialect="mysql")
    except (SqlglotError, RecursionError) as error:
        raise NotConstantError from error


def value_of(tree: exp.Expr, around: Surroundings) -> Any:
    """The value of a constant expression."""
    match tree:
        case exp.Literal():
            return tree.name if tree.is_string else exact_of(tree.name)
        case exp.Null():
            return None
        case exp.Boolean():
            return int(tree.this)
        case exp.Paren():
            return value_of(tree.this, around)
        case exp.Neg():
            inner = value_of(tree.this, around)
            return -inner if isinstance(inner, int | float | Decimal) else _unknown()
        case exp.SessionParameter():
            return around.variables.get(tree.name)
        case exp.Parameter():
            return around.variables.own.get(tree.name.lower())
        case exp.Concat():
            parts = [value_of(part, around) for part in tree.expressions]
            return None if None in parts else _joined([str(part) for part in parts])
        case exp.Coalesce():
            values = (value_of(part, around) for part in (tree.this, *tree.expressions))
            return next((value for value in values if value is not None), None)
        case exp.Not():
            inner = _operand(tree.this, around)
            return None if inner is None else int(not inner)
        case _ if isinstance(tree, OPERATORS):
            return calculate(tree, _operand(tree.this, around), _operand(tree.expression, around))
        case exp.Anonymous() if tree.name.upper() == "TIMEDIFF" and len(tree.expressions) == 2:
            return _difference(*(value_of(part, around) for part in tree.expressions))
        case exp.Cast() if tree.to.is_type("char", "varchar", "text"):
            inner = value_of(tree.this, around)
            return None if inner is None else str(inner)
        case exp.Func():
            return _function(tree)(around)
    return _unknown()


def _operand(tree: exp.Expr, around: Surroundings) -> int | float | Decimal | None:
    """A number in a sum. What MySQL makes of text in its place is left to others."""
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return exact_of(tree.name)
    found = value_of(tree, around)
    return found if found is None or isinstance(found, int | float | Decimal) else _unknown()


def _joined(parts: list[str]) -> str:
    if sum(map(len, parts)) > MOST:
        raise Fault(1301, "HY000", f"Result of concat() was larger than allowed ({MOST})")
    return "".join(parts)


def _difference(later: Any, earlier: Any) -> timedelta | None:
    if later is None or earlier is None:
        return None
    return later - earlier if isinstance(later, datetime) and isinstance(earlier, datetime) else _unknown()


def _unknown() -> Any:
    raise NotConstantError


def _function(tree: exp.Func) -> Callable[[Surroundings], Any]:
    name = tree.name.upper() if isinstance(tree, exp.Anonymous) else tree.sql_name()
    plain = name in ("NOW", "CURRENT_TIMESTAMP", "UTC_TIMESTAMP") or not list(tree.iter_expressions())
    return _FUNCTIONS.get(name, _unknown_function) if plain else _unknown_function


def _unknown_function(_: Surroundings) -> Any:
    return _unknown()


def _user(around: Surroundings) -> str:
    return f"{around.user}@{around.host}"


def _now(around: Surroundings) -> datetime:
    return around.now.replace(microsecond=0, tzinfo=None)


_FUNCTIONS: dict[str, Callable[[Surroundings], Any]] = {
    "CURRENT_SCHEMA": lambda around: split_key(around.database)[1] or None,
    "DATABASE": lambda around: split_key(around.database)[1] or None,
    "SCHEMA": lambda around: split_key(around.database)[1] or None,
    "USER": _user,
    "SESSION_USER": _user,
    "SYSTEM_USER": _user,
    "CURRENT_USER": lambda around: f"{around.user}@%",
    "CURRENT_ROLE": lambda _: "NONE",
    "UNIX_TIMESTAMP": lambda around: int(around.now.timestamp()),
    "CURRENT_VERSION": lambda _: VERSION,
    "VERSION": lambda _: VERSION,
    "CONNECTION_ID": lambda around: around.connection_id,
    "LAST_INSERT_ID": lambda _: 0,
    "ROW_COUNT": lambda _: -1,
    "FOUND_ROWS": lambda _: 0,
    "NOW": _now,
    "SYSDATE": _now,
    "CURRENT_TIMESTAMP": _now,
    "LOCALTIMESTAMP": _now,
    "UTC_TIMESTAMP": _now,
    "CURRENT_DATE": lambda around: around.now.date(),
}
