"""Parts of statements to text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lading.model.load import SourceSpec
from lading.model.pairs import single_sources
from lading.sql.statements.parts import (
    ColumnMapping,
    InsertSelect,
    LoadClauses,
    QualifiedName,
    SelectItem,
    SourceFunction,
)
from lading.sql.syntax.tokens import quote_string

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_WORDS = """
ALL ALTER AND ANTI AS ASC BETWEEN BY CASE CAST COLUMNS COMMENT CREATE CROSS DELETE DESC DESCRIBE DISTINCT DO DROP
ELSE END EXCEPT EXISTS EXPLAIN FALSE FOR FROM FULL GROUP HAVING IF IN INNER INSERT INTERSECT INTERVAL INTO IS JOB
JOIN LATERAL LEFT LIKE LIMIT LOAD MINUS NATURAL NOT NULL OFFSET ON OR ORDER OUTER PARTITION PARTITIONS PRECEDING
PROPERTIES QUALIFY REGEXP RIGHT RLIKE ROUTINE SELECT SEMI SHOW SORT TABLE TABLES TASK TEMPORARY THEN TO TRUE
UNION USE USING VALUES WHEN WHERE WINDOW WITH XOR
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def quoted_name(name: str) -> str:
    """A name, in backquotes when it would not be read as a name without them."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def name_text(name: QualifiedName) -> str:
    """[[catalog.]db.]name"""
    return ".".join(quoted_name(part) for part in (name.catalog, name.db, name.name) if part is not None)


def comment_text(comment: str) -> str:
    """COMMENT '…'"""
    return f"COMMENT {quote_string(comment, chr(39))}"


def properties_text(properties: Mapping[str, str]) -> str:
    """( "key" = "value", … )"""
    if not properties:
        return "()"
    pairs = ",\n".join(f"    {quote_string(key)} = {quote_string(value)}" for key, value in properties.items())
    return f"(\n{pairs}\n)"


def function_text(function: SourceFunction) -> str:
    """KAFKA (…)"""
    return f"{quoted_name(function.name)} {properties_text(function.properties)}"


def single_functions(function: SourceFunction) -> tuple[SourceFunction, ...]:
    """Both sources of a pair; another source alone."""
    source = SourceSpec(kind=function.name, properties=function.properties)
    return tuple(SourceFunction(name=each.kind, properties=each.properties) for each in single_sources(source).values())


def routine_clauses(clauses: LoadClauses) -> list[str]:
    """The clauses of a routine load, one on each line, with commas between them."""
    found: list[str] = []
    if clauses.column_separator is not None:
        found.append(f"COLUMNS TERMINATED BY {quote_string(clauses.column_separator)}")
    if clauses.columns is not None:
        found.append(f"COLUMNS ({', '.join(_mapping(item) for item in clauses.columns)})")
    if clauses.preceding_filter is not None:
        found.append(f"PRECEDING FILTER {clauses.preceding_filter.text}")
    if clauses.where is not None:
        found.append(f"WHERE {clauses.where.text}")
    if clauses.delete_on is not None:
        found.append(f"DELETE ON {clauses.delete_on.text}")
    if clauses.order_by is not None:
        found.append(f"ORDER BY {quoted_name(clauses.order_by)}")
    if clauses.partitions is not None:
        word = "TEMPORARY PARTITIONS" if clauses.partitions.temporary else "PARTITIONS"
        found.append(f"{word} ({', '.join(quoted_name(name) for name in clauses.partitions.names)})")
    return [*(f"{line}," for line in found[:-1]), *found[-1:]]


def _mapping(item: ColumnMapping) -> str:
    name = quoted_name(item.name)
    return f"{name} = {item.expression.text}" if item.expression is not None else name


def insert_text(insert: InsertSelect) -> str:
    """INSERT INTO t (columns) [BY NAME] SELECT … FROM source (…) WHERE …"""
    columns = f" ({', '.join(quoted_name(name) for name in insert.columns)})" if insert.columns else ""
    alias = f" AS {quoted_name(insert.source_alias)}" if insert.source_alias is not None else ""
    first, *others = single_functions(insert.source)
    lines = [
        f"INSERT INTO {name_text(insert.table)}{columns}{' BY NAME' if insert.by_name else ''}",
        f"SELECT {', '.join(_item(item) for item in insert.items)}",
        f"FROM {function_text(first)}{alias}",
    ]
    if (join := insert.stream_join) is not None:
        word = "LEFT JOIN" if join.is_left else "JOIN"
        lines.append(f"{word} {function_text(others[0])} AS {quoted_name(join.alias)} ON {join.on.text}")
    if insert.join is not None:
        word, name = "LEFT JOIN" if insert.join.is_left else "JOIN", name_text(insert.join.table)
        lines.append(f"{word} {name} AS {quoted_name(insert.join.alias)} ON {insert.join.on.text}")
    if insert.where is not None:
        lines.append(f"WHERE {insert.where.text}")
    if insert.group_by:
        lines.append(f"GROUP BY {', '.join(key.text for key in insert.group_by)}")
    if insert.having is not None:
        lines.append(f"HAVING {insert.having.text}")
    return "\n".join(lines)


def _item(item: SelectItem) -> str:
    return f"{item.expression.text} AS {quoted_name(item.alias)}" if item.alias is not None else item.expression.text
