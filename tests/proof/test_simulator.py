"""The simulator finds nothing in the real code and everything in the mutants."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.testing.catalogue import MUTANTS, applied
from lading.testing.simulator import ASIDE_EVERY, ERRORS_EVERY, FILES_EVERY, REPLAYS_EVERY, run_schedule, simulate
from lading.testing.verdict import CLASSES

SCHEDULES = 1000
"""In `make test`; `make torture` runs many more. Most mutants are found within the first 50, all within 800."""
MAX_SCHEDULES = 1000
RARE = {
    "attempts-begin-again": 777,
    "edit-keeps-finished": 34,
    "errors-position-behind": 120,
    "errors-rollback-overlooked": 180,
    "given-up-forgotten": 626,
    "listing-error-is-empty": 37,
    "load-file-forgets-nothing": 360,
    "load-file-of-a-loaded-one": 380,
    "move-called-harmless": 860,
    "own-commit-is-a-stranger": 50,
    "own-head-fences-a-start": 649,
    "prune-removes-head": 561,
    "replay-drops-bad-rows": 40,
    "replay-forgotten": 100,
    "replay-of-what-comes-again": 50,
    "replay-outlives-a-rollback": 180,
    "skipped-file-forgotten": 140,
    "state-of-a-failed-attempt": 48,
    "watermark-falls": 60,
}
"""Where those were found last that few schedules find. It is tried first; if it finds nothing, all are."""


def test_no_schedule_loses_doubles_reorders_or_corrupts_a_row() -> None:
    summary = simulate(range(SCHEDULES))
    assert summary.first_failure is None
    more = sum(SCHEDULES // every for every in (FILES_EVERY, REPLAYS_EVERY, ASIDE_EVERY, ERRORS_EVERY))
    assert (summary.schedules, sum(summary.classes.values())) == (SCHEDULES + more, 0)
    assert min(summary.commits, summary.crashes, summary.edits) > 400


@pytest.mark.parametrize("name", list(MUTANTS))
def test_every_mutant_is_found(name: str) -> None:
    with applied(MUTANTS[name]):
        summary = simulate([*([RARE[name]] if name in RARE else ()), *range(MAX_SCHEDULES)], stop_at_first=True)
    assert not summary.is_clean, f"{MUTANTS[name].law}: nothing noticed"


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 15


def test_a_mutant_is_taken_back() -> None:
    with applied(MUTANTS["no-compare-and-set"]):
        pass
    assert simulate(range(50)).is_clean


def test_a_seed_replays_exactly() -> None:
    first, second = (run_schedule(7)[0] for _ in range(2))
    assert first.table.versions == second.table.versions
    assert first.counts == second.counts


def test_the_command_reports_zero_in_every_class() -> None:
    result = CliRunner().invoke(app, ["simulate", "--seeds", "30", "--json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [report[kind] for kind in CLASSES] == [0] * len(CLASSES)


def test_a_job_that_is_opened_again_knows_how_large_its_batches_are() -> None:
    """Seed 4791: while a life says goodbye to open the job smaller, another one makes it as large as before."""
    result = CliRunner().invoke(app, ["simulate", "--seeds", "1", "--from", "4791", "--json"])
    assert json.loads(result.stdout)["RUNAWAY"] == 0


def test_the_command_fails_and_names_the_seed_for_a_mutant() -> None:
    result = CliRunner().invoke(app, ["simulate", "--seeds", "50", "--mutant", "two-commits", "--json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["failing_seed"] is not None
    assert report["DUP"] > 0


def test_the_command_lists_its_mutants() -> None:
    result = CliRunner().invoke(app, ["simulate", "--list-mutants", "--json"])
    assert set(json.loads(result.stdout)) == set(MUTANTS)
