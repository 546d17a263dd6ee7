"""ADMIN COMPACT TABLE, OPTIMIZE, SHOW COMPACTION and ALTER TABLE … SET: the records and their parsers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.cursor import Cursor

_TABLE = "the name of a table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTable:
    """ADMIN COMPACT TABLE [db.]table [DRY RUN], or OPTIMIZE [TABLE] [db.]table [DRY RUN]"""

    table: QualifiedName
    dry_run: bool = False
    """Only tell what would be compacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCompaction:
    """SHOW COMPACTION [FROM [db.]table]"""

    table: QualifiedName | None = None
    """None: one line for each table. A table: one line for each partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTableSet:
    """ALTER TABLE [db.]table SET [TBLPROPERTIES] ("name" = "value", …)"""

    table: QualifiedName
    properties: Mapping[str, str] = field(default_factory=dict)


def parse_compact_table(cursor: Cursor) -> CompactTable:
    """ADMIN COMPACT TABLE [db.]table [DRY RUN]"""
    cursor.expect("ADMIN", "COMPACT", "TABLE")
    return CompactTable(table=cursor.qualified(_TABLE), dry_run=cursor.accept("DRY", "RUN"))


def parse_optimize(cursor: Cursor) -> CompactTable:
    """OPTIMIZE [TABLE] [db.]table [DRY RUN]"""
    cursor.expect("OPTIMIZE")
    cursor.accept("TABLE")
    return CompactTable(table=cursor.qualified(_TABLE), dry_run=cursor.accept("DRY", "RUN"))


def parse_show_compaction(cursor: Cursor) -> ShowCompaction:
    """SHOW COMPACTION [FROM [db.]table]"""
    cursor.expect("SHOW", "COMPACTION")
    has_table = cursor.accept("FROM") or cursor.accept("IN")
    return ShowCompaction(table=cursor.qualified(_TABLE) if has_table else None)
