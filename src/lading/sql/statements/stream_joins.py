"""What a join of two streams may be, and what the record of the job keeps of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from lading.errors import SqlError
from lading.model.load import DedupSpec, StreamJoinSpec, WatermarkSpec
from lading.sql.expressions.intervals import StreamCondition, read_condition
from lading.sql.expressions.mapping import SparkExpression, part_expression, translate_expression
from lading.sql.expressions.sides import column_of_side, side_column
from lading.sql.statements.joins import check_alone
from lading.sql.statements.parts import InsertSelect, StreamJoin

_COLUMN = "watermark.column"
_CHANGING = frozenset(
    (
        *("now", "current_timestamp", "current_date", "current_time", "curdate", "curtime", "localtime"),
        *("localtimestamp", "sysdate", "utc_timestamp", "rand", "random", "randn", "uuid", "shuffle"),
        *("current_datetime", "current_user", "monotonically_increasing_id"),
    )
)
_MOST_US = 366 * 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKeys:
    """ON of two streams without what it says of their event times."""

    keys: tuple[tuple[SparkExpression, SparkExpression], ...]
    """What is equal: of the first, and of the second."""
    rest: tuple[SparkExpression, ...]


def stream_join_spec(
    insert: InsertSelect, watermark: WatermarkSpec | None, dedup: DedupSpec | None
) -> StreamJoinSpec | None:
    """The join of a statement as the record keeps it; None: it has none. Raises what is wrong with it."""
    join, left = insert.stream_join, insert.source_alias or ""
    if join is None:
        return None
    check_alone(insert, dedup, join.on.span, "a stream")
    sides = (left, join.alias)
    on = translate_expression(join.on, sides=sides)
    _check_fixed(on.origin.tree, join)
    found = read_condition(on.origin.tree, *(side.lower() for side in sides))
    times = _times(watermark, sides, found, join)
    low, high = _bounds(found, times, sides, join)
    if not _keys(found, times):
        msg = (
            "The condition of a join of two streams has to ask for something of one that equals something of the other"
        )
        todo = f"Write ON {left}.k = {join.alias}.k AND …: rows are kept and found by it."
        raise SqlError(msg, place=join.on.span, hint="no equality of both sides", todo=todo)
    return StreamJoinSpec(
        alias=join.alias,
        on=join.on.text,
        is_left=join.is_left,
        times=(column_of_side(times[0], left) or "", column_of_side(times[1], join.alias) or ""),
        low_us=low,
        high_us=high,
    )


def stream_keys(join: StreamJoinSpec, source_alias: str, *, strict_cast: bool) -> StreamKeys:
    """What ON asks for beside the event times."""
    sides = (source_alias, join.alias)
    on = translate_expression(join.on, strict_cast=strict_cast, sides=sides)
    found = read_condition(on.origin.tree, *(side.lower() for side in sides))
    times = (side_column(source_alias, join.times[0]), side_column(join.alias, join.times[1]))
    others = [part for columns, parts in found.times.items() if columns != times for part in parts]
    return StreamKeys(
        keys=tuple((part_expression(on, one), part_expression(on, other)) for one, other in _keys(found, times)),
        rest=tuple(part_expression(on, part) for part in (*found.rest, *others)),
    )


def _keys(found: StreamCondition, times: tuple[str, str]) -> list[tuple[exp.Expr, exp.Expr]]:
    """Without event times that are equal: these are compared as moments."""
    return [pair for pair in found.keys if (pair[0].name, pair[1].name) != times or not _are_columns(pair)]


def _are_columns(pair: tuple[exp.Expr, exp.Expr]) -> bool:
    return all(isinstance(each, exp.Column) for each in pair)


def _check_fixed(condition: exp.Expr, join: StreamJoin) -> None:
    """Refuse what is another value each time: a row would match when it comes and not when it is done, or neither."""
    for node in condition.walk():
        name = ""
        if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
            name = node.sql_name()
        elif isinstance(node, exp.Anonymous) or (isinstance(node, exp.Column) and not node.table):
            name = node.name
        if (name := name.lower()) in _CHANGING:
            msg = f"{name} is another value each time, and the condition of a join of two streams is asked twice"
            todo = "Compare columns of the two streams, or leave rows out with WHERE."
            raise SqlError(msg, place=join.on.span, hint="not in ON", todo=todo)


def _times(
    watermark: WatermarkSpec | None, sides: tuple[str, str], found: StreamCondition, join: StreamJoin
) -> tuple[str, str]:
    """The event times of both, as `a.ts` and `b.ts`: "watermark.column" names them."""
    seen = next((columns for columns, (low, high) in found.bounds.items() if None not in (low, high)), None)
    example = ", ".join(seen or (f"{side}.ts" for side in sides))
    todo = f'Add "{_COLUMN}" = "{example}" and "watermark.delay" to PROPERTIES.'
    if watermark is None:
        msg = "A join of two streams needs a watermark: it says how long a row has to be kept"
        raise SqlError(msg, place=join.on.span, hint="no watermark", property=_COLUMN, todo=todo)
    written = [part.strip() for part in watermark.column.split(",")]
    named: dict[str, str] = {}
    for part in written:
        side, _, column = part.partition(".")
        known = [each for each in sides if each.lower() == side.strip().strip("`").lower()]
        if not known or not column:
            msg = f"{_COLUMN} is {watermark.column!r}, and {part!r} does not say which stream it is of"
            raise SqlError(msg, property=_COLUMN, todo=todo.replace("Add", "Write"))
        named[known[0]] = column.strip().strip("`")
    if len(written) != len(sides) or len(named) != len(sides):
        msg = f"{_COLUMN} is {watermark.column!r}, and a join of two streams needs the event time of each"
        raise SqlError(msg, property=_COLUMN, todo=todo.replace("Add", "Write"))
    return side_column(sides[0], named[sides[0]]), side_column(sides[1], named[sides[1]])


def _bounds(
    found: StreamCondition, times: tuple[str, str], sides: tuple[str, str], join: StreamJoin
) -> tuple[int, int]:
    low, high = found.bounds.get(times, [None, None])
    if any((one.name, other.name) == times and _are_columns((one, other)) for one, other in found.keys):
        low, high = max(0, low or 0), min(0, high or 0)
    one, other = times
    example = f"AND {other} BETWEEN {one} AND {one} + INTERVAL 10 MINUTES"
    if low is None or high is None:
        missing = "how much later or earlier one may be" if low is high else "both ends of the time between them"
        msg = f"The condition of a join of two streams has to say {missing}: rows would be kept for ever"
        todo = f"Add {example}, over the columns of {_COLUMN}, in units from MICROSECOND to WEEK."
        raise SqlError(msg, place=join.on.span, hint="no interval of time", todo=todo)
    if low > high:
        msg = f"No rows can be joined: {other} would have to be both before and after {one}"
        raise SqlError(msg, place=join.on.span, hint="an empty interval", todo=f"Write for example {example}.")
    if max(abs(low), abs(high)) > _MOST_US:
        msg = "Rows of two streams can be joined that are at most a year apart"
        raise SqlError(msg, place=join.on.span, hint="too long", todo=f"Write for example {example}.")
    return low, high
