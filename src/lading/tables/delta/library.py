"""The door to delta-rs, and its errors as Lading's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import deltalake
from deltalake.exceptions import DeltaError, DeltaProtocolError
from deltalake.exceptions import TableNotFoundError as DeltaTableNotFoundError

from lading.errors import ConfigError, StorageError, TableError, TableNotFoundError
from lading.model.s3_access import S3Access
from lading.storage.libraries import delta_options
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG, Metadata, TableProtocol

_MISREAD = {"%": "percent sign", "\\": "backslash"}


def library_uri(storage: ObjectStore) -> str:
    """The table's place as delta-rs wants it."""
    uri = storage.uri
    is_in_bucket = uri.startswith("s3://")
    for letter, name in _MISREAD.items():
        if letter in uri and not (is_in_bucket and letter == "\\"):
            msg = f"A Delta table cannot be at {uri}: delta-rs mistakes the {name} in the path"
            raise ConfigError(msg, left="Nothing was changed.", todo=f"Choose a path without a {name}.")
    return uri if is_in_bucket else f"file://{quote(uri)}"


def load_table(storage: ObjectStore, options: S3Access, *, version: int | None = None) -> deltalake.DeltaTable:
    """The table at its newest version, or at an older one. Costs in proportion to its files."""
    with translated(storage):
        return deltalake.DeltaTable(library_uri(storage), version, storage_options=delta_options(options))


def metadata_of(table: deltalake.DeltaTable) -> Metadata:
    """What a loaded table says about itself."""
    metadata = table.metadata()
    return Metadata(
        table_id=str(metadata.id),
        schema_string=table.schema().to_json(),
        partition_columns=tuple(metadata.partition_columns),
        configuration={key: str(value) for key, value in metadata.configuration.items()},
    )


def protocol_of(table: deltalake.DeltaTable) -> TableProtocol:
    """What a loaded table asks of readers and writers."""
    found = table.protocol()
    return TableProtocol(
        reader=found.min_reader_version,
        writer=found.min_writer_version,
        features=frozenset([*(found.reader_features or ()), *(found.writer_features or ())]),
    )


@contextmanager
def translated(storage: ObjectStore) -> Iterator[None]:
    """Turn errors of delta-rs into Lading's. Nothing of what is called in here writes to the log by itself."""
    try:
        yield
    except DeltaTableNotFoundError as error:
        raise _nothing_there(storage) from error
    except DeltaProtocolError as error:
        raise _too_new(storage, error) from error
    except (DeltaError, OSError) as error:
        if _speaks_of_protocol(error):
            raise _too_new(storage, error) from error
        if next(iter(storage.keys(f"{LOG}/")), None) is None:
            raise _nothing_there(storage) from error
        msg = f"delta-rs could not do what was asked with the table {storage.uri}: {error}"
        raise StorageError(
            msg, left="No rows were committed.", todo="Check the store and the table's log.", unknown=False
        ) from error


def _nothing_there(storage: ObjectStore) -> TableNotFoundError | TableError:
    if next(iter(storage.keys("")), None) is None:
        msg = f"There is no table at {storage.uri}"
        return TableNotFoundError(msg, left="Nothing was changed.", todo="Create the table, or correct the path.")
    msg = f"There is something at {storage.uri}, but it is not a Delta table: it has no log"
    return TableError(msg, left="Nothing was changed.", todo="Correct the path, or the format of the target.")


def _too_new(storage: ObjectStore, error: Exception) -> TableError:
    msg = f"The Delta table {storage.uri} needs abilities that delta-rs does not have: {error}"
    return TableError(msg, left="Nothing was written.", todo="Use another target, or a newer Lading.")


def _speaks_of_protocol(error: Exception) -> bool:
    # delta-rs has one class for all of its kernel's errors; only the text tells them apart.
    text = str(error).lower()
    return any(word in text for word in ("unsupported", "invalid protocol action", "catalog-managed"))
