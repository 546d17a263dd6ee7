"""What an expression could not read of a row, said in Spark's SQL: a reason, or NULL.

In strict mode a value that is not NULL and that an implicit cast cannot read makes a bad row. It counts only where the
value was needed: in the branch of a CASE that was taken, and not in a condition that another one has decided.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.expressions.function_types import COALESCES, number_places, time_places
from lading.sql.expressions.functions import call
from lading.sql.expressions.implicit_casts import IMPLICIT, is_guard, operand_of

_SHOWN = 100
_MOST_PARTS = 100_000
"""Reasons of reasons grow fast when CASEs stand in the conditions of CASEs."""
_Reasons = list[exp.Expr]


def unread_reason(tree: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """An expression that gives the first reason why a row cannot be read; None: there is nothing to read.

    `tree` is in Spark's words. `columns` has reasons that columns bring with them, by their names in small letters.
    """
    return _first(_Reader(columns).run(tree))


def tells_by_null(tree: exp.Expr) -> bool:
    """Whether an expression is NULL when it could not read something: then nobody has to ask for rows with a value."""
    return not any(_hides(node) for node in tree.walk())


class _Reader:
    def __init__(self, columns: Mapping[str, exp.Expr]) -> None:
        self._columns = columns
        self._found: dict[int, _Reasons] = {}
        self._parts = 0

    def run(self, tree: exp.Expr) -> _Reasons:
        """From the leaves up, without recursion."""
        for node in reversed(list(tree.walk(bfs=False))):
            self._found[id(node)] = self._visited(node)
        return self._found[id(tree)]

    def _of(self, node: exp.Expr | None) -> _Reasons:
        return self._found.get(id(node), [])

    def _visited(self, node: exp.Expr) -> _Reasons:
        if isinstance(node, exp.Column):
            brought = self._columns.get(node.name.lower())
            return [self._copy(brought)] if brought is not None else []
        if isinstance(node, exp.Lambda):
            return []  # Its arguments are elements of an array, and nothing outside of it knows them.
        if IMPLICIT in node.meta:
            operand = operand_of(node)
            return [*self._of(operand), self._failed_cast(node, operand)]
        if isinstance(node, exp.And | exp.Or):
            return self._connected(node)
        if isinstance(node, exp.Case) and node.this is None:
            branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
            return self._chosen(branches, node.args.get("default"))
        if isinstance(node, exp.Anonymous):
            return self._called(node)
        return [reason for part in node.iter_expressions() for reason in self._of(part)]

    def _failed_cast(self, cast: exp.Expr, operand: exp.Expr) -> exp.Expr:
        names = ", ".join(dict.fromkeys(column.name for column in operand.find_all(exp.Column)))
        text = exp.TryCast(this=self._copy(operand), to=exp.DataType.build("string", dialect="spark"), safe=True)
        shown = call("substring", text, exp.Literal.number(1), exp.Literal.number(_SHOWN))
        before = exp.Literal.string(f"column {names}: cannot read '")
        after = exp.Literal.string(f"' as {cast.meta[IMPLICIT]}")
        is_failed = exp.And(this=_is_some(self._copy(operand)), expression=_is_null(self._copy(cast)))
        return exp.Case(ifs=[exp.If(this=is_failed, true=call("concat", before, shown, after))])

    def _connected(self, node: exp.And | exp.Or) -> _Reasons:
        """False AND anything is false, true OR anything is true: then nothing else had to be read."""
        reasons = [*self._of(node.left), *self._of(node.right)]
        if not reasons or type(node.parent) is type(node):
            return reasons
        is_and = isinstance(node, exp.And)
        settled = [self._decides(part, is_and=is_and) for part in node.flatten(unnest=False)]
        return [exp.Case(ifs=[exp.If(this=exp.or_(*settled), true=exp.Null())], default=_first(reasons))]

    def _decides(self, part: exp.Expr, *, is_and: bool) -> exp.Expr:
        decided: exp.Expr = call("coalesce", exp.Paren(this=self._copy(part)), exp.Boolean(this=is_and))
        if is_and:
            decided = exp.Not(this=decided)
        if self._tells(part):
            return decided
        reason = call("coalesce", *map(self._copy, self._of(part)), exp.Null())
        return exp.Paren(this=exp.And(this=decided, expression=_is_null(reason)))

    def _tells(self, node: exp.Expr) -> bool:
        """Whether a condition is NULL when something in it cannot be read; IS NULL, for one, is true then."""
        return not self._of(node) or tells_by_null(node)

    def _chosen(self, branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> _Reasons:
        ifs: list[exp.Expr] = []
        for condition, value in branches:
            if (reason := _first(self._of(condition))) is not None:
                ifs.append(exp.If(this=_is_some(self._copy(reason)), true=reason))
            ifs.append(exp.If(this=self._copy(condition), true=_first(self._of(value)) or exp.Null()))
        last = _first(self._of(default))
        if last is None and all(isinstance(branch.args["true"], exp.Null) for branch in ifs):
            return []
        return [exp.Case(ifs=ifs, default=last)]

    def _called(self, node: exp.Anonymous) -> _Reasons:
        name, args = node.name.lower(), node.expressions
        if name == "if" and len(args) == 3:
            return self._chosen([(args[0], args[1])], args[2])
        if name == "nvl2" and len(args) == 3:
            given = _is_some(args[0].copy())
            self._found[id(given)] = self._of(args[0])
            return self._chosen([(given, args[1])], args[2])
        if name not in COALESCES:
            return [reason for arg in args for reason in self._of(arg)]
        reasons = list(self._of(args[0])) if args else []
        for place, arg in enumerate(args[1:], 1):
            if (reason := _first(self._of(arg))) is not None:
                before = call("coalesce", *(self._copy(earlier) for earlier in args[:place]))
                reasons.append(exp.Case(ifs=[exp.If(this=_is_some(before), true=exp.Null())], default=reason))
        return reasons

    def _copy(self, node: exp.Expr) -> exp.Expr:
        made = node.copy()
        self._parts += sum(1 for _ in made.walk())
        if self._parts > _MOST_PARTS:
            msg = "The expression has too many conditions inside of conditions"
            raise NotSupportedError(msg, todo="Write it in a simpler way, or with session.enable_insert_strict false.")
        return made


def _hides(node: exp.Expr) -> bool:
    """Whether a part may give a value though one of its own is NULL."""
    if is_guard(node):
        return False
    if isinstance(node, exp.Anonymous):
        count = len(node.expressions)
        return not (number_places(node.name.lower(), count) or time_places(node.name.lower(), count))
    return isinstance(node, exp.Case | exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ | exp.Concat)


def _first(reasons: _Reasons) -> exp.Expr | None:
    if len(reasons) <= 1:
        return reasons[0] if reasons else None
    return call("coalesce", *reasons)


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=node), expression=exp.Null())


def _is_some(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=_is_null(node))
