"""Mutants of the real code that merges batches with state: each must be found by what compares, or by a check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.state_stories import Found
from tests.crash.stop_chain import Chain, Stop
from tests.service.conftest import Desk
from tests.service.state_mutants import MUTANTS, STOPS, Mutant, cut_copies, late_rows_twice, use_copies
from tests.service.test_watermarks import create, ids, put

QUICK = ("uncommitted counts", "reopened counts")


def story(path: Path, spark: SparkSession, kind: str, stops: Sequence[Stop] = STOPS) -> Found:
    chain = Chain(path, "delta", kind, spark, "mutants")
    for stop in stops:
        chain.live(stop)
    chain.stories.put(2)
    return chain.end()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "joins"])
def test_the_code_as_it_is_is_right(tmp_path: Path, spark: SparkSession, kind: str) -> None:
    found = story(tmp_path, spark, kind)
    assert found.is_clean, found
    assert found.results > 100


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(each, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for each in MUTANTS
        for name in [f"{each.name} {each.kind}"]
    ],
)
def test_each_mutant_is_found(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, mutant: Mutant
) -> None:
    mutant.switch_off(monkeypatch)
    found = story(tmp_path, spark, mutant.kind, mutant.stops)
    assert mutant.finds(found) > 0, found


@pytest.mark.slow
@pytest.mark.parametrize("trusts", [False, True])
def test_a_copy_that_is_believed_as_it_is_is_found(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, trusts: bool
) -> None:
    use_copies(monkeypatch, tmp_path / "copies", trusts=trusts)
    chain, cut = Chain(tmp_path, "delta", "counts", spark, "copies"), 0
    for stop in (Stop("commit.after", 2), Stop("commit.before", 2), *STOPS):
        chain.live(stop)
        cut += cut_copies(tmp_path / "copies")
    found = chain.end()
    assert cut > 0
    assert found.is_clean is not trusts, found


@pytest.mark.slow
def test_a_late_row_that_is_counted_twice_stops_the_job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    with monkeypatch.context() as patch:
        late_rows_twice(patch)
        put(desk, "b.csv", "2,2026-01-01 11:00:00", "3,2026-01-01 12:00:00")
        desk.run()
        assert desk.show("Status") == "PAUSED"
        assert "has rows that do not add up" in desk.show("ErrorMsg")
        assert ids(desk) == [1]
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert ids(desk) == [1, 3]
