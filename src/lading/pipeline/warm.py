"""The first batch of a fresh Spark takes seconds: classes are loaded, code is made, workers are started."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

_TURNS = 3
"""Java makes better code of what it has seen again."""
_LISTS = (
    ["CAST(CAST(id AS STRING) AS BIGINT) AS id", "upper(CAST(id AS STRING)) AS name", "id > 0 AS note"],
    ["id", "name", "CASE WHEN note THEN name END AS note"],
)


def warm_up(spark: SparkSession) -> None:
    """Do, with nothing to load, what a batch does: two passes through Python with a mapping between them."""
    # Here, because workers import this file, too.
    import lading.pipeline.stager  # noqa: F401 - the first batch needs it
    from lading.pipeline.checked import checked_select

    tasks = spark.sparkContext.defaultParallelism
    for _ in range(_TURNS):
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(_pass_on, "id long")
        checked_select(rows, _LISTS).mapInArrow(_pass_on, "id long, name string, note string").collect()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
