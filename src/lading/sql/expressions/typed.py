"""Expressions in Spark's words once the types of their columns are known, with the casts that Doris would make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.expressions.coercion import Context, coerce
from lading.sql.expressions.mapping import SparkExpression, spark_tree
from lading.sql.expressions.spark_writing import write_spark
from lading.sql.expressions.unread import tells_by_null, unread_reason
from lading.sql.expressions.value_types import ValueType

_MOST_LETTERS = 1_000_000
"""Columns that are made of columns that are made of columns grow fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeColumn:
    """A name that an expression may use."""

    type: ValueType
    text: str | None = None
    """Spark SQL that stands for it; None: it is a column of the source."""
    unread: str | None = None
    """Spark SQL that says what of it cannot be read."""
    tells_by_null: bool = True
    """It is NULL when it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is known around an expression."""

    columns: Mapping[str, ScopeColumn]
    """By their names in small letters."""
    exact: ValueType | None = None
    """The decimal that texts beside numbers are read as, when a decimal column is filled; None: doubles."""
    exact_columns: Mapping[str, ValueType] = field(default_factory=dict)
    """The same for single columns: those that go to a decimal column as they are."""
    refuses_longer: bool = False
    """Raise for such a column beside a decimal with more digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedExpression:
    """An expression that Spark runs."""

    text: str
    type: ValueType
    unread: str | None
    """Spark SQL: why a row cannot be read, or NULL. None: there is nothing that has to be read."""
    tells_by_null: bool
    """Only where the expression is NULL there can be a reason."""


def type_expression(expression: SparkExpression, scope: Scope, *, is_condition: bool = False) -> TypedExpression:
    """Write an expression with its implicit casts. `is_condition`: it chooses rows."""
    origin = expression.origin
    context = Context(
        columns={name: column.type for name, column in scope.columns.items()},
        exact=scope.exact,
        exact_columns=scope.exact_columns,
        refuses_longer=scope.refuses_longer,
        strict_cast=origin.strict_cast,
    )
    coerced, kind = coerce(origin.tree, context, is_condition=is_condition)
    tree = spark_tree(coerced, origin)
    values = _Values(tree, scope)
    brought = {name: values.of(column.unread) for name, column in scope.columns.items() if column.unread is not None}
    reason = unread_reason(tree, brought)
    texts = {name: values.of(column.text) for name, column in scope.columns.items() if column.text is not None}
    unread = None if reason is None else values.write(_put_in(reason, texts))
    tells = tells_by_null(tree) and all(column.tells_by_null for column in scope.columns.values())
    return TypedExpression(text=values.write(_put_in(tree, texts)), type=kind, unread=unread, tells_by_null=tells)


def _put_in(tree: exp.Expr, texts: Mapping[str, exp.Expr]) -> exp.Expr:
    holder = exp.Paren(this=tree)
    for column in list(holder.find_all(exp.Column)):
        if (value := texts.get(column.name.lower())) is not None:
            column.replace(value.copy())
    found: exp.Expr = holder.this
    return found


class _Values:
    """Texts of Spark SQL go in by stand-ins, so that only the expression itself has to be understood.

    An expression may hold the name of a stand-in, in quotes for instance: a value put there would end the quotes.
    """

    def __init__(self, tree: exp.Expr, scope: Scope) -> None:
        names = [node.name for node in tree.find_all(exp.Identifier, exp.Literal)]
        self._prefix = "__lading_"
        while any(self._prefix in name for name in [*names, *scope.columns]):
            self._prefix += "_"
        self._texts: list[str] = []

    def of(self, text: str) -> exp.Expr:
        self._texts.append(text)
        return exp.Column(this=exp.Identifier(this=f"{self._prefix}{len(self._texts) - 1}", quoted=True))

    def write(self, tree: exp.Expr) -> str:
        written = write_spark(tree, identify=True)
        # In one pass: a value may hold the name of the next stand-in.
        filled = re.sub(f"`{self._prefix}(\\d+)`", lambda found: f"({self._texts[int(found[1])]})", written)
        if len(filled) > _MOST_LETTERS:
            msg = "The expression is too long once the columns that it is made from are written out"
            raise NotSupportedError(msg, todo="Derive fewer columns from each other.")
        return filled
