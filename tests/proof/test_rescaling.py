"""The number of tasks changes while a job with state runs, and things fail before, between and after."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.testing.rescaling import rescale
from lading.testing.verdict import CLASSES

RUNS = 1500
SOME = 300
"""In `make test`; the long proof has all of them."""


@pytest.mark.parametrize("runs", [SOME, pytest.param(RUNS, marks=pytest.mark.slow)])
def test_runs_from_seven_tasks_to_two_to_any_number(runs: int) -> None:
    summary = rescale(range(runs))
    assert summary.first_failure is None
    assert (summary.schedules, sum(summary.classes.values())) == (runs, 0)
    assert (summary.commits > 10 * runs, summary.crashes > 2 * runs, summary.in_flight > runs) == (True, True, True)


def test_a_bucket_that_is_lost_at_a_rescale_is_found() -> None:
    words = ["simulate", "--seeds", "50", "--rescaling", "--mutant", "bucket-lost-at-a-rescale", "--json"]
    result = CliRunner().invoke(app, words)
    report = json.loads(result.stdout)
    assert (result.exit_code, sum(report[kind] for kind in CLASSES) > 0) == (1, True)
