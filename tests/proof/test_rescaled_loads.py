"""Tasks, partitions, shards and files change in number while a job loads, and things fail before, between and after."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.commit import coordinator
from lading.commit.next_bill import draft_load
from lading.model.bill import Bill
from lading.testing.catalogue import MUTANTS, applied
from lading.testing.rescaled_loads import CASES, rescale_loads
from lading.testing.verdict import CLASSES, DUP, LOSS, REORDER

RUNS = 1500
SOME = 180
"""In `make test`; the long proof has all of them."""


def check_runs(runs: int) -> None:
    summary = rescale_loads(range(runs))
    assert summary.first_failure is None
    assert (summary.schedules, sum(summary.classes.values())) == (runs, 0)
    assert summary.commits > 10 * runs
    assert summary.crashes > 2 * runs
    assert min(summary.changed_open, summary.changed_recovering) > runs
    assert min(summary.cases[" ".join(case)] for case in CASES) >= runs // len(CASES)


def test_loads_are_whole_and_in_order_through_changes_of_size() -> None:
    check_runs(SOME)


@pytest.mark.slow
def test_1500_runs_from_7_to_2_from_2_to_7_and_from_any_size_to_any() -> None:
    check_runs(RUNS)


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        ("new-partition-at-latest", LOSS),
        ("position-counts-fetched", LOSS),
        ("doubled-report-accepted", DUP),
        ("failed-attempt-committed", DUP),
        ("child-before-parent", REORDER),
    ],
)
def test_a_broken_law_is_found(mutant: str, kind: str) -> None:
    with applied(MUTANTS[mutant]):
        assert rescale_loads(range(SOME), stop_at_first=True).classes[kind]


def test_files_of_a_batch_that_stand_in_another_order_than_its_splits_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files of one batch hold rows of the same keys, whichever task read them first."""

    def turned_round(*args: Any, **words: Any) -> Bill:
        bill = draft_load(*args, **words)
        return replace(bill, files=bill.files[::-1])

    monkeypatch.setattr(coordinator, "draft_load", turned_round)
    summary = rescale_loads(range(SOME), stop_at_first=True)
    assert {kind for kind, count in summary.classes.items() if count} == {REORDER}


def test_the_command_says_what_was_counted() -> None:
    result = CliRunner().invoke(app, ["simulate", "--seeds", "9", "--rescaling-loads", "--json"])
    report = json.loads(result.stdout)
    assert (result.exit_code, sum(report[kind] for kind in CLASSES), report["kinesis 7 to 2"]) == (0, 0, 1)
    assert report["rows"] > 0
