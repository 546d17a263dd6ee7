"""Lading: one service, a new table and a new job for each load. Which path they take is set by LADING_VECTOR_PATH."""

from __future__ import annotations

import atexit
import os
import time
from functools import cache
from itertools import count
from pathlib import Path

from bench.peers.order import KEPT, Order
from lading.service.facade import Lading
from lading.service.scheduling.scheduler import Scheduler

NUMBERS = count()
OPTIONS = {
    "csv": '"format"="csv_with_names", "column_separator"=","',
    "json": '"format"="json"',
    "parquet": '"format"="parquet"',
}


def load(order: Order) -> float:
    """Seconds from the start of the job to its last commit."""
    service, number = _service(), next(NUMBERS)
    service.sql(statements(order, number))
    began = time.perf_counter()
    service.run([f"j{number}"])
    took = time.perf_counter() - began
    totals = service.job(f"j{number}").totals
    if totals is None or totals.source_files != len(order.files):
        msg = f"not everything was loaded: {totals}"
        raise RuntimeError(msg)
    _check_path(service, number)
    service.sql(f"DROP JOB WHERE jobName = 'j{number}'")
    return took


def follow(order: Order) -> float:
    """A service that looks for files as often as it may, until the order is over."""
    service, number = _service(), next(NUMBERS)
    service.get_ready()
    # Files are renamed into their folder when they are whole.
    service.sql(statements(order, number, '"max_interval"="1", "file.settle_seconds"="0"'))
    scheduler = Scheduler(service)
    began = time.perf_counter()
    scheduler.start()
    while not order.is_over():
        time.sleep(0.1)
    scheduler.close()
    _check_path(service, number)
    return time.perf_counter() - began


def statements(order: Order, number: int, properties: str = '"s3.max_batch_files"="5000"') -> str:
    """The table and its job."""
    columns = {"id": "BIGINT", "city": "STRING", "amount": "DECIMAL(10,2)", **order.extra}
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    place = order.out.absolute().as_uri()
    mapped = ", ".join(["id", "upper(city)", "amount * 1.1", *order.extra])
    return (
        f"CREATE TABLE t{number} ({listed}) USING delta LOCATION '{place}';"
        f"CREATE JOB j{number} PROPERTIES ({properties}) ON STREAMING DO INSERT INTO t{number} SELECT {mapped} "
        f'FROM FILE("uri"="{order.pattern}", {OPTIONS[order.form]}) WHERE {KEPT}'
    )


def _check_path(service: Lading, number: int) -> None:
    """Whether the rows went the way that is measured."""
    wanted = "general" if os.environ.get("LADING_VECTOR_PATH") == "no" else "vector"
    told = {str(row[0]): str(row[1]) for row in service.sql(f"EXPLAIN JOB j{number}")[0].rows}
    if not told["path"].startswith(wanted):
        msg = f"not the {wanted} path: {told}"
        raise RuntimeError(msg)


@cache
def _service() -> Lading:
    """As `lading serve` has it: Spark is there once something needed it."""
    service = Lading(Path(os.environ["LADING_BENCH_HOME"]) / "service")
    atexit.register(service.close)
    return service
