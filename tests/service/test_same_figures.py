"""Lag and rates are the same figure in SHOW, jobs(), the API and the metrics."""

from __future__ import annotations

import json

import pytest

from lading.service.scheduling.lag_poller import LagRounds
from lading.service.telemetry.metrics import Metrics
from lading.service.views.jobs import JobViews
from lading.service.views.records import JobView
from tests.service.routine_fakes import Desk
from tests.service.routine_fakes import bench as bench
from tests.service.test_draining import CREATE
from tests.service.test_draining import live as live


@pytest.fixture
def metrics(bench: Desk) -> Metrics:
    made = Metrics(bench.lading.store, bench.lading.clock)
    bench.lading.watches.append(made)
    return made


def seen(bench: Desk, metrics: Metrics) -> JobView:
    return JobViews(bench.lading, lookout=metrics.lookout).list_jobs()[0]


def test_an_answer_to_show_is_what_the_api_and_the_metrics_tell(bench: Desk, metrics: Metrics) -> None:
    LagRounds(bench.lading, metrics)
    bench.sql(CREATE)
    shown = json.loads(bench.show()["Lag"])
    assert shown == {"0": 100, "1": 50}
    lag = seen(bench, metrics).lag
    assert lag is not None
    assert (lag.partitions, lag.behind) == (shown, 150)
    told = [line for line in metrics.render().decode().splitlines() if line.startswith("lading_lag_records{")]
    assert sum(float(line.split()[-1]) for line in told) == 150


@pytest.mark.usefixtures("live")
def test_a_rate_is_the_same_everywhere_and_a_paused_job_has_none(bench: Desk, metrics: Metrics) -> None:
    bench.sql(CREATE)
    bench.lading.run(timeout=20)
    rate = seen(bench, metrics).rows_per_s
    assert rate > 1
    assert json.loads(bench.show()["Statistic"])["loadRowsRate"] == pytest.approx(rate, rel=0.5)
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    assert seen(bench, metrics).rows_per_s == 0
    statistic = json.loads(bench.show()["Statistic"])
    assert (statistic["loadRowsRate"], statistic["receivedBytesRate"], statistic["totalRows"]) == (0, 0, 150)


def test_jobs_shows_the_files_that_are_still_to_be_loaded(bench: Desk, metrics: Metrics) -> None:
    inbox = bench.path / "in"
    inbox.mkdir()
    (inbox / "a.csv").write_text("id,city\n1,essen\n")
    bench.sql(
        "CREATE JOB f ON STREAMING DO INSERT INTO t SELECT * FROM "
        f'FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    ask = 'SELECT Lag FROM jobs("type"="insert") WHERE Name = \'f\''
    assert bench.sql(ask) == [("",)], "nobody has counted yet"
    metrics.files_behind(bench.lading.job("f"), {"folder": 3})
    assert bench.sql(ask) == [("3",)]
    bench.sql("PAUSE JOB WHERE jobName='f'")
    assert bench.sql(ask) == [("",)], "nobody counts while the job is paused"
