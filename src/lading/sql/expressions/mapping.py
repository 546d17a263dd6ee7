"""Expressions of a mapping: what may stand in them, and how Spark says the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from sqlglot import exp

from lading.errors import NotSupportedError, SqlError
from lading.sql.expressions.dialect import (
    UNITS,
    has_unit,
    is_unit,
    name_place,
    parse_expression_tree,
    place_of,
    too_deep,
    unknown_unit,
)
from lading.sql.expressions.exploding import NAMES as EXPLODE
from lading.sql.expressions.exploding import Explode, explodes_of, wholes_of, with_elements
from lading.sql.expressions.functions import DIFFERENT, RENAMED, REWRITTEN, call
from lading.sql.expressions.implicit_casts import IMPLICIT, has_columns, is_guard, is_spark_cast
from lading.sql.expressions.paths import is_bound, with_paths
from lading.sql.expressions.sides import sided_columns
from lading.sql.expressions.spark_functions import (
    AGGREGATE_FUNCTIONS,
    REFUSED_FUNCTIONS,
    ROW_FUNCTIONS,
    SPARK_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from lading.sql.expressions.spark_writing import write_spark
from lading.sql.expressions.type_names import parse_type
from lading.sql.statements.parts import Expression
from lading.sql.syntax.spans import Span
from lading.suggest import did_you_mean

_REMEMBERED = 512
"""Expressions: a table of 200 columns has about as many."""
_ALONE = "A streaming job maps every row by itself; do this when you read the table."
_OPERATORS: tuple[type[exp.Expr], ...] = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg,
    exp.And, exp.Or, exp.Not, exp.Paren, exp.Tuple,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, exp.RegexpLike,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Extract,
    exp.Trim, exp.Substring, exp.StrPosition, exp.Bracket, exp.Array, exp.Concat, exp.Lambda, exp.Anonymous,
    exp.Literal, exp.Null, exp.Boolean, exp.Column, exp.Identifier, exp.Var, exp.Dot,
    exp.CurrentTimestamp, exp.CurrentDate,
)  # fmt: skip
"""Parts of a tree that mean the same in Doris and in Spark, once functions and types are translated."""

_WITHOUT_BRACKETS = frozenset(("current_date", "current_timestamp", "localtimestamp", "curdate"))
_NUMBER = re.compile(r"[0-9.]+(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """An expression of Doris."""

    tree: exp.Expr
    span: Span
    strict_cast: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkExpression:
    """An expression in Spark's words, before the types of its columns are known."""

    text: str
    """What `typed_expressions` makes of it has casts beside."""
    columns: tuple[str, ...]
    """The columns it reads, in the order in which they are written."""
    functions: tuple[str, ...]
    """The Spark functions it calls, in small letters; casts and operators are not among them."""
    explodes: tuple[Explode, ...] = ()
    """Columns of which it means the elements, one in each row."""
    wholes: tuple[str, ...] = ()
    """Columns that it means as they are."""
    origin: Origin = field(compare=False, repr=False)
    """What it was made from: `typed_expressions` writes it again when the types of its columns are known."""

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return len(self.columns) == 1 and self.text == "`" + self.columns[0].replace("`", "``") + "`"


def check_rowwise(tree: exp.Expr, span: Span) -> None:
    """Refuse what needs more than one row, or makes more than one."""
    for node in tree.walk():
        if isinstance(node, exp.Window):
            _refuse("A window function is not possible in a streaming job", place_of(node, span))
        if isinstance(node, exp.Query | exp.Exists):
            _refuse("A subquery is not possible in a streaming job", place_of(node, span))
        if isinstance(node, exp.Anonymous):
            _check_call(node, span)


def _check_call(node: exp.Anonymous, span: Span) -> None:
    name = node.name.lower()
    place = name_place(node, span)
    if name in AGGREGATE_FUNCTIONS:
        _refuse(f"{name} is an aggregate, which is not possible in a streaming job", place)
    if name in WINDOW_FUNCTIONS:
        _refuse(f"{name} is a window function, which is not possible in a streaming job", place)
    if name in ROW_FUNCTIONS and name not in EXPLODE:
        msg = f"{name} makes many rows from one, which is not possible in a streaming job"
        todo = "explode(column) takes the array in a column of the source apart; what else, do when you read the table."
        raise NotSupportedError(msg, place=place, hint="not possible here", todo=todo)


def _refuse(what: str, place: Span) -> NoReturn:
    raise NotSupportedError(what, place=place, hint="not possible here", todo=_ALONE)


