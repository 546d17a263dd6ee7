"""Metrics: what is counted, what outlives a restart, and that labels stay bounded."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy import event, insert

from lading.errors import CommitRefusedError, FencedError, StageError, StoreError, UnknownOutcomeError
from lading.ids import JobId
from lading.jobs.events import Stopped
from lading.jobs.record import JobRecord
from lading.model.tally import RowCounts, Tally
from lading.service.telemetry.metrics import Metrics
from lading.service.telemetry.recent import KEPT_BEATS, RecentActivity
from lading.service.views.jobs import JobViews
from lading.status.lag import LagUnit
from lading.status.outcomes import outcome_of
from lading.status.rates import Beat
from lading.store.jobs import _columns
from lading.store.schema import JOBS
from lading.testing.clock import ManualClock
from tests.http.rig import Rig

LABELS = '{database="shop",job_name="orders",kind="streaming"'


def value(metrics: Metrics, sample: str) -> float:
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith(sample)]
    assert len(lines) == 1, (sample, lines)
    return float(lines[0].rpartition(" ")[2])


def test_totals_come_from_the_bills_and_outlive_a_restart(loaded: Rig) -> None:
    for metrics in (loaded.metrics, Metrics(loaded.lading.store, loaded.lading.clock)):
        rows = 'lading_rows_total{database="shop",fate="%s",job_name="orders"'
        assert value(metrics, rows % "loaded") == 4
        assert value(metrics, rows % "error") == 2
        assert value(metrics, f"lading_source_files_total{LABELS}") == 3
        assert value(metrics, f"lading_data_files_total{LABELS}") == 3
        assert value(metrics, f"lading_job_commits_total{LABELS}") == 3
        assert value(metrics, f'lading_batches_total{LABELS},outcome="succeeded"') == 3
        assert value(metrics, f'lading_job_state{LABELS},state="RUNNING"') == 1


def test_commits_are_counted_by_outcome(loaded: Rig) -> None:
    metrics, record = loaded.metrics, loaded.lading.job("orders")
    errors = [FencedError("x"), UnknownOutcomeError("x"), CommitRefusedError("x"), StageError("x"), KeyError("x")]
    assert [outcome_of(error) for error in errors] == ["fenced", "unknown", "refused", "failed", "failed"]
    for error in errors:
        metrics.batch_ended(record, outcome_of(error), 2.0)
    metrics.fenced(record)
    metrics.auto_resumed(record)
    commits = f"lading_commits_total{LABELS},outcome="
    told = {name: value(metrics, f'{commits}"{name}"') for name in ("landed", "not_landed", "unknown", "fenced")}
    assert told == {"landed": 3, "not_landed": 1, "unknown": 1, "fenced": 1}
    assert value(metrics, f"lading_fenced_total{LABELS}") == 1
    assert value(metrics, f"lading_auto_resumes_total{LABELS}") == 1
    assert value(metrics, f"lading_job_batch_seconds_sum{LABELS}") == 10.0
    assert "_created" not in metrics.render().decode()


def test_counters_of_a_job_are_shown_before_they_count(rig: Rig) -> None:
    """The increase of a counter that is born with a one is nothing: nobody would be told of the first time."""
    metrics, record = rig.metrics, rig.create()
    for outcome in ("landed", "not_landed", "unknown", "fenced"):
        assert value(metrics, f'lading_commits_total{LABELS},outcome="{outcome}"') == 0
    assert value(metrics, f"lading_fenced_total{LABELS}") == 0
    assert value(metrics, f"lading_auto_resumes_total{LABELS}") == 0
    metrics.fenced(record)
    assert value(metrics, f"lading_fenced_total{LABELS}") == 1


def test_steps_are_timed_by_their_names(loaded: Rig) -> None:
    clock = ManualClock()
    metrics = Metrics(loaded.lading.store, clock)
    timer = metrics.timer(loaded.lading.job("orders"))
    for name in ("plan.before", "plan.after", "stage.before", "stage.after", "settle.after"):
        clock.sleep(3)
        timer.saw(name)
    assert value(metrics, f'lading_job_step_seconds_sum{LABELS},step="stage"') == 3.0
    assert 'step="settle"' not in metrics.render().decode()


def test_a_lag_is_shown_while_it_is_fresh(loaded: Rig) -> None:
    clock = ManualClock()
    metrics, record = Metrics(loaded.lading.store, clock), loaded.lading.job("orders")
    metrics.lag_seen(record, unit=LagUnit.RECORDS, partitions={"0": 5, "1": 2}, seconds_to_trim=90)
    assert value(metrics, f"lading_lag_records{LABELS}") == 7
    assert value(metrics, f"lading_seconds_to_trim{LABELS}") == 90
    clock.sleep(601)
    assert "lading_lag_records{" not in metrics.render().decode()


def test_a_store_that_is_away_is_a_sample_not_a_failed_scrape(loaded: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_options: object) -> None:
        msg = "away"
        raise StoreError(msg)

    monkeypatch.setattr(loaded.lading.store, "list_jobs", fail)
    assert value(loaded.metrics, "lading_store_up") == 0
    assert loaded.client().get("/metrics").status_code == 200


def test_labels_stay_bounded_and_jobs_that_are_gone_make_room(rig: Rig) -> None:
    metrics = Metrics(rig.lading.store, rig.lading.clock, most_jobs=2)
    records = [rig.create_routine(f"j{number}") for number in range(5)]
    for record in records:
        metrics.fenced(record)
        metrics.step(record, "plan", 1.0)
    text = metrics.render().decode()
    assert value(metrics, 'lading_fenced_total{database="other"') == 3
    assert value(metrics, 'lading_job_state{database="other"') == 3
    assert text.count("lading_job_step_seconds_count{") == 3
    stored = rig.lading.store.load_job_by_id(records[0].job_id)
    rig.lading.runner(stored.record.job_id).apply(Stopped(at=rig.lading.clock.now()))
    assert 'job_name="shop.j0"' not in metrics.render().decode()
    assert value(metrics, 'lading_job_state{database="shop",job_name="shop.j2"') == 1
    assert value(metrics, 'lading_job_state{database="other"') == 2


def test_listing_a_thousand_jobs_takes_a_few_queries(rig: Rig) -> None:
    first = rig.create_routine("j0")
    others = [replace(first, job_id=JobId(f"id-{number}"), name=f"j{number}") for number in range(1, 1000)]
    with rig.lading.store._database.write("Making many jobs") as connection:
        connection.execute(insert(JOBS), [{**_columns(record), "version": 1} for record in others])
    sights, asked = JobViews(rig.lading), list[str]()
    engine = rig.lading.store._database._engine

    def count(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", count)
    assert len(sights.list_jobs()) == 1000
    assert len([text for text in asked if text.startswith("SELECT")]) == 3
    asked.clear()
    rig.metrics.render()
    assert len([text for text in asked if text.startswith("SELECT")]) == 2


def beat(clock: ManualClock, rows: int) -> Beat:
    return Beat(at=clock.now(), tally=Tally(rows=RowCounts(total=rows, loaded=rows), commits=1))


def test_the_lookout_takes_each_commit_once_and_stays_bounded() -> None:
    lookout, clock, job_id = RecentActivity(), ManualClock(), JobId("j")
    assert lookout.newest_seq(job_id) is None
    for seq in (1, 2, 2, 1, 3):
        lookout.saw_commit(job_id, seq, beat(clock, seq))
    assert [found.tally.rows.total for found in lookout.beats(job_id)] == [1, 2, 3]
    lookout.saw_commits(job_id, [(0, beat(clock, 10)), (2, beat(clock, 20))])
    assert [found.tally.rows.total for found in lookout.beats(job_id)] == [10, 20, 3]
    lookout.saw_commits(job_id, [(3, beat(clock, 30)), (4, beat(clock, 40))])
    assert [found.tally.rows.total for found in lookout.beats(job_id)] == [10, 20, 30, 40]
    for seq in range(5, 1000):
        lookout.saw_commit(job_id, seq, beat(clock, seq))
    assert len(lookout.beats(job_id)) == KEPT_BEATS
    lookout.forget_all_but([])
    assert lookout.beats(job_id) == []


def test_rates_are_known_after_a_restart_from_the_index(loaded: Rig) -> None:
    (seen,) = JobViews(loaded.lading).list_jobs()
    assert seen.rows_per_s > 0
    assert seen.rows_per_s == pytest.approx(JobViews(loaded.lading).list_jobs()[0].rows_per_s, rel=0.5)


def test_metrics_may_be_told_from_many_threads(loaded: Rig) -> None:
    record: JobRecord = loaded.lading.job("orders")

    def tell() -> None:
        for _ in range(200):
            loaded.metrics.fenced(record)
            loaded.metrics.step(record, "plan", 0.1)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        loaded.metrics.render()
    for thread in threads:
        thread.join()
    assert value(loaded.metrics, f"lading_fenced_total{LABELS}") == 800
