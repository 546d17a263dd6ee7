"""One table in one catalog: asking the catalog for it, every time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.clock import Clock
from lading.errors import TableError
from lading.model.s3_access import S3Access
from lading.tables.iceberg.errors import translated

FORMAT_VERSION = 2


@runtime_checkable
class LendingCatalog(Protocol):
    """A catalog that may give keys for the files of its tables."""

    @property
    def lends_keys(self) -> bool: ...

    def fresh(self) -> S3Access:
        """How the files of the table that was loaded last are reached, with keys that are good for a while."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What the parts of an Iceberg table share."""

    catalog: Catalog
    identifier: str
    options: S3Access
    clock: Clock
    catalog_name: str = ""
    """Of a catalog that others keep, as Lading calls it. They look after its tables."""

    @property
    def what(self) -> str:
        """How messages name the table."""
        return f"table {self.catalog_name}.{self.identifier}" if self.catalog_name else f"table {self.identifier}"

    @property
    def lends_keys(self) -> bool:
        """Whether the catalog gives keys for the files, which end."""
        return isinstance(self.catalog, LendingCatalog) and self.catalog.lends_keys

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
        if version != FORMAT_VERSION:
            # Version 1 has no sequence numbers, by which a rollback is told; PyIceberg cannot write version 3 yet.
            msg = f"The Iceberg {self.what} has format version {version}; Lading writes version {FORMAT_VERSION}"
            raise TableError(
                msg, left="Nothing was changed.", todo="Upgrade a table of version 1; load into a copy of a newer one."
            )
        return table


def version_of(metadata: TableMetadata) -> int:
    """The sequence number of the current snapshot; 0 while there is none.

    No two snapshots of a table share one, so it also tells one rollback from another; the last sequence number the
    table has given out would not change with a rollback.
    """
    current = metadata.current_snapshot()
    return (current.sequence_number or 0) if current else 0
