"""Samples that are derived from records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from lading.model.notices import ListenerFailure, ListeningSummary
from lading.model.tally import RowCounts, Tally
from lading.status.families import OTHER, JobFigures, derive_families
from lading.status.lag import Lag, LagUnit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE = ("orders", "shop", "streaming")


def figures(labels: tuple[str, ...] = ONE, *, rows: int = 10, lag: Lag | None = None) -> JobFigures:
    totals = Tally(rows=RowCounts(total=rows, loaded=rows - 1, error=1), received_bytes=100, commits=2)
    return JobFigures(labels=labels, state="RUNNING", totals=totals, batches={"failed": 3}, lag=lag, last_commit_at=NOW)


def samples(*jobs: JobFigures) -> dict[str, dict[tuple[str, ...], float]]:
    return {family.name: dict(family.samples) for family in derive_families(jobs)}


def test_rows_are_counted_by_fate() -> None:
    found = samples(figures())
    fates = {"loaded": 9, "unselected": 0, "error": 1, "late": 0, "duplicate": 0}
    assert found["lading_rows"] == {(*ONE, fate): count for fate, count in fates.items()}
    assert found["lading_batches"] == {(*ONE, "failed"): 3}
    assert found["lading_job_state"] == {(*ONE, "RUNNING"): 1}


def test_jobs_with_listeners_show_what_is_open_pending_and_failing() -> None:
    failure = ListenerFailure(listener="a", tries=2, error="no answer", at=NOW)
    known = ListeningSummary(open=1, pending=2, marked=3, late_rows=4, failures=(failure,))
    found = samples(replace(figures(), listening=known))
    names = ("partitions_open", "listener_notices_pending", "partitions_done", "rows_after_done", "listeners_failing")
    assert [found[f"lading_{name}"] for name in names] == [{ONE: 1}, {ONE: 2}, {ONE: 3}, {ONE: 4}, {ONE: 1}]
    assert samples(figures())["lading_partitions_open"] == {}


def test_a_lag_has_the_name_of_its_unit() -> None:
    lag = Lag(unit=LagUnit.MILLISECONDS, partitions={"a": 2500}, seconds_to_trim=60, at=NOW)
    found = samples(figures(lag=lag))
    assert found["lading_lag_seconds"] == {ONE: 2.5}
    assert found["lading_seconds_to_trim"] == {ONE: 60}
    assert found["lading_lag_records"] == found["lading_lag_files"] == {}


def test_jobs_without_room_are_added_up_or_the_worst_of_them_is_shown() -> None:
    lags = [
        Lag(unit=LagUnit.MILLISECONDS, partitions={"a": ms}, seconds_to_trim=trim, at=NOW)
        for ms, trim in ((1000, 50), (9000, 70))
    ]
    found = samples(*(figures(OTHER, lag=lag) for lag in lags))
    assert found["lading_received_bytes"] == {OTHER: 200}
    assert found["lading_job_state"] == {(*OTHER, "RUNNING"): 2}
    assert found["lading_lag_seconds"] == {OTHER: 9.0}
    assert found["lading_seconds_to_trim"] == {OTHER: 50}
