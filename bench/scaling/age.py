"""What a commit, SHOW, metrics and the pages of a job cost when it has made so many commits."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from fastapi.testclient import TestClient

from bench.pages import Pages, markdown_table
from bench.scale import FOLDER, scaled
from bench.scaling.plot import Plot
from bench.scaling.pretend import TABLE, PretendLading
from lading.clock import SystemClock
from lading.http.app import create_app
from lading.http.hosts import Hosts
from lading.http.middleware import DoorRules
from lading.service.telemetry.metrics import Metrics

COMMITS = (10, 100, 1_000, 10_000, 100_000)
ASKED = 5
WINDOW = 50
"""The cost of a commit is a median of so many."""
PATHS = {
    "metrics": "/metrics",
    "list of jobs": "/api/jobs",
    "a job": "/api/jobs/j",
    "its commits": "/api/jobs/j/bills",
    "its timeline": "/api/jobs/j/timeline",
    "its plots": "/api/jobs/j/series",
}
SHOWN = {"SHOW": 'SELECT * FROM jobs("type"="insert")', "SHOW tasks": 'SELECT * FROM tasks("type"="insert")'}


class _Past(SystemClock):
    """Far behind, so that a job can commit once a minute without anybody waiting."""

    def __init__(self, minutes: int) -> None:
        self.behind = timedelta(minutes=minutes)

    def now(self) -> datetime:
        return super().now() - self.behind


def run(pages: Pages) -> None:
    """Let a job grow old, and ask at each mark."""
    most = scaled(COMMITS[-1], least=1_000)
    marks = sorted({min(mark, most) for mark in COMMITS})
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    try:
        taken = _grow(folder, marks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = {name: [(mark, taken[mark][name]) for mark in marks] for name in taken[marks[0]]}
    plot = Plot(title="A job that grows old", across="commits", up="ms", lines=lines)
    image = pages.image("scaling-age", plot.svg(), "What a commit, SHOW, metrics and views cost, by the age of a job")
    head = ("a commit a minute; ms", *(f"{mark:,} commits" for mark in marks))
    rows = [[name, *(f"{ms:.1f}" for _, ms in line)] for name, line in lines.items()]
    pages.show("scaling-age", f"{image}\n\n{markdown_table(head, rows)}")


def _grow(folder: Path, marks: list[int]) -> dict[int, dict[str, float]]:
    inbox = folder / "in"
    inbox.mkdir()
    taken: dict[int, dict[str, float]] = {}
    clock = _Past(marks[-1])
    with PretendLading(folder / "home", clock=clock) as lading:
        lading.sql(
            f'{TABLE}; CREATE JOB j PROPERTIES ("file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
            f'SELECT id, city FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        metrics = Metrics(lading.store, lading.clock, audit=lading.audit)
        lading.watches.append(metrics)
        rules = DoorRules(hosts=Hosts(names=frozenset({"testserver"})))
        client = TestClient(create_app(lading, metrics=metrics, rules=rules))
        (inbox / f"{0:08}.csv").write_text("id,city\n1,essen\n")
        runner, commits = lading.runner(lading.job("j").job_id), list[float]()
        for number in range(1, marks[-1] + 1):
            began = time.perf_counter()
            runner.run_once()
            commits.append((time.perf_counter() - began) * 1000)
            clock.behind -= timedelta(minutes=1)
            # What grows is the history of the job, and not its folder.
            (inbox / f"{number - 1:08}.csv").rename(inbox / f"{number:08}.csv")
            if number in marks:
                totals = lading.job("j").totals
                assert totals is not None
                assert totals.commits == number, totals
                taken[number] = {"a commit": median(commits[-WINDOW:]), **_ask(lading, client)}
                told = ", ".join(f"{name} {ms:.1f}" for name, ms in taken[number].items())
                print(f"{number:,} commits, ms: {told}", flush=True)
    return taken


def _ask(lading: PretendLading, client: TestClient) -> dict[str, float]:
    """Milliseconds of each question; medians."""

    def get(path: str) -> None:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)

    asked: dict[str, float] = {}
    for name, text in SHOWN.items():
        asked[name] = _timed_ms(lambda text=text: lading.sql(text))  # type: ignore[misc] # bound at once
    for name, path in PATHS.items():
        asked[name] = _timed_ms(lambda path=path: get(path))  # type: ignore[misc] # bound at once
    return asked


def _timed_ms(what: Callable[[], object]) -> float:
    what()
    taken: list[float] = []
    for _ in range(ASKED):
        began = time.perf_counter()
        what()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)
