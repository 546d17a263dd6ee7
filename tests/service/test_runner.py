"""What becomes of a job when something happens that nobody foresaw."""

from __future__ import annotations

import pytest

from lading.jobs.record import JobState
from tests.service import routine_fakes
from tests.service.routine_fakes import Desk, FakeKafka
from tests.service.routine_words import KAFKA

bench = routine_fakes.bench


def test_an_error_that_nobody_foresaw_is_told_in_the_record(bench: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that looked healthy and loaded nothing: only the log knew."""
    bench.sql(f"CREATE ROUTINE LOAD j ON t {KAFKA.format('')}")
    bench.run()
    with monkeypatch.context() as broken:
        broken.setattr(FakeKafka, "plan", lambda *words: 1 / 0)
        assert not bench.lading.runner(bench.lading.any_job("shop.j").job_id).is_idle()
        bench.run()
        record = bench.lading.any_job("shop.j")
        assert record.state is JobState.PAUSED
        assert "division by zero" in str(bench.show()["ReasonOfStateChanged"])
        assert record.auto_resume.next_at is not None
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert bench.show()["State"] == "RUNNING"
