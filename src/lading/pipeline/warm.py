"""The first batch of a fresh Spark takes seconds: classes are loaded, code is made, workers are started."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def warm_up(spark: SparkSession) -> None:
    """Do once, with nothing to load, what a batch does: two passes through Python with a mapping between them."""
    tasks = spark.sparkContext.defaultParallelism
    rows = spark.range(0, tasks, 1, tasks).mapInArrow(_pass_on, "id long")
    mapped = rows.selectExpr("CAST(CAST(id AS STRING) AS BIGINT) AS id", "id > 0 AS note").selectExpr("id")
    mapped.mapInArrow(_pass_on, "id long").collect()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
