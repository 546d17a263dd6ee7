"""What a statement asks for, checked and typed: the door from SQL to the rest of Lading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lading.errors import NotSupportedError, SqlError
from lading.model.load import ColumnSpec
from lading.sql.expressions.aggregates import check_window, split_windows
from lading.sql.expressions.mapping import SparkExpression, translate_expression
from lading.sql.properties.jobs import StreamingJobProperties, read_job_properties
from lading.sql.properties.routine import RoutineLoadProperties, read_routine_properties
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.joins import check_join, join_sides
from lading.sql.statements.parts import Expression, LoadClauses, MergeType, QualifiedName, SelectItem, SourceFunction
from lading.sql.statements.stream_joins import stream_join_spec
from lading.sql.syntax.names import check_job_name, check_routine_load_name
from lading.sql.syntax.spans import Span
from lading.sql.syntax.tokens import tokenize

_KEYED = "is only supported in unique tables, and Lading's tables have no unique key"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """A column that is read or made."""

    name: str | None
    """None: a SELECT gave it no name; its place says which column of the target it fills."""
    expression: SparkExpression | None = None
    """None: it is read from the source as it is. For a star: all columns of the source."""
    is_star: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJobDefinition:
    """What CREATE JOB asks for."""

    name: str
    table: QualifiedName
    target_columns: tuple[str, ...]
    """Columns of the target, in the order of `columns`. Empty: all of them, in the table's order."""
    columns: tuple[MappedColumn, ...]
    where: SparkExpression | None
    properties: StreamingJobProperties
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutineLoadDefinition:
    """What CREATE ROUTINE LOAD asks for."""

    name: QualifiedName
    table: str
    columns: tuple[MappedColumn, ...] | None
    """None: the columns of the table, by place for CSV and by name for JSON."""
    preceding_filter: SparkExpression | None
    where: SparkExpression | None
    properties: RoutineLoadProperties
    comment: str


@contextmanager
def placed(source: SourceFunction) -> Iterator[None]:
    """Say where in the text a wrong property stands, when the statement was read from a text."""
    try:
        yield
    except SqlError as error:
        if error.place is None and (place := _find_property(source.span, str(error.facts.get("property", "")))):
            error.place = place
            error.hint = "this property"
        raise


def _find_property(source: Span, name: str) -> Span | None:
    """The last property of that name up to the end of the source, which is the end of the statement's properties."""
    tokens = tokenize(source.text[: source.end])
    pairs = zip(tokens, tokens[1:], tokens[2:], strict=False)
    found = [
        Span(source.text, key.span.start, value.span.end)
        for key, sign, value in pairs
        if key.value.lower() == name.lower() and sign.is_symbol("=")
    ]
    return found[-1] if found else None


def define_streaming_job(statement: CreateJob) -> StreamingJobDefinition:
    """Check everything but the source, which its kind checks, and the table."""
    with placed(statement.insert.source):
        return _streaming_job(statement)


def _streaming_job(statement: CreateJob) -> StreamingJobDefinition:
    check_job_name(statement.name)
    insert = statement.insert
    properties = read_job_properties(statement.properties)
    strict = properties.session.enable_strict_cast
    check_join(insert, properties.dedup)
    stream_join_spec(insert, properties.watermark, properties.dedup)
    sides = join_sides(insert)
    if insert.group_by:
        window, results = split_windows(insert)
        check_window(window, properties.watermark, properties.dedup)
        columns = tuple(_result(column, strict) for column in results)
    else:
        columns = tuple(_selected(item, strict, insert.source_alias, sides) for item in insert.items)
    stars = sum(column.is_star for column in columns)
    if insert.columns and not stars and not insert.by_name and len(insert.columns) != len(columns):
        msg = (
            f"insert into cols should be corresponding to the query output: {len(insert.columns)} columns are named "
            f"and {len(columns)} are selected"
        )
        raise SqlError(msg, place=insert.table.span, hint="another number of columns")
    where = (
        translate_expression(insert.where, strict_cast=strict, source_alias=insert.source_alias, sides=sides)
        if insert.where
        else None
    )
    return StreamingJobDefinition(
        name=statement.name,
        table=insert.table,
        target_columns=insert.columns,
        columns=columns,
        where=where,
        properties=properties,
        comment=statement.comment or "",
    )


