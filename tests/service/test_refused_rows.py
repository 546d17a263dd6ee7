"""The bad rows of a refused batch can be seen, all of them, until something is committed. Without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lading.errors import BudgetError, StageError
from lading.pipeline.quarantine import QuarantineFile
from lading.service.views.jobs import JobViews
from tests.service.file_edit_rig import paused
from tests.service.routine_fakes import Desk as Bench

__all__ = ["paused"]


def refuse(bench: Bench, *rows: str) -> str:
    """A batch with these bad rows was refused, as its runner hears of it."""
    record = bench.lading.any_job("j")
    file = QuarantineFile(bench.lading.home.quarantine(record.job_id), f"attempt{len(rows)}-0")
    for number, raw in enumerate(rows, 1):
        file.add(file="in/c.csv", row=number, reason="it is no number", raw=raw.encode())
    place, head = file.close(), bench.lading.bills(record, 1)[0].head
    error = BudgetError("Insert has filtered data in strict mode", head=head.bill_name, quarantine=[place])
    bench.lading.runner(record.job_id).tell_error(error)
    return place


def shown(bench: Bench) -> list[tuple[Any, ...]]:
    return [(row[0], row[2], row[4]) for row in bench.sql("SHOW LOAD ERRORS FOR j LIMIT 1000")]


def test_all_of_them_are_shown_and_belong_to_no_commit(paused: Bench) -> None:
    refuse(paused, *(f"bad {number}" for number in range(250)))
    assert shown(paused) == [(None, number + 1, f"bad {number}") for number in range(250)]
    paused.restart()
    assert len(shown(paused)) == 250, "as long as nothing else comes"


def test_the_next_refused_batch_takes_their_place(paused: Bench) -> None:
    refuse(paused, "old", "older")
    refuse(paused, "new")
    assert shown(paused) == [(None, 1, "new")]


def test_what_is_committed_ends_them_also_when_nobody_could_forget_them(paused: Bench) -> None:
    refuse(paused, "bad")
    offset = json.dumps({"fileName": f"{paused.path}/in/c.csv"})
    paused.sql(f"ALTER JOB j PROPERTIES('offset'='{offset}')")
    assert shown(paused) == []
    paused.restart()
    assert shown(paused) == []


def test_an_attempt_that_failed_otherwise_leaves_them(paused: Bench) -> None:
    refuse(paused, "bad")
    runner = paused.lading.runner(paused.lading.any_job("j").job_id)
    runner.tell_error(StageError("a disk was full"))
    runner.tell_error(BudgetError("of an older form, without facts"))
    assert shown(paused) == [(None, 1, "bad")]


def test_when_their_file_was_cleaned_that_is_said(paused: Bench) -> None:
    Path(refuse(paused, "bad")).unlink()
    assert "the quarantine file is gone" in str(paused.sql("SHOW LOAD ERRORS FOR j"))


def test_they_end_with_the_job(paused: Bench) -> None:
    record = paused.lading.any_job("j")
    refuse(paused, "bad")
    paused.sql("DROP JOB j")
    assert list(JobViews(paused.lading).read_errors("j")) == []
    assert paused.lading.store.read_setting(f"refused/{record.job_id}") is None
