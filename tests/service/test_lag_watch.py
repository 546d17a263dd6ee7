"""Answers of streams: asked for now and then, and not kept for ever."""

from __future__ import annotations

from lading.ids import JobId
from lading.service.telemetry.lag_cache import FRESH_S, STALE_S, LagWatch
from lading.sources.streams import StreamSight
from lading.testing.clock import ManualClock


def test_lags_are_asked_for_once_in_a_while() -> None:
    clock, asked = ManualClock(), list[int]()
    watch, job = LagWatch(clock), JobId("j")

    def ask() -> StreamSight:
        asked.append(1)
        return StreamSight(lag={"0": len(asked)})

    assert watch.look({job: ask})[job].lag == {"0": 1}
    assert watch.look({job: ask})[job].lag == {"0": 1}
    clock.sleep(FRESH_S + 1)
    assert watch.look({job: ask})[job].lag == {"0": 2}
    clock.sleep(STALE_S + 1)
    assert watch.look({}) == {}


def test_answers_about_jobs_that_ended_are_forgotten() -> None:
    clock = ManualClock()
    watch = LagWatch(clock)
    for number in range(50):
        job = JobId(f"j{number}")
        assert watch.look({job: lambda: StreamSight(lag={"0": 1})})[job].lag == {"0": 1}
        clock.sleep(STALE_S / 2)
    assert watch.remembered <= 3
