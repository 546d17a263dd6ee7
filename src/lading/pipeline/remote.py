"""Tables in an object store, read by Spark's tasks through Arrow: Spark itself needs no connector for the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lading.errors import TableError
from lading.model.field_ids import field_id
from lading.pipeline.sealing import Sealed
from lading.settings import lent_variables

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 4


class Place(Protocol):
    """Where files are, with the keys to it. Pickles."""

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        """A file system of pyarrow, and the root's path in it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFiles:
    """Parquet files under a root."""

    place: Place
    files: tuple[str, ...]
    schema: pa.Schema
    constants: pa.Table | None = None
    """Columns that the files leave out: one row for each file."""
    size_bytes: int = 0
    """What the files have together, as far as somebody asked."""
    identity: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of the service's own identity in a cloud, for a table without keys of its own."""


def empty_frame(spark: SparkSession, schema: pa.Schema) -> DataFrame:
    """No rows of a schema, made in Java: from Python, Spark would open a socket for them and leave it open."""
    from pyspark.sql.functions import lit
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = [lit(None).cast(field.dataType).alias(field.name) for field in from_arrow_schema(schema)]
    return spark.range(0).select(*columns)


def remote_frame(spark: SparkSession, remote: RemoteFiles, key: str) -> DataFrame:
    """The rows of the files, for jobs that are run with the key."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from lading.pipeline.fitting import fit

    shown = from_arrow_schema(remote.schema)
    tasks = min(len(remote.files), TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    sealed = Sealed.of(remote, key)
    read = partial(_read_sealed, sealed, to_arrow_schema(shown, timezone="UTC"))
    return spark.range(0, len(remote.files), 1, tasks).mapInArrow(fit(spark, read, ("boto3",)), shown)


def _read_sealed(sealed: Sealed, wanted: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    remote: RemoteFiles = sealed.open()
    with lent_variables(remote.identity):
        yield from _read(remote, wanted, numbers)


def _read(remote: RemoteFiles, wanted: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    # Opened here and not in the driver: connections to an endpoint that a user named go through a proxy of the process.
    system, root = remote.place.arrow()
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            path = f"{root.rstrip('/')}/{remote.files[number]}"
            with system.open_input_file(path) as opened:
                file = pq.ParquetFile(opened)
                named = columns_of(file.schema_arrow, remote.schema, path)
                constants = {} if remote.constants is None else remote.constants.slice(number, 1).to_pylist()[0]
                for rows in file.iter_batches(columns=[name for name in named.values() if name is not None]):
                    yield _shaped(rows, remote.schema, named, constants).cast(wanted)


def columns_of(file: pa.Schema, table: pa.Schema, path: str) -> dict[str, str | None]:
    """Column of the table → column of the file, None where it has none: by number where the table has numbers."""
    if all(field_id(wanted) is None for wanted in table):
        return {name: name if name in file.names else None for name in table.names}
    by_number = {number: own.name for own in file if (number := field_id(own)) is not None}
    if not by_number:
        msg = f"{path} does not number its columns, so nobody can tell which is which"
        raise TableError(msg, left="Nothing was read.", todo="Read the table with another engine.")
    return {wanted.name: by_number.get(field_id(wanted) or 0) for wanted in table}


def _shaped(
    rows: pa.RecordBatch, schema: pa.Schema, named: Mapping[str, str | None], constants: Mapping[str, object]
) -> pa.RecordBatch:
    columns = []
    for wanted in schema:
        name = named[wanted.name]
        if name is not None:
            columns.append(rows.column(name).cast(wanted.type))
        else:
            columns.append(pa.repeat(pa.scalar(constants.get(wanted.name), wanted.type), rows.num_rows))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([wanted.remove_metadata() for wanted in schema]))
