"""Tables in an object store, read by Spark's tasks through Arrow: Spark itself needs no connector for the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.fs as pafs
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 4


def remote_frame(
    spark: SparkSession, place: tuple[pafs.FileSystem, str], files: Sequence[str], schema: pa.Schema
) -> DataFrame:
    """The rows of Parquet files under a root. Columns that a file leaves out are named by its folders."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    shown = from_arrow_schema(schema)
    tasks = min(len(files), TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    read = partial(_read, place, tuple(files), schema, to_arrow_schema(shown, timezone="UTC"))
    return spark.range(0, len(files), 1, tasks).mapInArrow(read, shown)


def _read(
    place: tuple[pafs.FileSystem, str],
    files: Sequence[str],
    schema: pa.Schema,
    wanted: pa.Schema,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    system, root = place
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            path = f"{root.rstrip('/')}/{files[number]}"
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
