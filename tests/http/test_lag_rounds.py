"""Streams are asked how far their jobs are behind, and the metrics hear of it."""

from __future__ import annotations

import threading

import pytest

from lading.errors import ListingError
from lading.jobs.record import JobRecord
from lading.model.positions import PartitionState, Positions
from lading.service.installation import Installation
from lading.service.scheduling.lag_poller import LagRounds
from lading.service.views.jobs import JobViews
from lading.service.views.loads import LoadViews
from lading.sources.streams import StreamSight
from lading.status.lag import LagUnit
from tests.http.rig import Rig

AT = Positions(partitions={"shard-0": PartitionState(at="5")})


def rounds(rig: Rig, monkeypatch: pytest.MonkeyPatch, lag: int | None, **options: float) -> LagRounds:
    def sight(_lading: Installation, record: JobRecord, positions: Positions) -> StreamSight:
        assert positions == AT
        if record.name == "broken":
            msg = "The stream is away"
            raise ListingError(msg)
        return StreamSight(lag={"shard-0": lag}, seconds_to_trim=60.0)

    monkeypatch.setattr(LoadViews, "positions", lambda self, record: AT)
    return LagRounds(rig.lading, rig.metrics, sight=sight, **options)


def test_what_streams_say_is_shown_with_jobs_and_in_metrics(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.create_routine()
    rig.create_routine("broken")
    rounds(rig, monkeypatch, 1500).look()
    shown = {job.name: job for job in JobViews(rig.lading, lookout=rig.metrics.lookout).list_jobs()}
    lag = shown["shop.clicks"].lag
    assert lag
    assert (lag.unit, lag.behind, lag.seconds_to_trim) == (LagUnit.MILLISECONDS, 1500, 60.0)
    assert shown["shop.broken"].lag is None
    text = rig.metrics.render().decode()
    assert 'lading_lag_seconds{database="shop",job_name="shop.clicks",kind="routine"} 1.5' in text
    answer = rig.client().get("/api/jobs/shop.clicks").json()["job"]["lag"]
    assert (answer["unit"], answer["partitions"]) == ("milliseconds", {"shard-0": 1500})
    series = rig.client().get("/api/jobs/shop.clicks/series?minutes=1").json()
    assert [point["lag"] for point in series["points"] if point["lag"] is not None] == [1500]


def test_it_goes_round_by_itself_and_ends(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.create_routine()
    asked = threading.Event()
    monkeypatch.setattr(rig.metrics, "lag_seen", lambda record, **lag: asked.set())
    going = rounds(rig, monkeypatch, 1, every_s=0.01)
    going.start()
    assert asked.wait(10)
    going.close()
    going.close()
