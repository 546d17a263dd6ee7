"""DuckDB, as the limit: read, map, write Parquet. No progress, no commit, no reasons for bad rows."""

from __future__ import annotations

import time

import duckdb

from bench.peers.duckdb_sql import mapped_files
from bench.peers.order import Order


def load(order: Order) -> float:
    """Seconds of one COPY."""
    began = time.perf_counter()
    order.out.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false")
        query = mapped_files(order, [str(file) for file in order.files])
        connection.execute(f"COPY ({query}) TO '{order.out}/part.parquet' (FORMAT parquet)")
    return time.perf_counter() - began
