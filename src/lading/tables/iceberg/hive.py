"""A Hive metastore: a commit holds its lock, and names the state that it replaces.

Other engines rely on the lock, so Lading takes it. A lock that nobody renews ends after some minutes, and a process
that slept in between would write over what others committed. So the change names the metadata file that it replaces,
too, which metastores since 2.3.10, 3.1.4 and 4.0 compare in their own database (HIVE-26882); older ones do not look at
it, and for those a change that comes late is not sent at all.

The commit is not PyIceberg's: that one names nothing, and writes over how Hive reads the table (its input format and
serializer), which belongs to who made it.
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hive_metastore.ttypes import (
    CheckLockRequest,
    EnvironmentContext,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    NoSuchObjectException,
    UnlockRequest,
)
from pyiceberg.catalog import LOCATION, MetastoreCatalog
from pyiceberg.catalog.hive import HiveCatalog, _construct_hive_storage_descriptor
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from thrift.Thrift import TException

from lading.clock import Clock, SystemClock
from lading.model.catalog import CatalogAccess
from lading.tables.iceberg.errors import CatalogAnswerError
from lading.tables.iceberg.hive_client import Connections, MetastoreClient

_LOCK_HOLDS_S = 60.0
"""Metastores keep a lock for five minutes; this leaves room for clocks and for the change itself."""
_LOCK_WAIT_S = 15.0
_PLACE, _PLACE_BEFORE = "metadata_location", "previous_metadata_location"
_MODIFIED = "The table has been modified"
_OWN = "lading."
_FIGURES = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
"""What Iceberg on the JVM copies from the summary of the newest snapshot, for Hive."""


class LockedHive(HiveCatalog):
    """PyIceberg's catalog with connections and commits of Lading's own."""

    def __init__(self, access: CatalogAccess, files: Mapping[str, str], clock: Clock | None = None) -> None:
        super().__init__(access.name, **access.properties, **files)
        self._clock = clock or SystemClock()
        self._client = Connections(access.properties["uri"].split(","), access.storage.addresses)

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> Any:
        del properties  # The rules for addresses are not in them.

    @staticmethod
    def identifier_to_database(identifier: Any, err: Any = NoSuchNamespaceError) -> str:
        del err  # PyIceberg's are of Python's own when something is made.
        (database,) = _plain(HiveCatalog.identifier_to_tuple(identifier), 1, NoSuchNamespaceError)
        return database

    @staticmethod
    def identifier_to_database_and_table(identifier: Any, err: Any = NoSuchTableError) -> tuple[str, str]:
        del err
        database, name = _plain(HiveCatalog.identifier_to_tuple(identifier), 2, NoSuchTableError)
        return database, name

    def _convert_hive_into_iceberg(self, table: Any) -> Table:
        if (table.parameters or {}).get("table_type", "").lower() != "iceberg":
            msg = f"{table.dbName}.{table.tableName} is a table of another kind"
            raise NoSuchIcebergTableError(msg)
        return super()._convert_hive_into_iceberg(table)

    def create_namespace(self, namespace: Any, properties: Mapping[str, str] | None = None) -> None:
        """In the warehouse of the catalog, as Iceberg on the JVM does. A metastore's own place may be another one."""
        said = dict(properties or {})
        if warehouse := self.properties.get("warehouse", "").rstrip("/"):
            said.setdefault(LOCATION, f"{warehouse}/{self.identifier_to_database(namespace)}.db")
        super().create_namespace(namespace, said)

    def purge_table(self, identifier: Any) -> None:
        MetastoreCatalog.purge_table(self, identifier)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Change a table that is there, under its lock.

        Dies before the change is sent: a metadata file that nobody names, and a lock that the metastore ends after some
        minutes. Raises CommitFailedException and NoSuchTableError when the change is certainly not made; after anything
        else it may be.
        """
        database, name = self.identifier_to_database_and_table(table.name(), NoSuchTableError)
        part = LockComponent(
            level=LockLevel.TABLE, type=LockType.EXCLUSIVE, dbname=database, tablename=name, isTransactional=True
        )
        with self._client as client:
            asked_at_s = self._clock.passed_s()
            lock = client.lock(LockRequest(component=[part], user=getpass.getuser(), hostname=socket.gethostname()))
            # No context manager of contextlib around this: it writes to exceptions, and Thrift's cannot be written to.
            try:
                self._wait_until_held(client, lock.lockid, lock.state, asked_at_s)
                known = self._get_hive_table(client, database, name)
                return self._replace(client, known, asked_at_s, requirements, updates)
            finally:
                self._unlock(client, lock.lockid)

    def _replace(
        self, client: MetastoreClient, known: Any, asked_at_s: float, requirements: Any, updates: Any
    ) -> CommitTableResponse:
        current = self._convert_hive_into_iceberg(known)
        staged = self._update_and_stage_table(current, current.name(), requirements, updates)
        if staged.metadata != current.metadata:
            self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
            _describe(known, current, staged)
            if self._clock.passed_s() - asked_at_s > _LOCK_HOLDS_S:
                msg = "The lock of the metastore may have ended: nothing was sent"
                raise CommitFailedException(msg)
            _alter(client, known, current.metadata_location)
        return CommitTableResponse(metadata=staged.metadata, **{"metadata-location": staged.metadata_location})

    def _wait_until_held(self, client: MetastoreClient, lock_id: int, state: int, asked_at_s: float) -> None:
        wait_s = 0.02
        while state == LockState.WAITING and self._clock.passed_s() - asked_at_s < _LOCK_WAIT_S:
            self._clock.sleep(wait_s)
            wait_s = min(wait_s * 1.5, 1.0)
            state = client.check_lock(CheckLockRequest(lockid=lock_id)).state
        if state != LockState.ACQUIRED:
            msg = f"another writer holds the lock of the table (state {state})"
            raise CommitFailedException(msg)

    def _unlock(self, client: MetastoreClient, lock_id: int) -> None:
        """Give the lock back: over another connection when this one is broken, or everybody waits for its end.

        It says nothing of the commit, so that what goes wrong here is not told: the lock ends by itself.
        """
        try:
            client.unlock(UnlockRequest(lockid=lock_id))
        except (TException, OSError, EOFError):
            with suppress(TException, OSError, EOFError, CatalogAnswerError), self._client as another:
                another.unlock(UnlockRequest(lockid=lock_id))


def _plain(parts: tuple[str, ...], depth: int, wrong: type[Exception]) -> tuple[str, ...]:
    """A name as the metastore keeps it. It would take others, too, and two names would be one table."""
    if len(parts) != depth or any(part != part.lower() for part in parts):
        msg = f"{'.'.join(parts)}: a Hive metastore has databases of one level, and names in small letters"
        raise wrong(msg)
    return parts


def _alter(client: MetastoreClient, table: Any, expected: str) -> None:
    context = {
        "DO_NOT_UPDATE_STATS": "true",
        "expected_parameter_key": _PLACE,
        "expected_parameter_value": expected,
    }
    try:
        client.alter_table_with_environment_context(
            dbname=table.dbName,
            tbl_name=table.tableName,
            new_tbl=table,
            environment_context=EnvironmentContext(properties=context),
        )
    except MetaException as error:
        if _MODIFIED in (error.message or ""):
            raise CommitFailedException(error.message) from error
        raise  # Listeners of the metastore speak after it has committed: the outcome is open.
    except NoSuchObjectException as error:
        msg = f"Table does not exist: {table.dbName}.{table.tableName}"
        raise NoSuchTableError(msg) from error


def _describe(known: Any, current: Table, staged: StagedTable) -> None:
    """What the metastore says of the table: where its metadata are, and what Hive shows of them; the rest stays."""
    before, after = current.metadata.properties, staged.metadata.properties
    said = {name: value for name, value in (known.parameters or {}).items() if not name.startswith(_OWN)}
    for name in before.keys() - after.keys():
        said.pop(name, None)
    # Positions and heads of jobs may be longer than old metastores take, and nobody reads them there.
    said |= {name: value for name, value in after.items() if not name.startswith(_OWN) and before.get(name) != value}
    said |= {_PLACE: staged.metadata_location, _PLACE_BEFORE: current.metadata_location}
    _update_figures(said, staged.metadata)
    if staged.metadata.current_schema_id != current.metadata.current_schema_id:
        said.pop("current-schema", None)
        with suppress(KeyError):  # A type that Hive has no name for; engines read the schema of the metadata.
            known.sd.cols = _construct_hive_storage_descriptor(staged.schema(), None).cols
    known.parameters = said


def _update_figures(said: dict[str, str], metadata: TableMetadata) -> None:
    """Those that are there. Old ones would be wrong."""
    snapshot = metadata.current_snapshot()
    summary = snapshot.summary if snapshot else None
    fresh = {name: summary[key] for name, key in _FIGURES.items() if summary and summary[key] is not None}
    if snapshot is not None:
        fresh |= {"current-snapshot-id": str(snapshot.snapshot_id)}
        fresh |= {"current-snapshot-timestamp-ms": str(snapshot.timestamp_ms)}
    for name in ("current-snapshot-summary", "current-snapshot-id", "current-snapshot-timestamp-ms", *_FIGURES):
        if said.pop(name, None) is not None and fresh.get(name):
            said[name] = str(fresh[name])
