"""ADMIN COMPACT TABLE, OPTIMIZE, SHOW COMPACTION, and ALTER TABLE … SET ("compaction" = …)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from lading.errors import ConfigError, LadingError, TableError
from lading.service.installation import Installation
from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.service.views.compaction import (
    AUTO,
    OFF,
    PROPERTY,
    figures_of,
    loaded_tables,
    mode_key,
    name_of,
    policy_of,
)
from lading.sql.statements.compaction import AlterTableSet, CompactTable, ShowCompaction
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import CreateTable
from lading.store.records import TableEntry
from lading.tables.compaction.figures import TableFigures
from lading.tables.compaction.model import Compacted, CompactionPolicy
from lading.tables.compaction.run import compact_table, plan_compaction, planned

_COLUMNS = ("Table", "Partition", "Files", "Rows", "Bytes", "FilesAfter", "BytesAfter", "Result", "Remark")
_TABLE_COLUMNS = (
    "Table",
    "Compaction",
    "Partitions",
    "Files",
    "SmallFiles",
    "DueFiles",
    "Bytes",
    "LastCompaction",
    "LastFilesBefore",
    "LastFilesAfter",
    "Remark",
)
_PARTITION_COLUMNS = (
    "Partition",
    "Files",
    "SmallFiles",
    "DueFiles",
    "Rows",
    "Bytes",
    "LastCompaction",
    "LastFilesBefore",
    "LastFilesAfter",
)
_SHORT = "compaction"


def execute_compact(session: Session, statement: CompactTable) -> Result:
    """ADMIN COMPACT TABLE: all small files now, whatever their age and however few, also when compaction is OFF."""
    entry = _entry(session, statement.table)
    name = name_of(entry)
    policy = _by_hand(policy_of(session.lading.settings.compaction))
    lake = session.lading.catalog.open_table(entry.database, entry.name)
    groups, why_not = plan_compaction(lake, policy, session.lading.clock.now())
    if why_not:
        msg = f"Table {name} cannot be compacted: {why_not}"
        raise TableError(msg, left="Nothing was changed.", todo="See docs/compaction.md.")
    told: Iterator[Compacted] | Sequence[Compacted] = [planned(group) for group in groups]
    if not statement.dry_run:
        told = compact_table(lake, groups, policy, session.lading.clock)
    return table(_COLUMNS, [_row(name, each) for each in told])


def _by_hand(policy: CompactionPolicy) -> CompactionPolicy:
    return replace(policy, min_files=2, min_age=timedelta(0), budget_bytes=2**62, is_thorough=True)


def _row(name: str, each: Compacted) -> tuple[object, ...]:
    after = (each.files_after, each.bytes_after) if each.files_after else (None, None)
    return (name, each.partition, each.files, each.rows, each.bytes_before, *after, each.outcome, each.remark)


def show_compaction(session: Session, statement: ShowCompaction) -> Result:
    """SHOW COMPACTION: a line for each table that the user may see, or for each partition of one."""
    if statement.table is not None:
        return table(_PARTITION_COLUMNS, _partition_rows(look_at(session.lading, _entry(session, statement.table))))
    entries = [entry for entry in loaded_tables(session.lading) if session.sees_table(entry.database, entry.name)]
    rows: list[tuple[object, ...]] = []
    for entry in entries:
        try:
            rows.append(_table_row(look_at(session.lading, entry)))
        except LadingError as error:
            empty = (None,) * (len(_TABLE_COLUMNS) - 2)
            rows.append((name_of(entry), *empty, error.what))
    return table(_TABLE_COLUMNS, rows)


def look_at(lading: Installation, entry: TableEntry) -> TableFigures:
    """How the files of a table stand now. Reads its metadata."""
    lake = lading.catalog.open_table(entry.database, entry.name)
    return figures_of(lading, entry, lake, lake.live_files())


def _table_row(found: TableFigures) -> tuple[object, ...]:
    last = found.last
    return (
        found.table,
        found.mode,
        len(found.partitions),
        found.files,
        found.small,
        found.due,
        found.size_bytes,
        last.at if last else None,
        len(last.replaced) if last else None,
        len(last.added) if last else None,
        found.remark,
    )


def _partition_rows(found: TableFigures) -> list[tuple[object, ...]]:
    return [
        (
            each.partition,
            each.files,
            each.small,
            each.due,
            each.rows,
            each.size_bytes,
            each.last.at if each.last else None,
            len(each.last.replaced) if each.last else None,
            len(each.last.added) if each.last else None,
        )
        for each in found.partitions
    ]


def set_properties(session: Session, statement: AlterTableSet) -> Result:
    """ALTER TABLE … SET ("compaction" = "AUTO" | "OFF"). It is in force from the next round on."""
    entry = _entry(session, statement.table)
    for name, value in statement.properties.items():
        if name not in (_SHORT, PROPERTY):
            msg = f"Lading cannot set the property {name} of a table"
            raise ConfigError(
                msg, left="Nothing was changed.", todo='Set "compaction"; others with the table\'s own engine.'
            )
        mode = _mode(name, value)
        session.lading.store.write_setting(mode_key(entry.database, entry.name), mode)
    return done()


def check_property(statement: CreateTable) -> None:
    """Refuse a value that nobody would understand later."""
    if PROPERTY in statement.properties:
        _mode(PROPERTY, statement.properties[PROPERTY])


def _mode(name: str, value: str) -> str:
    if value.strip().upper() not in (AUTO, OFF):
        msg = f"{name} is {value!r}"
        raise ConfigError(msg, left="Nothing was changed.", todo=f"Write {AUTO} or {OFF}.")
    return value.strip().upper()


def _entry(session: Session, name: QualifiedName) -> TableEntry:
    return session.lading.catalog.require_table(name.within(session.database), name.name)
