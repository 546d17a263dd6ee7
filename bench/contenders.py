"""The two that are compared: a job of Lading, and a hand-written query of Structured Streaming.

`python -m bench.contenders lading|streaming csv|json <inbox> <home>` runs one of them in a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from lading.pipeline.java import find_java
from lading.pipeline.session import open_session

Load = Callable[[SparkSession, Path, Path, str], float]
"""Session, home, inbox and format; returns the seconds that the load took."""


def lading(spark: SparkSession, home: Path, inbox: Path, form: str) -> float:
    from lading.service.facade import Lading

    options = '"format"="json"' if form == "json" else '"format"="csv_with_names", "column_separator"=","'
    with Lading(home, session=spark) as service:
        service.sql(
            "CREATE TABLE t (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta;"
            'CREATE JOB j PROPERTIES ("s3.max_batch_files"="5000") ON STREAMING DO '
            f'INSERT INTO t SELECT id, upper(city), amount * 1.1 FROM FILE("uri"="{inbox}/*.{form}", {options}) '
            "WHERE city <> 'city 7'"
        )
        began = time.perf_counter()
        service.run()
        took = time.perf_counter() - began
        totals = service.job("j").totals
        if totals is None or totals.source_files != len(list(inbox.iterdir())):
            msg = f"not everything was loaded: {totals}"
            raise RuntimeError(msg)
        return took


def streaming(spark: SparkSession, home: Path, inbox: Path, form: str) -> float:
    reader = spark.readStream.schema("id STRING, city STRING, amount STRING, note STRING")
    source = reader.json(str(inbox)) if form == "json" else reader.option("header", "true").csv(str(inbox))
    mapped = source.where("city <> 'city 7'").selectExpr(
        "CAST(id AS BIGINT) AS id", "upper(city) AS city", "CAST(amount * 1.1 AS DECIMAL(10,2)) AS amount"
    )
    began = time.perf_counter()
    query = (
        mapped.writeStream.format("parquet")
        .option("checkpointLocation", str(home / "checkpoint"))
        .option("path", str(home / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


CONTENDERS: dict[str, Load] = {"lading": lading, "streaming": streaming}


def main(name: str, form: str, inbox: str, home: str) -> None:
    """Start Spark, load, and end."""
    spark = open_session({}, find_java(os.environ, Path(home)), Path(home))
    CONTENDERS[name](spark, Path(home) / "load", Path(inbox), form)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
