"""Aggregates as parts that can be merged, in Spark SQL.

A batch computes partial values of each window and key and keeps them; when the window closes they are merged, once.
The types of all parts are fixed, so that files of one batch fit those of another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
MOMENTS = "struct<n:double,m:double,s:double>"
"""How many values, their mean, and the sum of the squares of what they differ from it."""
ORDER = "struct<t:bigint,r:bigint>"
"""The event time of a row, and its place among others of the same time."""
_NUMERIC = frozenset(("sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"))
_BOOLEAN = frozenset(("bool_and", "bool_or"))
_DOUBLE = frozenset(("approx_percentile",))
_IN_ARROW = {"min": "min", "max": "max", "bool_and": "all", "bool_or": "any"}
DIGITS, DIGIT_MASK = (42, 21, 0), (1 << 21) - 1
"""The bits at which the digits of a whole number begin; the first has all that is above, and the sign."""
_SAFE_DIGITS = 28
"""Ten thousand million values of so many digits have a sum of 38."""
_SKETCH_SIZE = 400
"""The k of a KLL sketch: the rank of what it tells is off by 0.7 % of the values, in 99 of 100 cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InTasks:
    """How the tasks that read compute a value themselves, with Arrow."""

    function: str
    """count, sum, min, max, all or any."""
    column: str
    """Of the spool; `*`: of rows."""
    shift: int = 0
    """For a sum of whole numbers: of the digit that begins at this bit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One value that is kept of a window and key."""

    partial: str
    """Over the rows of a batch."""
    merge: str
    """Over such values; `{}` is the column that has them."""
    type: str
    in_tasks: InTasks | None = None
    """None: only Spark can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One aggregate."""

    parts: tuple[Part, ...]
    result: str
    """Over the merged parts: {0}, {1}."""
    type: str


def input_type(function: str, given: str) -> str:
    """What a value of this type is read as: texts beside a sum are numbers, as in Doris."""
    if function in _NUMERIC and given in ("string", "boolean"):
        return "double" if given == "string" else "bigint"
    if function in _BOOLEAN:
        return "boolean"
    if function in _DOUBLE:
        return "double"
    return given


def aggregate_of(
    function: str, inputs: Sequence[tuple[str, str]], order: str, parameter: float | None = None
) -> Aggregate:
    """An aggregate over columns of rows, each with its type. `order` says which of two rows is first."""
    value, kind = inputs[0] if inputs else ("*", "bigint")
    match function:
        case "count":
            return _same(f"count({value})", "sum", "bigint", InTasks(function="count", column=value))
        case "sum":
            return _sum(value, kind)
        case "min" | "max" | "bool_and" | "bool_or":
            return _same(f"{function}({value})", function, kind, _in_tasks(_IN_ARROW[function], value, kind))
        case "avg":
            counted = _same(f"count({value})", "sum", "bigint", InTasks(function="count", column=value))
            summed = _sum(value, kind)
            # A quotient of decimals has six digits behind the point.
            total = f"CAST({summed.result} AS double)" if _average(kind) == "double" else f"({summed.result})"
            result = f"{total} / {{{len(summed.parts)}}}"
            return Aggregate(parts=(*summed.parts, *counted.parts), result=result, type=_average(kind))
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            return _deviation(function, value)
        case "min_by" | "max_by":
            by, by_kind = inputs[1]
            return _ordered(function[:3], by, by_kind, value, kind)
        case "first" | "last":
            return _ordered("min" if function == "first" else "max", order, ORDER, value, kind)
        case "approx_count_distinct":
            part = Part(partial=f"hll_sketch_agg(cast({value} AS string))", merge="hll_union_agg({})", type="binary")
            return Aggregate(parts=(part,), result="coalesce(hll_sketch_estimate({0}), 0)", type="bigint")
        case "approx_percentile":
            return _percentile(value, parameter or 0.0)
        case "collect_list":
            return _list(value, kind, order, int(parameter or 0))
        case "collect_set":
            return _set(value, kind, int(parameter or 0))
    msg = f"No aggregate {function}"
    raise ValueError(msg)


def _same(partial: str, merge: str, kind: str, in_tasks: InTasks | None) -> Aggregate:
    part = Part(
        partial=f"CAST({partial} AS {kind})", merge=f"CAST({merge}({{}}) AS {kind})", type=kind, in_tasks=in_tasks
    )
    return Aggregate(parts=(part,), result="{0}", type=kind)


def _in_tasks(function: str, value: str, kind: str) -> InTasks | None:
    """Only where Arrow computes what Spark would: it orders NaN otherwise, and a sum of long decimals may be too large
    for it."""
    found = _DECIMAL.fullmatch(kind)
    if function == "sum":
        is_same = int(found[1]) <= _SAFE_DIGITS if found else kind in (*_INTEGERS, "float", "double")
    else:
        is_same = found is not None or kind in (*_INTEGERS, "boolean", "string", "date", "timestamp", "timestamp_ntz")
    return InTasks(function=function, column=value) if is_same else None


def _sum(value: str, kind: str) -> Aggregate:
    if kind in _INTEGERS:
        return _whole_sum(value)
    found = _DECIMAL.fullmatch(kind)
    total = f"decimal(38,{found[2]})" if found else "double"
    return _same(f"sum({value})", "sum", total, _in_tasks("sum", value, kind))


