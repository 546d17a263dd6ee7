"""dlt: its filesystem source into a Delta table of its filesystem destination.

DuckDB reads and maps the files, which is the quickest of dlt's ways: rows stay in Arrow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import dlt
import duckdb
from dlt.destinations import filesystem as folder
from dlt.sources.filesystem import filesystem

from bench.peers.duckdb_sql import mapped_files
from bench.peers.order import Order

PACKED = 256
"""Files that go through one query: a query for each of 2,000 files would cost more than it loads."""


def load(order: Order) -> float:
    """Seconds of one run of the pipeline."""
    began = time.perf_counter()

    @dlt.transformer(name="out", write_disposition="append", table_format="delta")  # type: ignore[untyped-decorator] # not installed here
    def mapped(items: list[Any]) -> Iterator[Any]:
        files = [item["file_url"].removeprefix("file://") for item in items]
        with duckdb.connect() as connection:
            batches: Any = connection.execute(mapped_files(order, files)).to_arrow_reader(200_000)
            yield from batches

    listed = filesystem(f"file://{order.inbox}", file_glob=f"*.{order.ending}", files_per_page=PACKED)
    pipeline = dlt.pipeline(
        pipeline_name="bench",
        pipelines_dir=f"{order.home}/pipelines",
        destination=folder(bucket_url=f"file://{order.home}/tables"),
        dataset_name="bench",
    )
    pipeline.run(listed | mapped)
    took = time.perf_counter() - began
    order.out.symlink_to(f"{order.home}/tables/bench/out")
    return took
