"""Lading: a table and a job in a new home. Which path it takes is set by LADING_VECTOR_PATH."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path

from bench.peers.order import KEPT, Order
from lading.service.facade import Lading
from lading.service.scheduling.scheduler import Scheduler

OPTIONS = {
    "csv": '"format"="csv_with_names", "column_separator"=","',
    "json": '"format"="json"',
    "parquet": '"format"="parquet"',
}


def load(order: Order) -> float:
    """Seconds from the start of the job to its last commit."""
    home = Path(order.home) / "service"
    session = None if order.once else _session()
    with Lading(home, session=session) as service:
        service.sql(statements(order))
        began = time.perf_counter()
        service.run()
        took = time.perf_counter() - began
        totals = service.job("j").totals
        if totals is None or totals.source_files != len(order.files):
            msg = f"not everything was loaded: {totals}"
            raise RuntimeError(msg)
        _check_path(service)
        return took


def follow(order: Order) -> float:
    """A service that looks for files as often as it may, until the order is over."""
    with Lading(Path(order.home) / "service", session=_session()) as service:
        service.warm_up()
        # Files are renamed into their folder when they are whole.
        service.sql(statements(order, '"max_interval"="1", "file.settle_seconds"="0"'))
        scheduler = Scheduler(service)
        began = time.perf_counter()
        scheduler.start()
        while not order.is_over():
            time.sleep(0.1)
        scheduler.close()
        _check_path(service)
        return time.perf_counter() - began


def statements(order: Order, properties: str = '"s3.max_batch_files"="5000"') -> str:
    """The table and its job."""
    columns = {"id": "BIGINT", "city": "STRING", "amount": "DECIMAL(10,2)", **order.extra}
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    place = order.out.absolute().as_uri()
    mapped = ", ".join(["id", "upper(city)", "amount * 1.1", *order.extra])
    return (
        f"CREATE TABLE t ({listed}) USING delta LOCATION '{place}';"
        f"CREATE JOB j PROPERTIES ({properties}) ON STREAMING DO INSERT INTO t SELECT {mapped} "
        f'FROM FILE("uri"="{order.pattern}", {OPTIONS[order.form]}) WHERE {KEPT}'
    )


def _check_path(service: Lading) -> None:
    """Whether the rows went the way that is measured."""
    wanted = "general" if os.environ.get("LADING_VECTOR_PATH") == "no" else "vector"
    told = {str(row[0]): str(row[1]) for row in service.sql("EXPLAIN JOB j")[0].rows}
    if not told["path"].startswith(wanted):
        msg = f"not the {wanted} path: {told}"
        raise RuntimeError(msg)


@cache
def _session():  # type: ignore[no-untyped-def] # Spark is imported when it is wanted
    from lading.pipeline.java import find_java
    from lading.pipeline.session import open_session

    home = Path(os.environ["LADING_BENCH_HOME"])
    return open_session({}, find_java(os.environ, home), home)
