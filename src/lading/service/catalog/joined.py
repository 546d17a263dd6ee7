"""A table that a job joins its rows with: which snapshot it has, and the files of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from lading.errors import ConfigError, SourceError, StageError, TableNotFoundError
from lading.model.joined import JoinedTable
from lading.model.names import split_table
from lading.pipeline.environment import cloud_identity, without_identity
from lading.pipeline.remote import RemoteFiles
from lading.service.catalog.tables import TableCatalog
from lading.service.security.privileges import Rights
from lading.settings import environment
from lading.sql.statements.users import Privilege
from lading.storage.store import StoragePlace, open_store
from lading.tables.base import LakeTable, Snapshot

_LEFT = "Nothing was read or committed; the position is unchanged."


class CatalogJoin:
    """The table of a name, for the owner of a job. Everything is asked of the table itself, each time."""

    def __init__(self, catalog: TableCatalog, name: str, rights: Callable[[], Rights | None]) -> None:
        self._catalog = catalog
        self._name = name
        self._database, self._table = split_table(name)
        self._rights = rights

    def schema(self) -> pa.Schema:
        return self._open().schema()

    def newest(self) -> tuple[JoinedTable, ...]:
        lake = self._open()
        return (JoinedTable(table=self._name, incarnation=self._incarnation(), snapshot=lake.snapshot_name()),)

    def can_read(self, joined: Sequence[JoinedTable]) -> bool:
        """Also whether each file is there: VACUUM removes files of versions that the log still has."""
        lake = self._open()
        for each in joined:
            found = self._snapshot(lake, each)
            if found is None:
                return False
            store = open_store(lake.location, self._catalog.storage_options(self._database, self._table))
            if found.files and not set(found.files) <= set(store.keys("")):
                return False
        return True

    def open(self, joined: JoinedTable, columns: pa.Schema) -> RemoteFiles:
        lake = self._open()
        found = self._snapshot(lake, joined)
        if found is None:
            msg = f"Snapshot {joined.snapshot} of {joined.table}, which the job joins with, is gone"
            # Not for a person: the next attempt names a newer one.
            raise StageError(msg, left=_LEFT, todo="The next attempt takes a newer one.")
        self._check_columns(found, columns)
        root = lake.location.removeprefix("file://")
        access = self._catalog.storage_options(self._database, self._table)
        is_here = Path(root).is_dir()
        lent = {} if is_here else cloud_identity(environment())
        return RemoteFiles(
            place=StoragePlace(uri=root if is_here else lake.location, access=None if is_here else access),
            files=found.files,
            schema=pa.schema([found.schema.field(field.name) for field in columns]),
            constants=found.constants,
            size_bytes=found.size_bytes,
            identity=without_identity(lent) if access.access_key else lent,
        )

    def _check_columns(self, found: Snapshot, columns: pa.Schema) -> None:
        for field in columns:
            if field.name not in found.schema.names:
                what = f"has no column {field.name} any more"
            elif found.schema.field(field.name).type != field.type:
                what = f"has a column {field.name} of another type than before"
            else:
                continue
            msg = f"The job joins with {self._name}, which {what}"
            raise SourceError(msg, left=_LEFT, todo="ALTER the job, or change the table back; then RESUME the job.")

    def _snapshot(self, lake: LakeTable, joined: JoinedTable) -> Snapshot | None:
        if joined.table != self._name or joined.incarnation != self._incarnation():
            return None
        return lake.snapshot_named(joined.snapshot)

    def _open(self) -> LakeTable:
        rights = self._rights()
        if rights is not None:
            rights.require(Privilege.SELECT, self._database, self._table)
        try:
            return self._catalog.open_table(self._database, self._table)
        except TableNotFoundError as error:
            msg = f"The job joins with {self._name}, and this table is gone"
            todo = "Create it again, or ALTER the job so that it does not need it; then RESUME the job."
            raise ConfigError(msg, left=_LEFT, todo=todo) from error

    def _incarnation(self) -> str:
        return self._catalog.incarnation(self._database, self._table)