def _selected(item: SelectItem, strict: bool, alias: str | None, sides: tuple[str, ...]) -> MappedColumn:
    if item.is_star:
        owner = item.expression.text.removesuffix("*").rstrip(". ").strip("`")
        if owner and owner.lower() != (alias or "").lower():
            msg = f"{item.expression.text} are not columns of the source"
            raise NotSupportedError(msg, place=item.expression.span, hint="unknown source")
        return MappedColumn(name=None, is_star=True)
    made = translate_expression(item.expression, strict_cast=strict, source_alias=alias, sides=sides)
    return MappedColumn(name=item.alias or (made.columns[0] if made.is_column else None), expression=made)


def _result(column: ColumnSpec, strict: bool) -> MappedColumn:
    return MappedColumn(name=column.name, expression=translate_expression(column.expression or "", strict_cast=strict))


def define_routine_load(statement: CreateRoutineLoad) -> RoutineLoadDefinition:
    """Check everything but the source, which its kind checks, and the table."""
    with placed(statement.source):
        return _routine_load(statement)


def _routine_load(statement: CreateRoutineLoad) -> RoutineLoadDefinition:
    check_routine_load_name(statement.name.name, statement.name.span)
    check_merge_rules(statement)
    clauses = statement.clauses
    if statement.table is None:
        msg = "A routine load for many tables is not supported"
        raise NotSupportedError(msg, place=statement.name.span, hint="ON table is missing", todo="Write ON table.")
    properties = read_routine_properties(statement.properties, column_separator=clauses.column_separator)
    return RoutineLoadDefinition(
        name=statement.name,
        table=statement.table,
        columns=_columns(clauses),
        preceding_filter=_translated(clauses.preceding_filter),
        where=_translated(clauses.where),
        properties=properties,
        comment=statement.comment or "",
    )


def check_merge_rules(statement: CreateRoutineLoad) -> None:
    """Refuse what would change or remove rows, or pick partitions by name."""
    clauses = statement.clauses
    if statement.merge_type is MergeType.MERGE and clauses.delete_on is None:
        msg = "WITH MERGE needs a DELETE ON clause"
        raise NotSupportedError(msg, place=statement.name.span, hint="DELETE ON is missing")
    if statement.merge_type is not MergeType.MERGE and clauses.delete_on is not None:
        msg = f"WITH {statement.merge_type.value}: not support DELETE ON clause when load type is not MERGE"
        raise NotSupportedError(msg, place=clauses.delete_on.span, hint="only with MERGE")
    if statement.merge_type is not MergeType.APPEND:
        msg = f"WITH {statement.merge_type.value} {_KEYED}"
        raise NotSupportedError(msg, place=statement.name.span, hint="not supported")
    if clauses.order_by is not None:
        msg = f"ORDER BY {_KEYED}"
        raise NotSupportedError(msg, place=statement.name.span, hint="not supported")
    if clauses.partitions is not None:
        msg = f"Partition {clauses.partitions.names[0]} does not exist: lakehouse tables have no partitions with names"
        todo = "Leave PARTITION out, and choose rows with WHERE."
        raise NotSupportedError(msg, place=statement.name.span, hint="not supported", todo=todo)


def _columns(clauses: LoadClauses) -> tuple[MappedColumn, ...] | None:
    if clauses.columns is None:
        return None
    return tuple(MappedColumn(name=item.name, expression=_translated(item.expression)) for item in clauses.columns)


def _translated(expression: Expression | None) -> SparkExpression | None:
    return translate_expression(expression) if expression is not None else None
