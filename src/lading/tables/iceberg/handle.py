"""One table in one catalog: asking the catalog for it, every time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.clock import Clock
from lading.errors import TableError
from lading.ids import JobId
from lading.model.bill import Head
from lading.model.s3_access import S3Access
from lading.storage.renewed import KeySource
from lading.tables.iceberg.ancestry import OlderStates
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.heads import Anchor

FORMAT_VERSION = 2
"""What CREATE TABLE makes."""
WRITTEN_VERSIONS = (2, 3)


@runtime_checkable
class LendingCatalog(Protocol):
    """A catalog that may give keys for the files of its tables."""

    @property
    def lends_keys(self) -> bool: ...

    def fresh(self) -> S3Access:
        """How the files of the table that was loaded last are reached, with keys that are good for a while."""
        ...

    def keys_of(self, identifier: str) -> KeySource:
        """The same for one table, here and in other processes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What the parts of an Iceberg table share."""

    catalog: Catalog
    identifier: str
    options: S3Access
    clock: Clock
    older: OlderStates = field(default_factory=OlderStates)
    catalog_name: str = ""
    """Of a catalog that others keep, as Lading calls it. They look after its tables."""

    @property
    def what(self) -> str:
        """How messages name the table."""
        return f"table {self.catalog_name}.{self.identifier}" if self.catalog_name else f"table {self.identifier}"

    @property
    def keys(self) -> KeySource | None:
        """Where the catalog gives keys for the files, which end."""
        if isinstance(self.catalog, LendingCatalog) and self.catalog.lends_keys:
            return self.catalog.keys_of(self.identifier)
        return None

    @property
    def access(self) -> S3Access:
        """How the files are reached now."""
        if not isinstance(self.catalog, LendingCatalog):
            return self.options
        with translated(self.what):
            return self.catalog.fresh()

    def load(self) -> Table:
        """The table as the catalog has it now, never as it was remembered."""
        with translated(self.what):
            table = self.catalog.load_table(self.identifier)
        version = table.metadata.format_version
        if version not in WRITTEN_VERSIONS:
            # Version 1 has no sequence numbers, by which a rollback is told.
            msg = f"The Iceberg {self.what} has format version {version}; Lading writes versions 2 and 3"
            todo = "Upgrade it: ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2') rewrites no file."
            raise TableError(msg, left="Nothing was changed.", todo=todo)
        return table

    def is_astray(self, table: Table, anchor: Anchor) -> bool:
        """Whether the table was rolled back behind a head."""
        with translated(self.what):
            return self.older.is_astray(table.metadata, table.io, anchor)

    def end_of(self, table: Table, job_id: JobId) -> Head | None:
        """The newest commit of a job that is part of the table. Raises HeadLostError."""
        with translated(self.what):
            return self.older.end_of(table.metadata, table.io, job_id)


def version_of(metadata: TableMetadata) -> int:
    """The sequence number of the current snapshot; 0 while there is none.

    No two snapshots of a table share one, so it also tells one rollback from another; the last sequence number the
    table has given out would not change with a rollback.
    """
    current = metadata.current_snapshot()
    return (current.sequence_number or 0) if current else 0
