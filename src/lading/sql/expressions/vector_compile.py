"""From the SELECT lists of a mapping, as text for Spark, to nodes; or the reason why a job stays on the general path.

The text is what Spark itself would run. Whatever is not known here, with every argument it has, is refused: this list
is the lock of the vector path, as the check of Spark's plan is that of the general one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import ClassVar, Final

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from lading.sql.expressions.vector_build import Builder, RefusedError, refuse
from lading.sql.expressions.vector_functions import FUNCTIONS
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan, VectorType
from lading.sql.expressions.vector_types import (
    BOOLEAN,
    DOUBLE,
    FLOATS,
    INTEGERS,
    STRING,
    VOID,
    literal_type,
    type_named,
)

_REMEMBERED = 16
"""Mappings: one of 200 columns takes a quarter of a second."""
_SYNTAX = ("CAST", "TRY_CAST", "SUBSTRING", "TRIM")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ALIAS = re.compile(r" AS `?(\w+)`?$")
_KNOWN_ESCAPES = frozenset("\\'nrt")
_NEGATED_DIGITS = 34
"""Spark rounds decimals with more digits when it turns their sign."""
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
}
_COMPUTED: dict[type[exp.Expr], str] = {exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div", exp.Mod: "mod"}
PATTERNS: Final = frozenset((
    "[0-9.][dDfF]|[xX]",
    "^[^-]*:",
    "^ *[+-]?[0-9]{4}",
    "[0-9]:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)? ?(Z|[+-][0-9]{1,2}(:?[0-9]{2})?|[A-Za-z_]+(/[A-Za-z_]+)*)$",
))  # fmt: skip
"""Regular expressions that Lading itself writes: Java and RE2 agree about them. Those of users are refused."""


class _VectorSpark(Spark):
    """Spark, with function calls left as they were written."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, object]] = {}  # type: ignore[assignment]  # narrower than theirs
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
        }


def compile_lists(
    lists: Sequence[Sequence[str]], source: Mapping[str, str], parts: Mapping[str, str] | None = None
) -> VectorPlan | Refusal:
    """The plan of SELECT lists, each over the one before and the first over the source, whose types Spark names so.

    `parts` says what a column of a list is called in a refusal.
    """
    return _compiled(tuple(map(tuple, lists)), tuple(source.items()), tuple((parts or {}).items()))


@lru_cache(maxsize=_REMEMBERED)
def _compiled(
    lists: tuple[tuple[str, ...], ...], source: tuple[tuple[str, str], ...], parts: tuple[tuple[str, str], ...]
) -> VectorPlan | Refusal:
    """A job is compiled when it is created, and again when it is opened and whenever it is shown."""
    builder, part, known = Builder(), "source", dict(parts)
    try:
        scope = {name: builder.add("column", _source_type(name, kind), value=name) for name, kind in source}
        for number, items in enumerate(lists):
            above: dict[str, int] = {}
            trees = _trees(items)
            if trees is None:
                name = _unreadable(items)
                return Refusal(part=known.get(name, name), why="it cannot be read")
            folded = _folded(scope)
            for item, tree in zip(items, trees, strict=True):
                name = tree.alias_or_name
                part = known.get(name, name)
                inner = tree.this if isinstance(tree, exp.Alias) else tree
                above[name] = _Compiler(builder, folded, is_value=number == 0).run(inner, item)
            scope = above
    except RefusedError as refused:
        return Refusal(part=part, why=str(refused))
    except RecursionError:
        return Refusal(part=part, why="it is nested too deep")
    return VectorPlan(nodes=tuple(builder.nodes), columns=tuple(scope.items()))


def _folded(scope: Mapping[str, int]) -> dict[str, list[int]]:
    """The columns by their names in small letters: tables may have thousands."""
    found: dict[str, list[int]] = {}
    for name, node in scope.items():
        found.setdefault(name.lower(), []).append(node)
    return found


def _source_type(name: str, kind: str) -> VectorType:
    found = type_named(kind)
    if found is None:
        refuse(f"the source column {name} is a {kind}, which")
    return found


def _trees(items: Sequence[str]) -> list[exp.Expr] | None:
    """All items of a list, read at once; None: one of them cannot be read."""
    if not items:
        return []
    try:
        tree = parse_one("SELECT " + ", ".join(items), dialect=_VectorSpark)
    except SqlglotError:
        return None
    written = {name for name, part in tree.args.items() if part}
    if not isinstance(tree, exp.Select) or written != {"expressions"} or len(tree.expressions) != len(items):
        return None
    return list(tree.expressions)


def _unreadable(items: Sequence[str]) -> str:
    """The name of the item that cannot be read."""
    item = next((item for item in items if _trees([item]) is None), items[0])
    found = _ALIAS.search(item)
    return found[1] if found else item


