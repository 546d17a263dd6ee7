"""From source columns to target columns, as Spark SQL, so that every row keeps its fate.

Nothing is filtered away on the way to the writer: what is to be said about a row stands in one column of notes, because
the writer counts every row and knows the end of its split even when no row is loaded. A row that is to be loaded has no
note, so that notes cost next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

FILE, ROW, RAW, ERROR = "__file", "__row", "__raw", "__error"
"""What a reader puts beside each row: where it is from; and the bytes and the reason, for what it could not read."""
NOTE = "__note"
"""What Spark carries instead: null, or one letter for what the row is, and then what is to be said."""
PLACE, END, BAD, UNSELECTED = "P", "E", "B", "U"
"""PLACE and END are no rows of the source: where the rows that follow are from, and the end of a split. BAD is followed
by the size of the reason, the reason and the record."""
SIZE_DIGITS = 9


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
    checks_cast: bool | None = None
    """Whether a value that does not fit makes a bad row, for this column alone. None: as `strict` of the mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMapping:
    """What a job does to a row."""

    columns: tuple[TargetColumn, ...]
    where: str | None = None
    """Spark SQL over the source columns."""
    strict: bool = True
    """A value that does not fit its column makes a bad row; else it becomes NULL, or is cut when it is too long."""


def select_lists(mapping: RowMapping, source_columns: tuple[str, ...]) -> tuple[list[str], ...]:
    """SELECT lists, each over the one before and the first over the source.

    What is used twice gets a list of its own, because Spark then computes it once: values, casts, reasons, notes. The
    record as JSON is used in one place only, behind a condition: it is not computed for good rows.
    """
    numbers = range(len(mapping.columns))
    kept = [_source(n) for n in range(len(source_columns))]
    where = f"coalesce(({mapping.where}), false)" if mapping.where else "true"
    values = [
        *(f"{quoted(name)} AS {_source(n)}" for n, name in enumerate(source_columns)),
        *(f"({column.expression or 'NULL'}) AS {_value(n)}" for n, column in enumerate(mapping.columns)),
        f"{where} AS __selected",
        NOTE,
    ]
    casts = [
        *kept,
        *(_value(n) for n in numbers),
        *(f"try_cast({_value(n)} AS {column.type}) AS {_cast(n)}" for n, column in enumerate(mapping.columns)),
        "__selected",
        NOTE,
    ]
    checks = [check for n in numbers for check in _checks(mapping, n)]
    # A row that WHERE leaves out is unselected, whatever else is wrong with it; one that cannot be read is bad.
    is_settled = f"{NOTE} IS NOT NULL OR NOT __selected"
    reason = f"CASE WHEN {is_settled} THEN NULL {' '.join(checks)} END" if checks else "CAST(NULL AS string)"
    reasons = [*kept, *(_cast(n) for n in numbers), "__selected", f"{reason} AS __reason", NOTE]
    shown = ", ".join(f"'{_text(name)}', {_source(n)}" for n, name in enumerate(source_columns))
    record = f"to_json(named_struct({shown}))" if shown else "''"
    size = f"lpad(octet_length(__reason), {SIZE_DIGITS}, '0')"
    note = (
        f"CASE WHEN {NOTE} IS NOT NULL THEN {NOTE} WHEN NOT __selected THEN encode('{UNSELECTED}', 'UTF-8') "
        f"WHEN __reason IS NOT NULL THEN encode(concat('{BAD}', {size}, __reason, {record}), 'UTF-8') END"
    )
    return values, casts, reasons, [*(_filled(mapping, n) for n in numbers), f"{note} AS {NOTE}"]


def quoted(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _filled(mapping: RowMapping, number: int) -> str:
    column, cast = mapping.columns[number], _cast(number)
    if column.max_length is not None and not mapping.strict:
        cast = f"substring({cast}, 1, {column.max_length})"
    return f"{cast} AS {quoted(column.name)}"


def _checks(mapping: RowMapping, number: int) -> list[str]:
    column, value, cast = mapping.columns[number], _value(number), _cast(number)
    name = _text(column.name)
    checks = []
    if mapping.strict if column.checks_cast is None else column.checks_cast:
        shown = f"substring(cast({value} AS string), 1, 100)"
        reason = f"concat('column {name}: cannot read \\'', {shown}, '\\' as {column.type}')"
        checks.append(f"WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {reason}")
    if mapping.strict and column.max_length is not None:
        longer = f"length({cast}) > {column.max_length}"
        checks.append(f"WHEN {longer} THEN 'column {name}: longer than {column.max_length} letters'")
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
