"""Tables in an object store, read by Spark's tasks through Arrow: Spark itself needs no connector for the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lading.pipeline.sealing import Sealed, identity

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFiles:
    """Parquet files under a root. Columns that a file leaves out are named by its folders."""

    system: pafs.FileSystem
    root: str
    files: tuple[str, ...]
    schema: pa.Schema
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

    shown = from_arrow_schema(remote.schema)
    tasks = min(len(remote.files), TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    sealed = Sealed.of(remote, key)
    read = partial(_read_sealed, sealed, to_arrow_schema(shown, timezone="UTC"))
    return spark.range(0, len(remote.files), 1, tasks).mapInArrow(read, shown)


def _read_sealed(sealed: Sealed, wanted: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    remote: RemoteFiles = sealed.open()
    with identity(remote.identity):
        yield from _read(remote, wanted, numbers)


def _read(remote: RemoteFiles, wanted: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    system, root, schema = remote.system, remote.root, remote.schema
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            path = f"{root.rstrip('/')}/{remote.files[number]}"
            own = set(pq.read_schema(path, filesystem=system).names)
            file = ds.dataset(
                [path],
                schema=schema,
                format="parquet",
                filesystem=system,
                partitioning=ds.partitioning(
                    pa.schema([field for field in schema if field.name not in own]), flavor="hive"
                ),
                partition_base_dir=root,
            )
            for rows in file.to_batches():
                yield rows.cast(wanted)
