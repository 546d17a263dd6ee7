"""The number of tasks changes while a job with state runs, and things fail before, between and after."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from lading.cli.main import app
from lading.testing.rescaling import rescale
from lading.testing.verdict import CLASSES

RUNS = 1500


def test_1500_runs_from_seven_tasks_to_two_to_any_number() -> None:
    summary = rescale(range(RUNS))
    assert summary.first_failure is None
    assert (summary.schedules, sum(summary.classes.values())) == (RUNS, 0)
    assert (summary.commits > 10 * RUNS, summary.crashes > 2 * RUNS, summary.in_flight > RUNS) == (True, True, True)


def test_a_bucket_that_is_lost_at_a_rescale_is_found() -> None:
    words = ["simulate", "--seeds", "50", "--rescaling", "--mutant", "bucket-lost-at-a-rescale", "--json"]
    result = CliRunner().invoke(app, words)
    report = json.loads(result.stdout)
    assert (result.exit_code, sum(report[kind] for kind in CLASSES) > 0) == (1, True)
