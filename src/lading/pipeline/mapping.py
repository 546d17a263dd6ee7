"""From source columns to target columns, as Spark SQL, so that every row keeps its fate.

Nothing is filtered away on the way to the writer: what is to be said about a row stands in one column of notes, because
the writer counts every row and knows the end of its split even when no row is loaded. A row that is to be loaded has no
note, so that notes cost next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lading.model.rows import REST

NOTE = "__note"
"""What Spark carries instead: null, or one letter for what the row is, and then what is to be said."""
_RESERVED = re.compile(
    r"__(?:file|row|raw|error|note|where|selected|undecided|unread|reason|watermark|event|bucket|fate|line|matched|rest|rescued|record|"
    r"[svcj]\d+)",
    re.IGNORECASE,
)
LINE = "__line"
"""For jobs that judge rows after they were read: where in its file a row is, beside the file itself."""
RECORD = "__record"
"""For jobs that fill nested columns, whose values are looked at last: what is kept of a row that is bad then."""
WATERMARK, EVENT = "__watermark", "__event"
"""For jobs with a watermark: that of the bill before, beside each row, and the event time of the row. In microseconds.
It is a column and not a literal: Spark would compile its code again for each batch."""
BUCKETS, BUCKET = 64, "__bucket"
"""Into so many parts the keys of a job with state are divided."""
PLACE, END, BAD, UNSELECTED, LATE, UNREAD = "P", "E", "B", "U", "L", "R"
"""PLACE and END are no rows of the source: where the rows that follow are from, and the end of a split. BAD and LATE
are followed by the size of the reason, the reason and the record; LATE may stand alone. UNREAD is as BAD, of a record
that could not be taken apart: it is as the source has it, and not an object of its columns."""
SIZE_DIGITS = 9
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn:
    """One column of the table and the expression that fills it."""

    name: str
    type: str
    """Spark SQL type."""
    nullable: bool = True
    expression: str | None = None
    """Spark SQL over the source columns. None: the column is not filled."""
    max_length: int | None = None
    is_text: bool = False
    """The expression gives texts: a whole number may be written as `5.0` or `1e2`, also for an integer column."""
    unread: str | None = None
    """Spark SQL: what the expression needs of the source and cannot read, as a reason, or NULL. Strict jobs ask it."""
    tells_by_null: bool = False
    """There can be a reason only where the expression is NULL: most rows need not be asked."""
    nested: str = ""
    """The nested type that the table has; up to the task that writes it is a text of JSON, and `type` is string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMapping:
    """What a job does to a row."""

    columns: tuple[TargetColumn, ...]
    where: str | None = None
    """Spark SQL over the source columns."""
    where_unread: str | None = None
    """The same for WHERE: a strict job does not leave out a row that it cannot judge."""
    where_tells_by_null: bool = False
    event: TargetColumn | None = None
    """The event time of a row, for jobs with a watermark: a timestamp, never NULL."""
    keys: tuple[str, ...] | None = None
    """For jobs with state: the columns by which its rows are told apart. They say which bucket a row belongs to."""
    window_us: tuple[int, int] | None = None
    """For windows: how long they are, and how far apart they begin. A row is late when all of its windows closed."""
    keeps_late: bool = True
    """Rows behind the watermark go to quarantine; else they are only counted."""
    rescued: str = ""
    """The column that takes, as JSON, what no other has room for. Empty: such values make bad rows, or are NULL."""
    strict: bool = True
    """A value that does not fit its column makes a bad row; else it becomes NULL, or is cut when it is too long."""


def reserved_names(names: Iterable[str]) -> list[str]:
    """Columns of a source that are called as what this file adds to them: Spark could not tell them apart."""
    return [name for name in names if _RESERVED.fullmatch(name)]


