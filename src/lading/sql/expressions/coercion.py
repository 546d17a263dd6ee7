"""Implicit conversions of Doris, written out as casts, because Spark's are others.

Spark casts a text beside an integer to INT: `'10.5' > 10` is not true there, and a filter loses the row. Here every
node of a tree gets a type, as far as it is known, and where texts stand beside numbers, dates or truths, the casts that
Doris would make are put in. `docs/coercions.md` has the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import exp

from lading.sql.expressions.function_types import (
    COALESCES,
    EXTREMES,
    KEEPS_NUMBER,
    RESULTS,
    integer_place,
    number_places,
    shifts_date,
    time_places,
)
from lading.sql.expressions.implicit_casts import (
    as_integer,
    as_text,
    for_integer_cast,
    literal_number,
    literal_number_type,
    read_as,
)
from lading.sql.expressions.paths import is_bound, json_part, part_type
from lading.sql.expressions.type_names import parse_type
from lading.sql.expressions.value_types import (
    BOOLEAN,
    DATE,
    DATETIME,
    DOUBLE,
    INTEGER,
    MAX_DIGITS,
    MOMENT,
    NULL,
    OTHER,
    TEXT,
    Kind,
    ValueType,
    check_digits,
    computed,
    number_type,
    type_of_spark,
    wide,
)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_ON_INTEGERS = (
    exp.IntDiv, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_TRUTHS = (exp.And, exp.Or, exp.Not)
_ALWAYS: dict[type[exp.Expr], ValueType] = {
    exp.Boolean: BOOLEAN, exp.Null: NULL, exp.Is: BOOLEAN, exp.Like: BOOLEAN, exp.RegexpLike: BOOLEAN,
    exp.Escape: TEXT, exp.Trim: TEXT, exp.Substring: TEXT, exp.Concat: TEXT, exp.StrPosition: INTEGER,
    exp.CurrentTimestamp: MOMENT, exp.CurrentDate: DATE,
}  # fmt: skip
_WITHOUT_BRACKETS = {
    "current_date": DATE,
    "curdate": DATE,
    "current_timestamp": MOMENT,
    "localtimestamp": DATETIME,
}
_TIMES = (Kind.DATE, Kind.DATETIME, Kind.MOMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known around an expression."""

    columns: Mapping[str, ValueType] = field(default_factory=dict)
    """Types of the columns, by their names in small letters."""
    exact: ValueType | None = None
    """The decimal that every text beside a number is read as; None: a double."""
    exact_columns: Mapping[str, ValueType] = field(default_factory=dict)
    """The same for single columns: those that go to a decimal column as they are."""
    refuses_longer: bool = False
    """Raise for such a column beside a decimal with more digits: they would not be equal where they are."""
    strict_cast: bool = False
    """A CAST that was written takes only what is exactly right."""


def coerce(tree: exp.Expr, context: Context, *, is_condition: bool = False) -> tuple[exp.Expr, ValueType]:
    """A tree of Doris with its implicit casts written out, and the type of what it gives.

    `is_condition`: it chooses rows, so it has to give a truth.
    """
    holder = exp.Paren(this=tree.copy())
    coercion = _Coercion(context)
    # From the leaves up, without recursion: a condition may have a thousand parts.
    for node in reversed(list(holder.this.walk(bfs=False))):
        coercion.visit(node)
    if is_condition:
        coercion.truth(holder.this)
    return holder.this, coercion.type_of(holder.this)