class _Compiler:
    """One item of a list."""

    def __init__(self, builder: Builder, scope: Mapping[str, Sequence[int]], *, is_value: bool) -> None:
        self._builder = builder
        self._scope = scope
        self._is_value = is_value
        """Users wrote it: what is never sure is refused, and not tried."""

    def run(self, tree: exp.Expr, text: str) -> int:
        if odd := {found[1] for found in _ESCAPE.finditer(text)} - _KNOWN_ESCAPES:
            refuse(f"the escape \\{min(odd)}")
        return self._node(tree)

    def _node(self, tree: exp.Expr | None) -> int:
        if tree is None:
            msg = "a part is missing"
            raise RefusedError(msg)
        if type(tree) in _COMPARISONS:
            _check(tree, "this", "expression")
            return self._builder.compare(_COMPARISONS[type(tree)], self._node(tree.this), self._node(tree.expression))
        if type(tree) in _COMPUTED:
            _check(tree, "this", "expression", "typed", "safe")
            return self._builder.compute(_COMPUTED[type(tree)], self._node(tree.this), self._node(tree.expression))
        visit = _VISITS.get(type(tree))
        if visit is None:
            refuse(type(tree).__name__)
        return visit(self, tree)

    def column(self, tree: exp.Expr) -> int:
        _check(tree, "this")
        found = self._scope.get(tree.name.lower(), ())
        if len(found) != 1 or not isinstance(tree.this, exp.Identifier):
            msg = f"{tree.name} is not one column"
            raise RefusedError(msg)
        return found[0]

    def paren(self, tree: exp.Expr) -> int:
        _check(tree, "this")
        return self._node(tree.this)

    def literal(self, tree: exp.Expr) -> int:
        if tree.args.get("is_string"):
            return self._builder.literal(tree.name, STRING)
        return self._number(tree.name)

    def _number(self, written: str) -> int:
        kind = literal_type(written)
        value = float(written) if kind == DOUBLE else Decimal(written) if kind.is_decimal else int(written)
        return self._builder.literal(value, kind)

    def negative(self, tree: exp.Expr) -> int:
        _check(tree, "this")
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return self._number(f"-{tree.this.name}")
        inner = self._node(tree.this)
        kind = self._builder.type(inner)
        if kind not in INTEGERS and kind not in FLOATS and not kind.is_decimal:
            refuse(f"- of {kind.spark_name}")
        if kind.precision > _NEGATED_DIGITS:
            refuse(f"- of {kind.spark_name}")
        return self._builder.add("neg", kind, inner)

    def null(self, tree: exp.Expr) -> int:
        return self._builder.literal(None, VOID)

    def boolean(self, tree: exp.Expr) -> int:
        return self._builder.literal(bool(tree.this), BOOLEAN)

    def connected(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expression")
        kind = type(tree)
        parts, waiting = list[int](), [tree]
        while waiting:  # A chain may have a thousand links.
            link = waiting.pop()
            if isinstance(link, kind):
                _check(link, "this", "expression")
                waiting += [link.expression, link.this]
            else:
                parts.append(self._builder.truth(self._node(link)))
        return self._builder.add("and" if kind is exp.And else "or", BOOLEAN, *parts)

    def inverted(self, tree: exp.Expr) -> int:
        _check(tree, "this")
        return self._builder.add("not", BOOLEAN, self._builder.truth(self._node(tree.this)))

    def is_null(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expression")
        if not isinstance(tree.expression, exp.Null):
            refuse("IS " + type(tree.expression).__name__)
        return self._builder.add("is_null", BOOLEAN, self._node(tree.this))

    def same(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expression")
        return self._builder.compare("same", self._node(tree.this), self._node(tree.expression))

    def among(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expressions")
        value = self._node(tree.this)
        values = self._builder.unified([value, *(self._node(part) for part in tree.expressions)])
        return self._builder.add("or", BOOLEAN, *(self._builder.compare("eq", values[0], each) for each in values[1:]))

    def between(self, tree: exp.Expr) -> int:
        _check(tree, "this", "low", "high")
        value, compare = self._node(tree.this), self._builder.compare
        low, high = (compare(op, value, self._node(tree.args[arg])) for op, arg in (("ge", "low"), ("le", "high")))
        return self._builder.add("and", BOOLEAN, low, high)

    def like(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expression", "negate")
        value, pattern = self._node(tree.this), self._node(tree.expression)
        text = self._builder.literal_of(pattern)
        if self._builder.type(value) != STRING or not isinstance(text, str) or "\\" in text:
            refuse("LIKE of anything but a text and a pattern without \\")
        found = self._builder.add("like", BOOLEAN, value, value=text)
        return self._builder.add("not", BOOLEAN, found) if tree.args.get("negate") else found

    def matches(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expression", "negate")
        value, pattern = self._node(tree.this), self._builder.literal_of(self._node(tree.expression))
        if self._builder.type(value) != STRING or pattern not in PATTERNS:
            refuse("a regular expression")
        found = self._builder.add("matches", BOOLEAN, value, value=pattern)
        return self._builder.add("not", BOOLEAN, found) if tree.args.get("negate") else found

    def case(self, tree: exp.Expr) -> int:
        _check(tree, "this", "ifs", "default")
        if not self._is_value and _is_asking_for_dates(tree):
            return self._node(tree.args["default"])  # A date that is no time is told as not sure.
        operand = self._node(tree.this) if tree.this is not None else None
        branches = []
        for branch in tree.args["ifs"]:
            _check(branch, "this", "true")
            when = self._node(branch.this)
            if operand is not None:
                when = self._builder.compare("eq", operand, when)
            branches.append((when, self._node(branch.args["true"])))
        default = tree.args.get("default")
        return self._builder.case(branches, None if default is None else self._node(default))

    def cast(self, tree: exp.Expr) -> int:
        _check(tree, "this", "to", "safe")
        kind = type_named(tree.args["to"].sql(dialect="spark"))
        if kind is None:
            refuse(f"a cast to {tree.args['to'].sql(dialect='spark')}")
        inner, is_try = self._node(tree.this), bool(tree.args.get("safe"))
        if kind == STRING:
            if self._is_value and self._builder.type(inner) in FLOATS:
                refuse("a cast from double to string")
            return self._builder.as_text(inner, plain=is_try)
        is_same = self._builder.type(inner) in (kind, VOID)
        if not is_try and not is_same and not isinstance(tree.this, exp.Literal):
            refuse(f"a CAST to {kind.spark_name} that is not a TRY_CAST")
        return self._builder.try_cast(inner, kind)

    def substring(self, tree: exp.Expr) -> int:
        _check(tree, "this", "start", "length")
        parts = [tree.this, tree.args.get("start"), tree.args.get("length")]
        return FUNCTIONS["substring"](self._builder, [self._node(part) for part in parts if part is not None])

    def trim(self, tree: exp.Expr) -> int:
        _check(tree, "this")
        return FUNCTIONS["trim"](self._builder, [self._node(tree.this)])

    def call(self, tree: exp.Expr) -> int:
        _check(tree, "this", "expressions")
        name = tree.name.lower()
        build = FUNCTIONS.get(name)
        if build is None:
            refuse(name)
        return build(self._builder, [self._node(part) for part in tree.expressions])


_VISITS: dict[type[exp.Expr], Callable[[_Compiler, exp.Expr], int]] = {
    exp.Column: _Compiler.column,
    exp.Paren: _Compiler.paren,
    exp.Literal: _Compiler.literal,
    exp.Neg: _Compiler.negative,
    exp.Null: _Compiler.null,
    exp.Boolean: _Compiler.boolean,
    exp.And: _Compiler.connected,
    exp.Or: _Compiler.connected,
    exp.Not: _Compiler.inverted,
    exp.Is: _Compiler.is_null,
    exp.NullSafeEQ: _Compiler.same,
    exp.In: _Compiler.among,
    exp.Between: _Compiler.between,
    exp.Like: _Compiler.like,
    exp.RegexpLike: _Compiler.matches,
    exp.Case: _Compiler.case,
    exp.Cast: _Compiler.cast,
    exp.TryCast: _Compiler.cast,
    exp.Substring: _Compiler.substring,
    exp.Trim: _Compiler.trim,
    exp.Anonymous: _Compiler.call,
}


def _is_asking_for_dates(tree: exp.Expr) -> bool:
    """The detour that a mapping takes for dates, since Spark's cast of one that is no time raises."""
    default = tree.args.get("default")
    if not isinstance(default, exp.TryCast):
        return False
    value, kind = default.this.sql(dialect="spark"), default.args["to"].sql(dialect="spark")
    detour = f"CASE WHEN TYPEOF({value}) = 'date' THEN TRY_CAST(CAST({value} AS STRING) AS {kind}) "
    detour += f"ELSE TRY_CAST({value} AS {kind}) END"
    return tree.sql(dialect=_VectorSpark) == detour


def _check(tree: exp.Expr, *known: str) -> None:
    """Whatever a node has beside what is known here would change what it means."""
    if more := {name for name, part in tree.args.items() if part and name not in (*known, "_type")}:
        refuse(f"{type(tree).__name__} with {min(more)}")