def select_lists(
    mapping: RowMapping,
    source_columns: tuple[str, ...],
    carried: tuple[str, ...] = (),
    *,
    hidden: tuple[str, ...] = (),
) -> tuple[list[str], ...]:
    """SELECT lists, each over the one before and the first over the source. `carried` are columns that come along,
    `hidden` those of the source that the record of a bad row does not show.

    What is used twice gets a list of its own, because Spark then computes it once: values, casts, reasons, notes. The
    record as JSON is used in one place only, behind a condition: it is not computed for good rows.
    """
    targets, event = range(len(mapping.columns)), mapping.event
    columns = mapping.columns if event is None else (*mapping.columns, event)
    numbers = range(len(columns))
    kept = [_source(n) for n in range(len(source_columns))] + ([WATERMARK] if event is not None else [])
    kept += carried
    unread = _unread(mapping)
    values = [
        *(f"{quoted(name)} AS {_source(n)}" for n, name in enumerate(source_columns)),
        *(quoted(name) for name in source_columns if unread),
        *(f"({column.expression or 'NULL'}) AS {_value(n)}" for n, column in enumerate(columns)),
        *([WATERMARK] if event is not None else []),
        *carried,
        f"({mapping.where or 'true'}) AS __where",
        NOTE,
    ]
    casts = [
        *kept,
        *(_value(n) for n in numbers),
        *(f"{cast_text(column, _value(n))} AS {_cast(n)}" for n, column in enumerate(columns)),
        "coalesce(__where, false) AS __selected",
        *(f"{text} AS {name}" for name, text in unread.items()),
        NOTE,
    ]
    checks = [f"WHEN {name} IS NOT NULL THEN {name}" for name in unread]
    checks += [check for n in targets for check in _checks(mapping, n)]
    if event is not None:
        checks += _event_checks(event, _value(numbers[-1]), _cast(numbers[-1]))
    # A row that WHERE leaves out is unselected, whatever else is wrong with it; one that cannot be read is bad, and in
    # strict mode one that WHERE cannot judge.
    is_judged = " AND __undecided IS NULL" if "__undecided" in unread else ""
    is_settled = f"{NOTE} IS NOT NULL OR (NOT __selected{is_judged})"
    reason = f"CASE WHEN {is_settled} THEN NULL {' '.join(checks)} END" if checks else "CAST(NULL AS string)"
    rescued = [f"{_rescued(mapping)} AS __rescued"] if mapping.rescued else []
    reasons = [*kept, *(_cast(n) for n in numbers), *rescued, "__selected", f"{reason} AS __reason", NOTE]
    hidden = (*hidden, REST)
    shown = ", ".join(f"'{_text(name)}', {_source(n)}" for n, name in enumerate(source_columns) if name not in hidden)
    record = f"to_json(named_struct({shown}))" if shown else "''"
    size = f"lpad(octet_length(__reason), {SIZE_DIGITS}, '0')"
    time = _micros(event, _cast(numbers[-1])) if event is not None else ""
    note = (
        f"CASE WHEN {NOTE} IS NOT NULL THEN {NOTE} "
        f"WHEN __reason IS NOT NULL THEN encode(concat('{BAD}', {size}, __reason, {record}), 'UTF-8') "
        f"WHEN NOT __selected THEN encode('{UNSELECTED}', 'UTF-8') {_late(mapping, time, record)}END"
    )
    filled = [_filled(mapping, n) for n in targets] + ([f"{time} AS {EVENT}"] if event is not None else [])
    if event is None and mapping.keys is not None:
        filled.append(f"CAST(0 AS bigint) AS {EVENT}")  # A spool has one, also of rows without event time.
    if any(column.nested for column in mapping.columns):
        filled.append(f"{record} AS {RECORD}")
    return values, casts, reasons, [*filled, *_bucket(mapping), *carried, f"{note} AS {NOTE}"]


def _rescued(mapping: RowMapping) -> str:
    """What no column has room for: the fields that the job does not know, and values that do not fit their columns."""
    columns = [(n, column) for n, column in enumerate(mapping.columns) if column.name != mapping.rescued]
    rest = next(_value(n) for n, column in enumerate(mapping.columns) if column.name == mapping.rescued)
    misfits = {column.name: _is_misfit(column, _value(n), _cast(n)) for n, column in columns}
    parts = ", ".join(
        f"'{_text(column.name)}', CASE WHEN {misfits[column.name]} THEN cast({_value(n)} AS string) END"
        for n, column in columns
    )
    inner = f"to_json(named_struct({parts}))"  # Without what is NULL.
    both = f"concat(substring({inner}, 1, length({inner}) - 1), ',', substring({rest}, 2))"
    return (
        f"CASE WHEN {' OR '.join(f'({each})' for each in misfits.values()) or 'false'} "
        f"THEN CASE WHEN {rest} IS NULL THEN {inner} ELSE {both} END ELSE {rest} END"
    )


def _is_misfit(column: TargetColumn, value: str, cast: str) -> str:
    longer = f" OR length({cast}) > {column.max_length}" if column.max_length is not None else ""
    return f"{value} IS NOT NULL AND ({cast} IS NULL{longer})"


def _bucket(mapping: RowMapping) -> list[str]:
    if mapping.keys is None:
        return []
    keys = [_stored(mapping, n) for n, column in enumerate(mapping.columns) if column.name in mapping.keys]
    return [f"CAST(pmod(xxhash64({', '.join(keys)}), {BUCKETS}) AS int) AS {BUCKET}" if keys else f"0 AS {BUCKET}"]


def _late(mapping: RowMapping, time: str, record: str) -> str:
    """WHEN … THEN …: a row behind the watermark of the bill before. Without a watermark none is."""
    if mapping.event is None:
        return ""
    is_late = f"WHEN {time} < {WATERMARK} THEN "
    if mapping.window_us is not None:
        size_us, slide_us = mapping.window_us
        is_late = f"WHEN {time} - pmod({time}, {slide_us}) + {size_us} <= {WATERMARK} THEN "
    if not mapping.keeps_late:
        return f"{is_late}encode('{LATE}', 'UTF-8') "
    shown = f"date_format(timestamp_micros({time}), 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    mark = f"date_format(timestamp_micros({WATERMARK}), 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    reason = f"concat('late: event time ', {shown}, ' is before the watermark ', {mark})"
    size = f"lpad(octet_length({reason}), {SIZE_DIGITS}, '0')"
    return f"{is_late}encode(concat('{LATE}', {size}, {reason}, {record}), 'UTF-8') "


def _micros(event: TargetColumn, cast: str) -> str:
    """Microseconds since 1970. A time without a zone counts as one of UTC, as the table formats have it."""
    if event.type == "date":
        return f"unix_date({cast}) * 86400000000"
    if event.type == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {cast})"
    return f"unix_micros({cast})"


