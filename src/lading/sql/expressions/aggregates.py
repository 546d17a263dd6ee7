"""SELECT … GROUP BY window(…), taken apart: what is computed of each row, what is added up, what is made of the sums.

    rows ─▶ keys and inputs ─▶ partial aggregates, kept as state ─▶ merged when the window closes ─▶ SELECT over them

An aggregate is possible when parts of it can be merged. Others are refused by their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from lading.errors import NotSupportedError, SqlError
from lading.model.load import AggregateSpec, ColumnSpec, DedupSpec, WatermarkSpec, WindowSpec
from lading.sql.expressions.dialect import parse_expression_tree, place_of
from lading.sql.expressions.mapping import check_rowwise
from lading.sql.expressions.spark_functions import AGGREGATE_FUNCTIONS
from lading.sql.properties.values import duration
from lading.sql.statements.parts import Expression, InsertSelect, SelectItem
from lading.sql.syntax.spans import Span

_ONE, _TWO = 1, 2
MERGED: dict[str, tuple[str, int]] = {
    "count": ("count", _ONE),
    "sum": ("sum", _ONE),
    "min": ("min", _ONE),
    "max": ("max", _ONE),
    **dict.fromkeys(("avg", "mean"), ("avg", _ONE)),
    **dict.fromkeys(("var_samp", "variance_samp"), ("var_samp", _ONE)),
    **dict.fromkeys(("variance", "var_pop", "variance_pop"), ("var_pop", _ONE)),
    "stddev_samp": ("stddev_samp", _ONE),
    **dict.fromkeys(("stddev", "std", "stddev_pop"), ("stddev_pop", _ONE)),
    "min_by": ("min_by", _TWO),
    "max_by": ("max_by", _TWO),
    **dict.fromkeys(("first", "first_value", "any_value"), ("first", _ONE)),
    **dict.fromkeys(("last", "last_value"), ("last", _ONE)),
    **dict.fromkeys(("bool_and", "every"), ("bool_and", _ONE)),
    **dict.fromkeys(("bool_or", "some", "any"), ("bool_or", _ONE)),
    **dict.fromkeys(("approx_count_distinct", "ndv"), ("approx_count_distinct", _ONE)),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), ("approx_percentile", _ONE)),
    "collect_list": ("collect_list", _ONE),
    "collect_set": ("collect_set", _ONE),
}
"""By their names: the aggregates that can be merged, and how many values of a row they take. STDDEV and VARIANCE are
those of the whole, as in Doris; in Spark they are those of a sample."""
_PARAMETERS: dict[str, tuple[float, float, float | None]] = {
    "approx_percentile": (0.0, 1.0, None),
    "collect_list": (1.0, 100_000.0, 1000.0),
    "collect_set": (1.0, 100_000.0, 1000.0),
}
"""Those with a number behind their values: from where to where it goes, and what it is when it is not written."""
_NOT_MERGED = "its parts cannot be merged"
_SESSION = "session_window"
START, END = "window_start", "window_end"
_TODO = f"Possible are: {', '.join(sorted(MERGED))}."


@dataclass(slots=True)
class _Split:
    """One walk over the items of a SELECT."""

    keys: dict[str, int]
    """GROUP BY, as text, and the place of each."""
    inputs: dict[str, int] = field(default_factory=dict)
    aggregates: dict[AggregateSpec, int] = field(default_factory=dict)

    def result(self, written: Expression) -> str:
        """An expression over keys and aggregates: g0, r0, window_start, …"""
        tree = parse_expression_tree(written.text, written.span)
        tree = tree.this if isinstance(tree, exp.Alias) else tree
        holder = exp.Paren(this=tree)
        self._walk(holder, written.span)
        return _text(holder.this)

    def _walk(self, node: exp.Expr, span: Span) -> None:
        for child in list(node.iter_expressions()):
            name = self._name_of(child, span)
            if name is None:
                self._walk(child, span)
            else:
                child.replace(exp.column(name))

    def _name_of(self, node: exp.Expr, span: Span) -> str | None:
        """What stands for a part of the tree; None: its own parts are looked at."""
        if (place := self.keys.get(_text(node))) is not None:
            return f"g{place}"
        if isinstance(node, exp.Window | exp.Query):
            check_rowwise(node, span)
        if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATE_FUNCTIONS:
            return f"r{self._aggregate(node, span)}"
        if isinstance(node, exp.Column):
            return _edge(node, span)
        if isinstance(node, exp.Star):
            msg = "* cannot be selected with GROUP BY"
            raise NotSupportedError(msg, place=span, hint="many columns", todo="Name keys and aggregates.")
        return None

    def _aggregate(self, node: exp.Anonymous, span: Span) -> int:
        name, place = node.name.lower(), place_of(node, span)
        arguments = list(node.expressions)
        if any(isinstance(each, exp.Distinct) for each in arguments):
            msg = f"{name}(DISTINCT …) is not possible here: {_NOT_MERGED}"
            raise NotSupportedError(msg, place=place, hint="cannot be merged", todo="Use approx_count_distinct.")
        if name not in MERGED:
            msg = f"{name} is not possible with window(…): {_NOT_MERGED}"
            raise NotSupportedError(msg, place=place, hint="cannot be merged", todo=_TODO)
        function, wanted = MERGED[name]
        if function == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return self._number(AggregateSpec(function="count"))
        parameter: float | None = None
        if function in _PARAMETERS:
            arguments, parameter = _with_parameter(function, arguments, place)
        if len(arguments) != wanted:
            msg = f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}, and it has {len(arguments)}"
            raise NotSupportedError(msg, place=place, hint="other arguments", todo="See docs/state.md.")
        for each in arguments:
            check_rowwise(each, span)
        inputs = tuple(self.inputs.setdefault(_text(each), len(self.inputs)) for each in arguments)
        return self._number(AggregateSpec(function=function, inputs=inputs, parameter=parameter))

    def _number(self, aggregate: AggregateSpec) -> int:
        return self.aggregates.setdefault(aggregate, len(self.aggregates))


def _with_parameter(function: str, arguments: list[exp.Expr], place: Span) -> tuple[list[exp.Expr], float]:
    """The values that an aggregate takes, and the number that is the same for all rows."""
    least, most, default = _PARAMETERS[function]
    if len(arguments) == 1 and default is not None:
        return arguments, default
    last = arguments[-1] if len(arguments) > 1 else None
    is_number = isinstance(last, exp.Literal) and not last.is_string
    number = float(last.name) if is_number and last is not None else -1.0
    if not least <= number <= most or (default is not None and number != int(number)):
        kind = "a number" if default is None else "a whole number"
        msg = f"The last argument of {function} must be {kind} from {least:g} to {most:g}"
        raise NotSupportedError(msg, place=place, hint="its last argument", todo="See docs/state.md.")
    return arguments[:-1], number


def split_windows(insert: InsertSelect) -> tuple[WindowSpec, tuple[ColumnSpec, ...]]:
    """What a SELECT with GROUP BY window(…) keeps, and what its columns are made of when a window closes."""
    calls, keys = list[tuple[exp.Anonymous, Span]](), dict[str, int]()
    for written in insert.group_by:
        tree = parse_expression_tree(written.text, written.span)
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in ("window", _SESSION):
            calls.append((tree, written.span))
            continue
        check_rowwise(tree, written.span)
        keys.setdefault(_text(tree), len(keys))
    if len(calls) != 1:
        msg = "GROUP BY needs exactly one window(…): without it a result would never be complete"
        place = insert.group_by[0].span
        raise NotSupportedError(msg, place=place, hint="no window", todo="Write GROUP BY window(at, '1 minute'), city.")
    time, size_us, slide_us = _window(*calls[0])
    is_session = calls[0][0].name.lower() == _SESSION
    split = _Split(keys)
    columns = tuple(_column(split, item) for item in insert.items)
    having = split.result(insert.having) if insert.having is not None else None
    window = WindowSpec(
        time=time,
        size_us=size_us,
        slide_us=slide_us,
        is_session=is_session,
        keys=tuple(keys),
        inputs=tuple(split.inputs),
        aggregates=tuple(split.aggregates),
        having=having,
    )
    return window, columns


def check_window(window: WindowSpec, watermark: WatermarkSpec | None, dedup: DedupSpec | None) -> None:
    """Refuse windows whose job has no event time, or another one."""
    if watermark is None:
        msg = "window(…) needs a watermark: it says when a window is complete"
        todo = f'Add "watermark.column" = "{window.time}" and "watermark.delay" to PROPERTIES.'
        raise SqlError(msg, property="watermark.column", todo=todo)
    if watermark.column.lower() != window.time.lower():
        msg = f"window(…) is over {window.time}, and the watermark over {watermark.column}"
        raise SqlError(msg, property="watermark.column", todo="Name the same column in both.")
    if dedup is not None:
        msg = "dedup.keys and GROUP BY window(…) in one job are not supported"
        todo = "Load the rows into a table once each, or count what comes."
        raise SqlError(msg, property="dedup.keys", todo=todo)


def _column(split: _Split, item: SelectItem) -> ColumnSpec:
    if item.is_star:
        msg = "* cannot be selected with GROUP BY"
        raise NotSupportedError(msg, place=item.expression.span, hint="many columns", todo="Name keys and aggregates.")
    return ColumnSpec(name=item.alias, expression=split.result(item.expression))


def _window(call: exp.Anonymous, span: Span) -> tuple[str, int, int]:
    arguments: Sequence[exp.Expr] = call.expressions
    is_session = call.name.lower() == _SESSION
    texts = [each for each in arguments[1:] if isinstance(each, exp.Literal) and each.is_string]
    if not isinstance(arguments[0] if arguments else None, exp.Column) or not 1 <= len(texts) == len(arguments) - 1 <= (
        1 if is_session else 2
    ):
        if is_session:
            msg = "session_window takes the column with the event time, and the time without rows that ends a session"
            todo = "Write session_window(at, '5 minutes')."
            raise NotSupportedError(msg, place=span, hint="other arguments", todo=todo)
        msg = "window takes the column with the event time, a length of time and perhaps how far windows are apart"
        raise NotSupportedError(msg, place=span, hint="other arguments", todo="Write window(at, '1 minute').")
    try:
        lengths = [round(duration("window", text.name) * 1_000_000) for text in texts]
    except SqlError as error:
        raise NotSupportedError(error.what, place=span, hint="no length of time", todo=error.todo) from error
    size, slide = lengths[0], lengths[-1]
    if not 0 < slide <= size:
        msg = "A window must last, and windows must not be further apart than they are long: rows would be in none"
        raise NotSupportedError(
            msg, place=span, hint="these lengths", todo="Write window(at, '10 minutes', '1 minute')."
        )
    return arguments[0].name, size, slide


def _edge(node: exp.Column, span: Span) -> str:
    name = node.name.lower()
    if node.table.lower() in ("window", _SESSION) and name in ("start", "end"):
        return f"window_{name}"
    if not node.table and name in (START, END):
        return name
    msg = f"Column {node.name} is neither in GROUP BY nor in an aggregate"
    raise NotSupportedError(msg, place=place_of(node, span), hint="not in GROUP BY", todo="Add it to GROUP BY.")


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="doris", comments=False)