def translate_expression(
    expression: Expression | str,
    *,
    strict_cast: bool = False,
    source_alias: str | None = None,
    sides: tuple[str, ...] = (),
) -> SparkExpression:
    """Say in Spark's SQL what an expression says in Doris'.

    A cast that fails gives NULL, as in Doris; with `strict_cast` it makes a bad row. `source_alias` is the name that
    the SELECT gives its source: `s.id` becomes `id`. In a join, which has `sides`, it stays `s.id`. The text expects
    `spark.sql.ansi.enabled` to be false, so that a division by zero is NULL.
    """
    if isinstance(expression, str):
        return _translated_text(expression, strict_cast, source_alias, sides)
    return _translated(expression, strict_cast, source_alias, sides)


@lru_cache(maxsize=_REMEMBERED)
def _translated_text(text: str, strict_cast: bool, source_alias: str | None, sides: tuple[str, ...]) -> SparkExpression:
    """Several parts of a job ask for the same expressions when it is opened. Nobody changes the trees in them."""
    return _translated(_loose(text), strict_cast, source_alias, sides)


def _translated(
    written: Expression, strict_cast: bool, source_alias: str | None, sides: tuple[str, ...]
) -> SparkExpression:
    tree = parse_expression_tree(written.text, written.span)
    if isinstance(tree, exp.Alias):
        msg = f"{written.text} has an alias"
        raise NotSupportedError(msg, place=written.span, hint="no alias here")
    tree = with_elements(tree, written.span, alias=source_alias, is_joined=bool(sides))
    check_rowwise(tree, written.span)
    tree = sided_columns(tree, sides, written.span) if sides else with_paths(tree, source_alias)
    origin = Origin(tree=tree, span=written.span, strict_cast=strict_cast)
    made = spark_tree(tree, origin)
    done = _in_order(made)
    columns = dict.fromkeys(node.name for node in done if isinstance(node, exp.Column))
    calls = dict.fromkeys(node.name.lower() for node in done if isinstance(node, exp.Anonymous))
    text = write_spark(made, identify=True)
    return SparkExpression(
        text=text,
        columns=tuple(columns),
        functions=tuple(calls),
        explodes=explodes_of(tree),
        wholes=tuple(name for name in wholes_of(tree) if name in columns),
        origin=origin,
    )


def part_expression(whole: SparkExpression, part: exp.Expr) -> SparkExpression:
    """A part of an expression, by itself."""
    tree = part.copy()
    origin = replace(whole.origin, tree=tree)
    made = spark_tree(tree, origin)
    columns = dict.fromkeys(node.name for node in _in_order(made) if isinstance(node, exp.Column))
    return SparkExpression(text=write_spark(made, identify=True), columns=tuple(columns), functions=(), origin=origin)


def column_expression(name: str) -> SparkExpression:
    """A column of the source as it is, whatever it is called."""
    tree = exp.Column(this=exp.Identifier(this=name, quoted=True))
    origin = Origin(tree=tree, span=Span(name, 0, len(name)), strict_cast=False)
    text = "`" + name.replace("`", "``") + "`"
    return SparkExpression(text=text, columns=(name,), functions=(), origin=origin)


def spark_tree(tree: exp.Expr, origin: Origin) -> exp.Expr:
    """A tree of Doris in Spark's words; the origin says where it is and how its casts are meant."""
    try:
        return _Translator(origin.span, strict_cast=origin.strict_cast).run(tree)
    except RecursionError as error:
        raise too_deep(origin.span) from error


def _loose(text: str) -> Expression:
    stripped = text.strip()
    return Expression(text=stripped, span=Span(stripped, 0, len(stripped)))


