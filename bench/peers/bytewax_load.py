"""Bytewax: lines come from a partition for each file, are parsed and mapped in Python, and go to Parquet in batches.

Two processes, one for each core, as its documentation says.
"""

from __future__ import annotations

import csv
import gzip
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import bytewax.operators as op
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax._bytewax import cluster_main
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

from bench.peers.order import Order

LINES = 2000
ROWS = 200_000
_RATE = Decimal("1.1")


def load(order: Order) -> float:
    """Seconds of the whole cluster."""
    began = time.perf_counter()
    order.out.mkdir(parents=True)
    addresses = [f"127.0.0.1:{_free_port()}" for _ in range(os.cpu_count() or 1)]
    others = [
        multiprocessing.get_context("spawn").Process(target=_run, args=(order, addresses, number))
        for number in range(1, len(addresses))
    ]
    for other in others:
        other.start()
    _run(order, addresses, 0)
    for other in others:
        other.join()
        if other.exitcode:
            msg = f"a worker ended with {other.exitcode}"
            raise RuntimeError(msg)
    return time.perf_counter() - began


def _run(order: Order, addresses: list[str], number: int) -> None:
    flow = Dataflow("load")
    lines = op.input("read", flow, _Files(order))
    rows = op.filter("kept", lines, lambda row: row["city"] != "city 7")
    op.output("write", op.map("mapped", rows, _mapper(order)), _Parquet(order))
    cluster_main(flow, addresses, number)


def _mapper(order: Order) -> Any:
    casts = {name: {"BIGINT": int, "STRING": str}.get(kind, Decimal) for name, kind in order.extra.items()}

    def mapped(row: dict[str, Any]) -> dict[str, Any]:
        amount = Decimal(str(row["amount"])) * _RATE
        out = {"id": int(row["id"]), "city": row["city"].upper(), "amount": amount.quantize(Decimal("0.01"))}
        for name, cast in casts.items():
            out[name] = cast(row[name])
        return out

    return mapped


class _Files(FixedPartitionedSource):  # type: ignore[misc] # not installed here
    def __init__(self, order: Order) -> None:
        self._order = order
        self._files = {file.name: str(file) for file in order.files}

    def list_parts(self) -> list[str]:
        return list(self._files)

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _File:
        return _File(_rows(self._order, self._files[for_part]))


class _File(StatefulSourcePartition):  # type: ignore[misc] # not installed here
    def __init__(self, rows: Iterator[dict[str, Any]]) -> None:
        self._rows = rows
        self._count = 0

    def next_batch(self) -> list[dict[str, Any]]:
        batch = list(islice(self._rows, LINES))
        if not batch:
            raise StopIteration
        self._count += len(batch)
        return batch

    def snapshot(self) -> int:
        return self._count


def _rows(order: Order, path: str) -> Iterator[dict[str, Any]]:
    if order.form == "parquet":
        for batch in pq.ParquetFile(path).iter_batches(LINES):
            yield from batch.to_pylist()
        return
    with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as file:
        yield from csv.DictReader(file) if order.form == "csv" else map(json.loads, file)


class _Parquet(DynamicSink):  # type: ignore[misc] # not installed here
    def __init__(self, order: Order) -> None:
        self._order = order

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Part:
        return _Part(self._order, worker_index)


class _Part(StatelessSinkPartition):  # type: ignore[misc] # not installed here
    def __init__(self, order: Order, index: int) -> None:
        kinds = {"BIGINT": pa.int64(), "STRING": pa.string()}
        types = {"id": "BIGINT", "city": "STRING", "amount": "", **order.extra}
        self._schema = pa.schema([(name, kinds.get(kind, pa.decimal128(10, 2))) for name, kind in types.items()])
        self._writer = pq.ParquetWriter(order.out / f"part-{index}.parquet", self._schema)
        self._rows: list[dict[str, Any]] = []

    def write_batch(self, items: Iterable[dict[str, Any]]) -> None:
        self._rows += items
        if len(self._rows) >= ROWS:
            self._write()

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
        self._rows = []


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
