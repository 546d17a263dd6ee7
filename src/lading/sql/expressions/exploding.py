"""`explode(column)` in a mapping: one row for each element of the array in a column of the source.

A mapping makes one row of one row. So the arrays are taken apart before it, where the source is read, and in every
expression `explode(lines)` is the element that its row has; `explode(lines).sku` is a part of that. It follows that one
column is exploded, that all who name it mean the same element, and that nobody sees the whole array.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.expressions.dialect import name_place, place_of
from lading.sql.syntax.spans import Span

_OUTER = "explode_outer"
NAMES = ("explode", _OUTER)
_TODO = "Write explode(lines) for a column lines, and explode(lines).sku for a part of each element."
_ELEMENT = "lading_element"
"""Stands in the meta of a column that is an element of the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explode:
    """Which column is taken apart."""

    column: str
    keeps_empty: bool = False
    """A row whose array is empty, or NULL, is one row without an element. Else none comes of it."""


def with_elements(tree: exp.Expr, span: Span, *, alias: str | None, is_joined: bool) -> exp.Expr:
    """The tree with columns in the place of `explode(column)`. Raises NotSupportedError for other arguments. `alias` is
    what the statement calls its source."""
    if not any(map(_is_explode, tree.find_all(exp.Anonymous))):
        return tree
    holder = exp.Paren(this=tree.copy())
    for call in [node for node in holder.find_all(exp.Anonymous) if _is_explode(node)]:
        place = name_place(call, span)
        if is_joined:
            msg = f"{call.name.lower()} is not possible in a join"
            raise NotSupportedError(msg, place=place, hint="not possible here", todo="Explode it in a job before.")
        column = call.expressions[0] if len(call.expressions) == 1 else None
        if not isinstance(column, exp.Column) or not _is_plain(column, alias):
            msg = f"{call.name.lower()} takes a column of the source, and nothing else"
            raise NotSupportedError(msg, place=place_of(call, span), hint="expected a column", todo=_TODO)
        column.meta[_ELEMENT] = call.name.lower()
        call.replace(column)
    found: exp.Expr = holder.this
    found.pop()
    return found


def _is_plain(column: exp.Column, alias: str | None) -> bool:
    owner, *others = [part.name.lower() for part in column.parts][:-1] or [""]
    return isinstance(column.this, exp.Identifier) and not others and owner in ("", (alias or "").lower())


def _is_explode(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in NAMES


def explodes_of(tree: exp.Expr) -> tuple[Explode, ...]:
    """The columns of a tree of which elements are meant. Their paths are written out already."""
    found = [node for node in tree.find_all(exp.Column) if _ELEMENT in node.meta]
    return tuple({Explode(column=node.name, keeps_empty=node.meta[_ELEMENT] == _OUTER): None for node in found})


def wholes_of(tree: exp.Expr) -> tuple[str, ...]:
    """The columns that are meant as they are."""
    return tuple({node.name: None for node in tree.find_all(exp.Column) if _ELEMENT not in node.meta})


def one_explode(all_explodes: Iterable[Explode], wholes: Iterable[str], *, has_star: bool) -> Explode | None:
    """The explode of a whole statement. Raises NotSupportedError when it has several, or means the array as well."""
    found = list(dict.fromkeys(all_explodes))
    if not found:
        return None
    columns = sorted({each.column for each in found})
    if len(found) > 1:
        what = " and ".join(columns) if len(columns) > 1 else f"{columns[0]} with and without its empty arrays"
        msg = f"A job explodes one column, in one way, and this one explodes {what}"
        raise NotSupportedError(msg, todo="Load one of them by a job of its own, or as an array.")
    if has_star or columns[0] in set(wholes):
        shown = "*" if has_star else "it"
        msg = f"{columns[0]} is exploded, and the same statement reads {shown} as a whole"
        raise NotSupportedError(msg, todo=f"Name the columns, and {columns[0]} only within explode({columns[0]}).")
    return found[0]
