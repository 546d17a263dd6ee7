"""From source columns to target columns, as Spark SQL, so that every row keeps its fate.

Nothing is filtered away on the way to the writer: WHERE becomes a boolean column and what cannot be loaded becomes an
error column, because the writer counts every row and knows the end of its split even when no row is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

SELECTED, ERROR, FILE, ROW, RAW, END = "__selected", "__error", "__file", "__row", "__raw", "__end"
HIDDEN = (SELECTED, ERROR, FILE, ROW, RAW, END)


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


def first_stage(mapping: RowMapping, source_columns: tuple[str, ...]) -> list[str]:
    """SELECT list over the source: values, the filter, and the hidden columns passed on."""
    values = [f"({column.expression or 'NULL'}) AS {_value(n)}" for n, column in enumerate(mapping.columns)]
    where = f"coalesce(({mapping.where}), false)" if mapping.where else "true"
    shown = ", ".join(f"'{_text(name)}', {quoted(name)}" for name in source_columns)
    source = f"to_json(named_struct({shown}))" if shown else "''"
    return [*values, f"{where} AS {SELECTED}", f"{source} AS __source", ERROR, FILE, ROW, RAW, END]


def second_stage(mapping: RowMapping) -> list[str]:
    """SELECT list over the first stage: target columns, the fate, and the raw text of bad rows only."""
    columns = [f"{_cast(mapping, n)} AS {quoted(column.name)}" for n, column in enumerate(mapping.columns)]
    checks = [check for n in range(len(mapping.columns)) for check in _checks(mapping, n)]
    reason = f"CASE WHEN {ERROR} IS NOT NULL THEN {ERROR} {' '.join(checks)} END"
    # A row that WHERE leaves out is unselected, whatever else is wrong with it; one that cannot be parsed is bad.
    fate = f"CASE WHEN {END} IS NOT NULL THEN NULL WHEN {ERROR} IS NULL AND NOT {SELECTED} THEN NULL ELSE {reason} END"
    return [
        *columns,
        SELECTED,
        f"{fate} AS {ERROR}",
        FILE,
        ROW,
        f"CASE WHEN ({fate}) IS NOT NULL THEN coalesce({RAW}, encode(__source, 'UTF-8')) END AS {RAW}",
        END,
    ]


def quoted(name: str) -> str:
    """A column name in Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _cast(mapping: RowMapping, number: int) -> str:
    column = mapping.columns[number]
    cast = f"try_cast({_value(number)} AS {column.type})"
    if column.max_length is not None and not mapping.strict:
        return f"substring({cast}, 1, {column.max_length})"
    return cast


def _checks(mapping: RowMapping, number: int) -> list[str]:
    column, value = mapping.columns[number], _value(number)
    cast = f"try_cast({value} AS {column.type})"
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


def _value(number: int) -> str:
    return f"__v{number}"


def _text(text: str) -> str:
    """A text inside single quotes of Spark SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
