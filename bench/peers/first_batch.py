"""`python -m bench.peers.first_batch <folder> <expression> [setting=value …]`: the first jobs of a service that nobody
has used yet. Says, as JSON, how long each took from its CREATE to its first commit."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from lading.service.facade import Lading
from lading.service.scheduling.scheduler import Scheduler

JOBS = 3
ROWS = 1000
REST_S = 3.0
"""Nobody waits for the service that long."""
PATIENCE_S = 60.0


def main(arguments: Sequence[str]) -> None:
    """Start a service, wait until it is ready, make the jobs one after the other."""
    folder, expression = Path(arguments[0]), arguments[1]
    settings = dict(given.split("=", 1) for given in arguments[2:])
    inbox = folder / "in"
    inbox.mkdir(parents=True)
    lines = "".join(f"{number},city {number % 100},{number % 1000}.50\n" for number in range(ROWS))
    (inbox / "a.csv").write_text(f"id,city,amount\n{lines}")
    with Lading(folder / "home", spark=settings) as service:
        service.get_ready()
        scheduler = Scheduler(service)
        scheduler.start()
        time.sleep(REST_S)
        taken = [_first_batch(service, f"t{number}", inbox, expression) for number in range(JOBS)]
        scheduler.close()
    print(json.dumps(taken))


def _first_batch(service: Lading, name: str, inbox: Path, expression: str) -> float:
    committed = threading.Event()
    service.sql(f"CREATE TABLE {name} (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta")
    began = time.perf_counter()
    service.sql(
        f'CREATE JOB {name} PROPERTIES ("file.settle_seconds"="0") ON STREAMING DO INSERT INTO {name} '
        f'SELECT id, {expression}, amount * 1.1 FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", '
        '"column_separator"=",")'
    )
    service.runner(service.job(name).job_id).on_progress = lambda bill: committed.set()
    totals = service.job(name).totals
    if (totals is None or not totals.rows.loaded) and not committed.wait(PATIENCE_S):
        msg = f"{name} loaded nothing: {service.job(name)}"
        raise RuntimeError(msg)
    return time.perf_counter() - began


if __name__ == "__main__":
    main(sys.argv[1:])