def _whole_sum(value: str) -> Aggregate:
    """A sum of integers may be too large for one of them, and Spark is slow with decimals: it is kept as three sums of
    digits, which hold two million million rows, and put together at the end."""
    parts: list[Part] = []
    for shift in DIGITS:
        digit = f"shiftright(cast({value} AS bigint), {shift})" + ("" if shift == DIGITS[0] else f" & {DIGIT_MASK}")
        summed = _same(f"sum({digit})", "sum", "bigint", InTasks(function="sum", column=value, shift=shift))
        parts += summed.parts
    high, middle = (1 << shift for shift in DIGITS[:2])
    # Most are small enough for longs.
    is_small = f"abs({{0}}) < {1 << 20} AND {{1}} < {1 << 40} AND {{2}} < {1 << 61}"
    short = f"CAST({{0}} * {high} + {{1}} * {middle} + {{2}} AS decimal(38,0))"
    long = f"CAST({{0}} AS decimal(38,0)) * {high} + CAST({{1}} AS decimal(38,0)) * {middle} + {{2}}"
    result = f"CASE WHEN {is_small} THEN {short} ELSE CAST({long} AS decimal(38,0)) END"
    return Aggregate(parts=tuple(parts), result=result, type="decimal(38,0)")


def _average(kind: str) -> str:
    if found := _DECIMAL.fullmatch(kind):
        return f"decimal(38,{max(4, int(found[2]))})"
    return "double"


def _ordered(which: str, key: str, key_kind: str, value: str, kind: str) -> Aggregate:
    pair = f"named_struct('k', {key}, 'v', {value})"
    whole = f"struct<k:{key_kind},v:{kind}>"
    part = Part(
        partial=f"CAST({which}(CASE WHEN {key} IS NOT NULL THEN {pair} END) AS {whole})",
        merge=f"CAST({which}({{}}) AS {whole})",
        type=whole,
    )
    return Aggregate(parts=(part,), result="{0}.v", type=kind)


def _deviation(function: str, value: str) -> Aggregate:
    number = f"cast({value} AS double)"
    moments = (
        f"named_struct('n', cast(count({number}) AS double), 'm', coalesce(avg({number}), 0D), "
        f"'s', coalesce(var_pop({number}) * count({number}), 0D))"
    )
    # Two halves as one: by Chan, Golub and LeVeque, which does not take the difference of two large numbers.
    joined = (
        "CASE WHEN a.n + b.n = 0D THEN a ELSE named_struct('n', a.n + b.n, "
        "'m', a.m + (b.m - a.m) * b.n / (a.n + b.n), "
        "'s', a.s + b.s + (b.m - a.m) * (b.m - a.m) * a.n * b.n / (a.n + b.n)) END"
    )
    merge = f"aggregate(collect_list({{}}), named_struct('n', 0D, 'm', 0D, 's', 0D), (a, b) -> {joined})"
    part = Part(partial=f"CAST({moments} AS {MOMENTS})", merge=f"CAST({merge} AS {MOMENTS})", type=MOMENTS)
    divisor = "{0}.n" if function.endswith("pop") else "({0}.n - 1D)"
    least = "0D" if function.endswith("pop") else "1D"
    variance = f"CASE WHEN {{0}}.n > {least} THEN {{0}}.s / {divisor} END"
    return Aggregate(
        parts=(part,), result=f"sqrt({variance})" if function.startswith("stddev") else variance, type="double"
    )


def _percentile(value: str, rank: float) -> Aggregate:
    part = Part(
        partial=f"kll_sketch_agg_double({value}, {_SKETCH_SIZE})",
        merge=f"kll_merge_agg_double({{}}, {_SKETCH_SIZE})",
        type="binary",
    )
    told = f"CASE WHEN kll_sketch_get_n_double({{0}}) > 0 THEN kll_sketch_get_quantile_double({{0}}, {rank!r}D) END"
    return Aggregate(parts=(part,), result=told, type="double")


def _list(value: str, kind: str, order: str, most: int) -> Aggregate:
    """Values by their event times; the first of them, when there are too many. Tables have no arrays: it is JSON."""
    whole = f"array<struct<k:{ORDER},v:{kind}>>"
    pair = f"CASE WHEN {value} IS NOT NULL THEN named_struct('k', {order}, 'v', {value}) END"
    part = Part(
        partial=f"CAST(slice(array_sort(collect_list({pair})), 1, {most}) AS {whole})",
        merge=f"CAST(slice(array_sort(flatten(collect_list({{}}))), 1, {most}) AS {whole})",
        type=whole,
    )
    return Aggregate(parts=(part,), result="to_json(transform({0}, x -> x.v))", type="string")


def _set(value: str, kind: str, most: int) -> Aggregate:
    """Values that differ, the smallest of them when there are too many."""
    whole = f"array<{kind}>"
    part = Part(
        partial=f"CAST(slice(array_sort(collect_set({value})), 1, {most}) AS {whole})",
        merge=f"CAST(slice(array_sort(array_distinct(flatten(collect_list({{}})))), 1, {most}) AS {whole})",
        type=whole,
    )
    return Aggregate(parts=(part,), result="to_json({0})", type="string")