class _Coercion:
    """One walk over one tree."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._types: dict[int, ValueType] = {}
        self._kept: list[exp.Expr] = []
        """Nodes whose ids are in use."""

    def type_of(self, node: exp.Expr | None) -> ValueType:
        return self._types.get(id(node), OTHER)

    def visit(self, node: exp.Expr) -> None:
        """Put casts below a node whose own parts are done, and note its type."""
        self._note(node, self._visited(node))

    def truth(self, node: exp.Expr | None) -> None:
        """Make a condition of what is where one is needed."""
        if node is not None and (self.type_of(node).kind is Kind.TEXT or self.type_of(node).is_number):
            self._read(node, BOOLEAN)

    def _note(self, node: exp.Expr, kind: ValueType) -> None:
        self._types[id(node)] = kind
        self._kept.append(node)

    def _visited(self, node: exp.Expr) -> ValueType:
        if isinstance(node, _COMPARISONS):
            self._compare([node.left, node.right])
            return BOOLEAN
        if isinstance(node, _ARITHMETIC):
            return self._compute(node.left, node.right)
        if isinstance(node, exp.In | exp.Between):
            parts = [node.this, *node.expressions] if isinstance(node, exp.In) else _bounds(node)
            self._compare(parts)
            return BOOLEAN
        if isinstance(node, _TRUTHS):
            for part in node.iter_expressions():
                self.truth(part)
            return BOOLEAN
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        return self._single(node)

    def _single(self, node: exp.Expr) -> ValueType:
        """What has one part, or none."""
        if found := _ALWAYS.get(type(node)):
            return found
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Paren):
            return self.type_of(node.this)
        if isinstance(node, exp.Neg):
            return self._number(node.this)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Extract):
            self._time(node.expression)
            return INTEGER
        if isinstance(node, exp.Bracket | exp.Dot):
            return self._part(node)
        return self._whole(node)

    def _cast(self, node: exp.Cast) -> ValueType:
        """A cast that was written."""
        wanted = type_of_spark(parse_type(node.to.sql(dialect="doris")).name)
        if wanted.kind is Kind.INTEGER and self.type_of(node.this).kind is Kind.TEXT and not self._context.strict_cast:
            self._replace(node.this, for_integer_cast(node.this.copy()), OTHER)
        return wanted

    def _part(self, node: exp.Bracket | exp.Dot) -> ValueType:
        """A step of a path."""
        whole = self.type_of(node.this)
        step = node.expressions[0] if isinstance(node, exp.Bracket) else node.expression
        if isinstance(node, exp.Dot) and isinstance(step, exp.Func):
            return OTHER
        if whole.kind is not Kind.TEXT:
            return part_type(whole, step)
        self._replace(node, json_part(node.this, step), TEXT)
        return TEXT

    def _whole(self, node: exp.Expr) -> ValueType:
        if isinstance(node, _ON_INTEGERS):
            for part in (node.left, node.right):
                kind = self.type_of(part)
                if kind.kind in (Kind.TEXT, Kind.DECIMAL, Kind.DOUBLE):
                    self._replace(part, as_integer(part.copy(), kind), INTEGER)
            return INTEGER
        if isinstance(node, exp.BitwiseNot) and self.type_of(node.this).kind is Kind.TEXT:
            self._replace(node.this, as_integer(node.this.copy(), TEXT), INTEGER)
            return INTEGER
        return OTHER

    def _literal(self, node: exp.Literal) -> ValueType:
        if node.is_string:
            return TEXT
        if self._context.exact is not None and "e" in node.name.lower():
            plain = format(Decimal(node.name), "f")
            if len(plain.replace(".", "")) <= MAX_DIGITS:
                node.set("this", plain)
        return number_type(node.name)

    def _column(self, node: exp.Column) -> ValueType:
        name = node.name.lower()
        if is_bound(node):
            return OTHER
        is_bare = isinstance(node.this, exp.Identifier) and not node.this.args.get("quoted") and not node.table
        if is_bare and name in _WITHOUT_BRACKETS:
            return _WITHOUT_BRACKETS[name]
        return self._context.columns.get(name, OTHER)

    def _compare(self, parts: Sequence[exp.Expr]) -> None:
        """Give values that are compared with each other one type."""
        types = [self.type_of(part) for part in parts]
        kinds = {kind.kind for kind in types} - {Kind.NULL}
        numbers = [kind for kind in types if kind.is_number]
        if numbers:
            if kinds & {*_TIMES, Kind.TEXTS}:
                return  # A date beside a number: Spark refuses it, with a message.
            for part, kind in zip(parts, types, strict=True):
                if kind.kind in (Kind.TEXT, Kind.OTHER) and not isinstance(part, exp.Tuple):
                    self._read(part, self._number_for(part, numbers))
                elif kind.kind is Kind.BOOLEAN:
                    self._read(part, INTEGER)
        elif Kind.TEXT in kinds and (wanted := _beside_text(kinds)):
            for part, kind in zip(parts, types, strict=True):
                if kind.kind in (Kind.TEXT, Kind.DATE) and kind != wanted:
                    self._read(part, wanted)

    def _number_for(self, node: exp.Expr, others: Sequence[ValueType]) -> ValueType:
        """The number that a text is read as."""
        if self._context.exact is not None:
            return self._context.exact
        column = node.unnest()
        if isinstance(column, exp.Column) and (found := self._context.exact_columns.get(column.name.lower())):
            if self._context.refuses_longer:
                check_digits(column.name, found, others)
            return found
        return wide(list(others)) if any(other.is_wide for other in others) else DOUBLE

    def _compute(self, left: exp.Expr, right: exp.Expr) -> ValueType:
        if isinstance(left, exp.Interval) or isinstance(right, exp.Interval):
            return self._time(right if isinstance(left, exp.Interval) else left)
        if self.type_of(left).kind in _TIMES or self.type_of(right).kind in _TIMES:
            return OTHER
        return computed(self._number(left), self._number(right))

    def _number(self, node: exp.Expr, *, is_exact: bool = True) -> ValueType:
        """Make a number of what is computed with."""
        kind = self.type_of(node)
        if kind.kind is Kind.TEXT:
            return self._read(node, (self._context.exact or DOUBLE) if is_exact else DOUBLE)
        return self._read(node, INTEGER) if kind.kind is Kind.BOOLEAN else kind

    def _time(self, node: exp.Expr) -> ValueType:
        kind = self.type_of(node)
        return self._read(node, DATETIME) if kind.kind is Kind.TEXT else kind

    def _case(self, node: exp.Case) -> ValueType:
        operand, ifs = node.this, node.args["ifs"]
        for branch in ifs:
            if operand is None:
                self.truth(branch.this)
            elif self._mixes([operand, branch.this]):
                self._searched(node)
                return self._case(node)
        results = [branch.args["true"] for branch in ifs]
        if (default := node.args.get("default")) is not None:
            results.append(default)
        return self._join(results)

    def _mixes(self, parts: Sequence[exp.Expr]) -> bool:
        return len({self.type_of(part).kind for part in parts} - {Kind.NULL}) > 1

    def _searched(self, node: exp.Case) -> None:
        """CASE x WHEN 1 … as CASE WHEN x = 1 …: each value is compared by itself."""
        operand = node.this
        node.set("this", None)
        for branch in node.args["ifs"]:
            copied = operand.copy()
            self._note(copied, self.type_of(operand))
            equal = exp.EQ(this=copied, expression=branch.this)
            branch.set("this", equal)
            self.visit(equal)

    def _join(self, parts: Sequence[exp.Expr]) -> ValueType:
        """Give values of which one is taken a type: a text among them makes them texts, as in Doris."""
        types = [self.type_of(part) for part in parts]
        known = [kind for kind in types if kind.kind is not Kind.NULL]
        kinds = {kind.kind for kind in known}
        if not known:
            return NULL
        if Kind.OTHER in kinds or Kind.TEXTS in kinds:
            return OTHER if len(kinds) > 1 else known[0]
        if Kind.TEXT in kinds:
            for part, kind in zip(parts, types, strict=True):
                if kind.kind not in (Kind.TEXT, Kind.NULL):
                    self._replace(part, as_text(part.copy()), TEXT)
            return TEXT
        if any(kind.is_number for kind in known):
            for part, kind in zip(parts, types, strict=True):
                if kind.kind is Kind.BOOLEAN:
                    self._read(part, INTEGER)
            return known[0] if len(set(known)) == 1 else _widest(known)
        return known[0] if len(kinds) == 1 else DATETIME

    def _call(self, node: exp.Anonymous) -> ValueType:
        name, args = node.name.lower(), node.expressions
        if name == "if" and len(args) == 3:
            self.truth(args[0])
            return self._join(node.expressions[1:])
        if name in COALESCES or (name == "nvl2" and len(args) == 3):
            return self._join(args[1:] if name == "nvl2" else args)
        if name in EXTREMES:
            self._compare(args)
            return self._join(node.expressions)
        if name in ("equal_null", "between"):
            self._compare(args)
            return BOOLEAN
        if name == "nullif" and len(args) == 2:
            return self._nullif(node)
        return self._function(name, node)

    def _function(self, name: str, node: exp.Anonymous) -> ValueType:
        count = len(node.expressions)
        numbers = [
            self._number(node.expressions[at], is_exact=name in KEEPS_NUMBER) for at in number_places(name, count)
        ]
        times = [self._time(node.expressions[at]) for at in time_places(name, count)]
        if (place := integer_place(name, count)) is not None and self.type_of(node.expressions[place]) == TEXT:
            self._replace(node.expressions[place], as_integer(node.expressions[place].copy(), TEXT), INTEGER)
        if name == "date_trunc" and count == 2:
            self._time(next((part for part in node.expressions if not isinstance(part, exp.Literal)), node))
        if name in KEEPS_NUMBER and numbers:
            return numbers[0] if len(numbers) == 1 else computed(*numbers[:2])
        if shifts_date(name) and times:
            return times[0]
        if name in ("element_at", "try_element_at") and count == 2:
            return TEXT if self.type_of(node.expressions[0]).kind is Kind.TEXTS else OTHER
        return RESULTS.get(name, OTHER)

    def _nullif(self, node: exp.Anonymous) -> ValueType:
        """NULLIF compares two values and gives the first one as it was."""
        first, second = node.expressions
        kind = self.type_of(first)
        if not self._mixes([first, second]):
            return kind
        copied = first.copy()
        self._note(copied, kind)
        equal = exp.EQ(this=copied, expression=second)
        self.visit(equal)
        case = exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=first.copy())
        self._replace(node, exp.Paren(this=case), kind)
        return kind

    def _read(self, node: exp.Expr, wanted: ValueType) -> ValueType:
        if wanted.is_number and (number := literal_number(node)) is not None:
            self._replace(node, number, literal_number_type(number))
            return self.type_of(number)
        self._replace(node, read_as(node.copy(), wanted, self.type_of(node)), wanted)
        return wanted

    def _replace(self, node: exp.Expr, made: exp.Expr, kind: ValueType) -> None:
        node.replace(made)
        self._note(made, kind)


def _bounds(node: exp.Between) -> list[exp.Expr]:
    return [node.this, node.args["low"], node.args["high"]]


def _beside_text(kinds: set[Kind]) -> ValueType | None:
    """What texts are read as, when they are compared with these."""
    others = kinds - {Kind.TEXT}
    if others == {Kind.BOOLEAN}:
        return BOOLEAN
    if others and others <= set(_TIMES):
        return MOMENT if Kind.MOMENT in others else DATETIME
    return None


def _widest(types: Sequence[ValueType]) -> ValueType:
    found = types[0]
    for kind in types[1:]:
        found = computed(found, kind) if found.is_number and kind.is_number else found if found.is_number else kind
    return found
