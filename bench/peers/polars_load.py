"""Polars, as the limit: scan, map, sink Parquet. No progress, no commit, no reasons for bad rows."""

from __future__ import annotations

import time
from typing import Any

import polars

from bench.peers.order import Order

_CENTS = polars.Decimal(10, 2)


def load(order: Order) -> float:
    """Seconds of one sink."""
    began = time.perf_counter()
    order.out.mkdir(parents=True)
    rows = _scan(order).filter(polars.col("city") != "city 7")
    # Its decimals are slower than its doubles, and here a double rounds to the same cents.
    amount = (polars.col("amount").cast(polars.Float64) * 1.1).round(2).cast(_CENTS)
    mapped = rows.select("id", polars.col("city").str.to_uppercase(), amount.alias("amount"), *order.extra)
    mapped.sink_parquet(order.out / "part.parquet")
    return time.perf_counter() - began


def _scan(order: Order) -> polars.LazyFrame:
    schema = {name: _type(order, kind) for name, kind in order.types.items()}
    if order.form == "csv":
        return polars.scan_csv(order.pattern, schema=schema)
    if order.form == "json":
        return polars.scan_ndjson(order.pattern, schema=schema)
    return polars.scan_parquet(order.pattern)


def _type(order: Order, kind: str) -> Any:
    if kind.startswith("DECIMAL"):
        return polars.Float64 if order.form == "json" else _CENTS
    return polars.Int64 if kind == "BIGINT" else polars.String
