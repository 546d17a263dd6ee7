"""Whether Lading compacts a table, by which limits, and how its files stand."""

from __future__ import annotations

from datetime import timedelta

from lading.model.names import is_external, split_table
from lading.service.installation import Installation
from lading.settings import CompactionSettings
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.compaction.figures import TableFigures, count_files
from lading.tables.compaction.model import MIB, CompactionPolicy, LiveFiles
from lading.tables.compaction.notes import read_notes

AUTO, OFF = "AUTO", "OFF"
PROPERTY = "lading.compaction"
"""As CREATE TABLE … TBLPROPERTIES writes it; ALTER TABLE … SET takes `compaction`, too."""
_NOTES = 50


def policy_of(settings: CompactionSettings) -> CompactionPolicy:
    """What the settings of the installation say."""
    return CompactionPolicy(
        small_bytes=settings.compaction_small_mb * MIB,
        target_bytes=settings.compaction_target_mb * MIB,
        min_files=settings.compaction_min_files,
        min_age=timedelta(seconds=settings.compaction_min_age_seconds),
        budget_bytes=settings.compaction_budget_mb * MIB,
    )


def loaded_tables(lading: Installation) -> list[TableEntry]:
    """The tables of the installation, and those of other catalogs that jobs load into."""
    targets = {stored.record.target for stored in lading.store.list_jobs()}
    others = [split_table(target) for target in sorted(targets) if is_external(split_table(target)[0])]
    return [*lading.store.list_tables(), *(lading.catalog.entry(*place) for place in others)]


def name_of(entry: TableEntry) -> str:
    """The whole name of a table."""
    return f"{entry.database}.{entry.name}"


def mode_key(database: str, name: str) -> str:
    """Where the store keeps what ALTER TABLE said."""
    return f"compaction/{database}.{name}"


def mode_of(lading: Installation, entry: TableEntry) -> str:
    """What ALTER TABLE said, else what CREATE TABLE said; else AUTO for a table that Lading made, OFF for another."""
    said = lading.store.read_setting(mode_key(entry.database, entry.name))
    if not said and entry.spec is not None:
        said = entry.spec.properties.get(PROPERTY, "").upper()
    if said in (AUTO, OFF):
        return said
    return OFF if entry.is_adopted or entry.spec is None else AUTO


def figures_of(lading: Installation, entry: TableEntry, table: LakeTable, live: LiveFiles) -> TableFigures:
    """From what the table was just asked."""
    notes = read_notes(table.bills.storage, newest=_NOTES)
    return count_files(
        name_of(entry), mode_of(lading, entry), live, notes, policy_of(lading.settings.compaction), lading.clock.now()
    )
