"""What a table format is to the rest of the system: one object, with its laws at each method.

A new format is a folder with a module `kind` that holds one of these as `KIND`, and a line in `registry`. Nothing
outside the folder asks which format a table has: what differs between formats is asked of the kind, or of the
`LakeTable` that it opens (rows and files for SELECT, schema, heads, care).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lading.errors import ConfigError
from lading.ids import JobId
from lading.model.bill import Head
from lading.model.catalog import CatalogAccess
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore
from lading.tables.base import LakeTable, Writer, WriterSpec
from lading.tables.bills import StoredBills

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """A table by its name and by its place. A format uses what it needs to find it."""

    home: Path
    """The home folder of the service, where a catalog of its own may be."""
    name: str
    """database.table, or catalog.database.table."""
    location: str
    options: S3Access = S3Access()
    is_adopted: bool = False
    """Others made the table and look after it: Lading looks after its own bills alone."""
    catalog: CatalogAccess | None = None
    """The catalog of others that has the table; then the first part of the name is the name of the catalog."""
    catalog_url: str = field(default="", repr=False)
    """A database that several services share, for formats that need a catalog. Empty: it is in the home."""


class TableSight(Protocol):
    """What can be read of a table, whether a catalog knows it or not."""

    @property
    def bills(self) -> StoredBills: ...

    def read_head(self, job_id: JobId) -> Head | None: ...

    def job_ids(self) -> set[JobId]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table that was found by its place."""

    sight: TableSight
    give_back: Callable[[], None] | None = None
    """Set when the catalog has forgotten the table: has the catalog name it again."""
    notes: tuple[str, ...] = ()
    """For people: what was found out on the way."""


class TableKind(Protocol):
    """One table format.

    Law: importing the kind is cheap and needs no library of the format; each method imports what it needs.
    """

    @property
    def name(self) -> str:
        """As USING writes it, in small letters. It is kept in stores and beside tables: it never changes."""
        ...

    @property
    def title(self) -> str:
        """As people write it."""
        ...

    @property
    def folder(self) -> str:
        """The folder that every table of this format has and no table of another format has."""
        ...

    @property
    def marker(self) -> str:
        """A regular expression of keys in that folder which only a table has, whatever else lies in such folders."""
        ...

    @property
    def catalog(self) -> str:
        """The name of the catalog that its tables are kept in; empty for tables that are found by their place."""
        ...

    @property
    def empty_partition_is_null(self) -> bool:
        """Whether a table cannot tell an empty text from NULL in a partition column."""
        ...

    @property
    def libraries(self) -> Collection[str]:
        """What its writer imports beside pyarrow: an executor that lacks one is refused."""
        ...

    def missing(self) -> str:
        """Which optional library is not installed; empty when the format can be used.

        Without it `create`, `open` and `find` raise ConfigError and name it; `drop` and the writer do without.
        """
        ...

    def check_new(self, place: TablePlace) -> None:
        """Refuse a place in the warehouse that has a table which a lost catalog has forgotten.

        Raises ConflictError. Changes nothing. To make the table again beside its old files would load all twice.
        """
        ...

    def create(self, place: TablePlace, spec: TableSpec) -> None:
        """Make an empty table.

        Killed at any moment, it leaves no table or a whole one, and may be called again. Raises ConflictError when
        one is there, and changes nothing then; ConfigError when the format cannot do what the spec says.
        """
        ...

    def open(self, place: TablePlace) -> LakeTable:
        """Open a table that is there. Makes nothing, not even an empty catalog."""
        ...

    def drop(self, place: TablePlace) -> None:
        """Have the catalog forget a table. Its files stay: the owner of the place deletes them."""
        ...

    def shares_files(self, place: TablePlace) -> bool:
        """Whether the table says that its files may be those of other tables, too. Not when it cannot be read."""
        ...

    def purge(self, place: TablePlace) -> None:
        """Delete the files of a table, and no others, wherever it is. The files that tell of it go last.

        Killed in between, it may be called again. Raises TableError when it cannot be told which files are its own.
        """
        ...

    def find(self, place: TablePlace) -> AbstractContextManager[FoundTable]:
        """A table that may have no name here any more. Changes nothing, and makes no catalog.

        Raises ConfigError when the catalog has the table of that name at another place.
        """
        ...

    def check_owned(self, storage: ObjectStore) -> None:
        """Refuse a table outside the warehouse that another catalog keeps: it would have two owners."""
        ...

    def schema_of(self, spec: TableSpec) -> pa.Schema:
        """The schema of a table that `create` makes from this spec."""
        ...

    def read_elsewhere(self, name: str, location: str) -> Mapping[str, str]:
        """A few lines for each engine that reads a table of this name at this place, for people to copy."""
        ...

    def open_writer(self, spec: WriterSpec, attempt: str) -> Writer:
        """A writer of staged files, in an executor: imports little. No two attempts write files of one name."""
        ...


def refuse_purge(title: str, place: TablePlace) -> ConfigError:
    """Of formats whose files are deleted by their own engines, or by nobody."""
    msg = f"PURGE is not supported for the {title} table {place.name}: its files are at {place.location}"
    return ConfigError(msg, left="Nothing was changed.", todo="DROP it without PURGE, and delete its files yourself.")