class _Translator:
    """One walk over one tree."""

    def __init__(self, span: Span, *, strict_cast: bool) -> None:
        self._span = span
        self._strict_cast = strict_cast

    def run(self, tree: exp.Expr) -> exp.Expr:
        """Translate from the leaves up, without recursion: a condition may have a thousand parts."""
        holder = exp.Paren(this=tree.copy())
        for node in reversed(_in_order(holder.this)):
            made = self._translated(node)
            if made is not node:
                node.replace(made)
        found: exp.Expr = holder.this
        found.pop()
        return found

    def _translated(self, node: exp.Expr) -> exp.Expr:
        """The node in Spark's words; what is below it is translated already."""
        if not isinstance(node, _OPERATORS):
            msg = f"{type(node).__name__} has no counterpart in Spark's SQL"
            raise NotSupportedError(msg, place=place_of(node, self._span), hint="not supported")
        if isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(node.name):
            msg = f"mismatched input {node.name!r}, expected a number"
            raise SqlError(msg, place=place_of(node, self._span), hint="expected a number")
        if isinstance(node, exp.Cast):
            return node if is_spark_cast(node) else self._cast(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Anonymous):
            return node if is_guard(node) else self._call(node)
        if isinstance(node, exp.Bracket):
            return self._element(node)
        return node

    def _cast(self, node: exp.Cast) -> exp.Expr:
        written = node.to.sql(dialect="doris")
        wanted = parse_type(written, place_of(node, self._span))
        inner, to = node.this, exp.DataType.build(wanted.name, dialect="spark")
        strict = self._strict_cast and not isinstance(node, exp.TryCast)
        made: exp.Expr = exp.TryCast(this=inner, to=to, safe=True)
        if strict and has_columns(inner):
            made.meta[IMPLICIT] = wanted.name  # What it cannot read makes a bad row, as if nobody had written it.
        if wanted.max_length is not None and not self._strict_cast:
            return call("left", made, exp.Literal.number(wanted.max_length))
        return made

    def _column(self, node: exp.Column) -> exp.Expr:
        if not isinstance(node.this, exp.Identifier):
            msg = "A star cannot be used in an expression"
            raise NotSupportedError(msg, place=place_of(node, self._span), hint="not possible here")
        if _stands_for_unit(node):
            return self._unit(node)
        if is_bound(node):
            return exp.Identifier(this=node.name, quoted=True)
        if node.name.lower() in _WITHOUT_BRACKETS and not node.this.args.get("quoted"):
            return call(node.name)
        return exp.Column(this=exp.Identifier(this=node.name, quoted=True))

    def _unit(self, node: exp.Column) -> exp.Expr:
        """A unit is written without quotes: a word of the list, and never a name that was quoted."""
        if not is_unit(node):
            raise unknown_unit(node.sql(dialect="doris"), UNITS, place_of(node, self._span))
        return exp.Var(this=node.name.upper())

    def _call(self, node: exp.Anonymous) -> exp.Expr:
        name = node.name.lower()
        place = name_place(node, self._span)
        if has_unit(node) and not isinstance(node.expressions[0], exp.Var):
            raise unknown_unit(node.expressions[0].sql(dialect="doris"), UNITS, place_of(node, self._span))
        if name in DIFFERENT:
            msg = f"Function {name} cannot be used: {DIFFERENT[name]}"
            raise NotSupportedError(msg, place=place, hint="another meaning in Spark", function=name)
        if rewrite := REWRITTEN.get(name):
            made = rewrite(node.expressions)
            if made is None:
                msg = f"Function {name} cannot be translated with these arguments"
                raise NotSupportedError(msg, place=place, hint="not with these arguments", function=name)
            return made
        spark_name = RENAMED.get(name, name)
        if spark_name not in SPARK_FUNCTIONS or isinstance(node.parent, exp.Dot):
            raise _unknown_function(name, place)
        return call(spark_name, *node.expressions)

    def _element(self, node: exp.Bracket) -> exp.Expr:
        """Doris counts from one and gives NULL beyond the end; Spark's brackets count from zero."""
        if len(node.expressions) != 1:
            msg = "A slice of an array is not supported"
            raise NotSupportedError(msg, place=place_of(node, self._span), hint="not supported")
        return call("try_element_at", node.this, node.expressions[0])


def _stands_for_unit(node: exp.Column) -> bool:
    """Whether this is the HOUR of TIMESTAMPDIFF(HOUR, a, b), which is no column."""
    parent = node.parent
    return isinstance(parent, exp.Anonymous) and has_unit(parent) and parent.expressions[0] is node


def _in_order(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.walk(bfs=False))


def _unknown_function(name: str, place: Span) -> SqlError:
    if reason := REFUSED_FUNCTIONS.get(name):
        msg = f"Function {name} cannot be used: {reason}"
        return NotSupportedError(msg, place=place, hint="refused", function=name)
    msg = f"Function {name} is not known, neither as one of Doris that can be translated nor as one of Spark"
    near = did_you_mean(name, SPARK_FUNCTIONS | RENAMED.keys() | REWRITTEN.keys())
    todo = f"{near}Write it in another way; see docs/sql.md."
    return NotSupportedError(msg, place=place, hint="unknown function", todo=todo, function=name)