def _event_checks(event: TargetColumn, value: str, cast: str) -> list[str]:
    """A row without event time is bad, also where values that do not fit become NULL: it belongs nowhere in time."""
    missing = f"column {_text(event.name)}: NULL, and it is the event time of the job"
    checks = [misfit(event, value, cast), f"WHEN {cast} IS NULL THEN '{missing}'"]
    if event.is_text:
        # Spark reads `12:00` as a time of today, which is another one tomorrow.
        begins, ends = f"column {_text(event.name)}: no date in \\'", "\\', and it is the event time of the job"
        told = f"concat('{begins}', substring({value}, 1, 100), '{ends}')"
        checks.insert(0, f"WHEN {value} IS NOT NULL AND NOT {value} RLIKE '^ *[+-]?[0-9]{{4}}' THEN {told}")
    return checks


def quoted(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _unread(mapping: RowMapping) -> dict[str, str]:
    """Columns that say why a row cannot be read: for WHERE, and for what fills the table."""
    found: dict[str, str] = {}
    if not mapping.strict:
        return found
    if mapping.where_unread:
        found["__undecided"] = _asked("__where", mapping.where_unread, only_null=mapping.where_tells_by_null)
    reasons = [
        _asked(_value(n), column.unread, only_null=column.tells_by_null)
        for n, column in enumerate(mapping.columns)
        if column.unread
    ]
    if reasons:
        found["__unread"] = f"coalesce({', '.join(reasons)}, NULL)"
    return found


def _asked(value: str, unread: str, *, only_null: bool) -> str:
    return f"CASE WHEN {value} IS NULL THEN {unread} END" if only_null else f"({unread})"


def misfit(column: TargetColumn, value: str, cast: str) -> str:
    """WHEN … THEN …: a value that is there and does not fit its column, and what is said about it."""
    shown = f"substring(cast({value} AS string), 1, 100)"
    reason = f"concat('column {_text(column.name)}: cannot read \\'', {shown}, '\\' as {column.type}')"
    return f"WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {reason}"


def cast_text(column: TargetColumn, value: str) -> str:
    """A value as its column has it; NULL for what does not fit."""
    cast = f"try_cast({value} AS {column.type})"
    if column.type in _TIMES and not column.is_text:
        # Spark's cast of a date that is no time raises, also where it only tries: `infinity` of many databases is one.
        text = f"try_cast(cast({value} AS string) AS {column.type})"
        return f"CASE WHEN typeof({value}) = 'date' THEN {text} ELSE {cast} END"
    if not column.is_text or column.type not in _INTEGERS:
        return cast
    number = f"try_cast({value} AS decimal(38,18))"
    return f"coalesce({cast}, try_cast(CASE WHEN {number} = floor({number}) THEN {number} END AS {column.type}))"


def _filled(mapping: RowMapping, number: int) -> str:
    return f"{_stored(mapping, number)} AS {quoted(mapping.columns[number].name)}"


def _stored(mapping: RowMapping, number: int) -> str:
    """A value as the table has it."""
    column, cast = mapping.columns[number], _cast(number)
    if mapping.rescued:
        if column.name == mapping.rescued:
            return "__rescued"
        return cast if column.max_length is None else f"CASE WHEN length({cast}) <= {column.max_length} THEN {cast} END"
    if column.max_length is not None and not mapping.strict:
        return f"substring({cast}, 1, {column.max_length})"
    return cast


def _checks(mapping: RowMapping, number: int) -> list[str]:
    column, value, cast = mapping.columns[number], _value(number), _cast(number)
    name = _text(column.name)
    checks = []
    # A key that cannot be read is not NULL: rows of different keys would be the same.
    if (mapping.strict and not mapping.rescued) or column.name in (mapping.keys or ()):
        checks.append(misfit(column, value, cast))
    if mapping.strict and not mapping.rescued and column.max_length is not None:
        longer = f"length({cast}) > {column.max_length}"
        checks.append(f"WHEN {longer} THEN 'column {name}: longer than {column.max_length} characters'")
    if not column.nullable:
        checks.append(f"WHEN {cast} IS NULL THEN 'column {name}: NULL in a column that is NOT NULL'")
    return checks


def _source(number: int) -> str:
    return f"__s{number}"


def _value(number: int) -> str:
    return f"__v{number}"


def _cast(number: int) -> str:
    return f"__c{number}"


def _text(text: str) -> str:
    """A text inside single quotes of Spark SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
