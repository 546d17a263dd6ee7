"""A soak of a few lives finds nothing; its verifier finds what others did to the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import deltalake
import polars as pl
import pytest

from lading.ids import JobId
from tests.crash.load_stories import FilesSender
from tests.soak.counts import CLASSES, Counts, render
from tests.soak.journal import Journal
from tests.soak.lakes import FolderLake
from tests.soak.maintenance import maintain
from tests.soak.plain import Lane, Soak
from tests.soak.plain_worker import Lives
from tests.support.stream_worker import JOB, StreamJob


@pytest.fixture(scope="module")
def lives() -> Iterator[tuple[Lives, Lives]]:
    with Lives("delta") as made, Lives("delta") as others:
        yield made, others


def soak(path: Path, lives: tuple[Lives, Lives], form: str) -> Lane:
    """Files that were loaded through kills."""
    sender, counts = FilesSender(path / "in", 3, Random(1)), Counts()
    job = StreamJob(home=str(path), form=form, source="files", address="", stream=sender.stream, start="")
    job.create_table()
    lane = Lane(job, sender, Journal(JOB, FolderLake(form, path / "warehouse" / "events"), counts), counts)
    killing = Soak([lane], lives, Random(2), None)
    for _ in range(6):
        killing.live(lane)
    killing.overtake(lane)
    killing.rest(lane)
    return lane


def delete_a_row(folder: Path) -> None:
    deltalake.DeltaTable(str(folder)).delete("k = 'key-1' AND n = 0")


def write_a_row_again(folder: Path) -> None:
    rows = pl.read_delta(str(folder)).filter((pl.col("k") == "key-2") & (pl.col("n") == 0))
    rows.write_delta(str(folder), mode="append")


def write_a_row_of_nobody(folder: Path) -> None:
    rows = pl.read_delta(str(folder)).head(1).with_columns(k=pl.lit("nobody"))
    rows.write_delta(str(folder), mode="append")


def test_lives_that_are_killed_and_tables_that_others_look_after(tmp_path: Path, lives: tuple[Lives, Lives]) -> None:
    lane = soak(tmp_path, lives, "delta")
    maintain("delta", tmp_path, "shop", lane.folder, removes_orphans=True)
    lane.sender.put(50)
    Soak([lane], lives, Random(3), None).run(0.0)
    assert lane.counts.is_clean, lane.counts
    assert lane.counts.done["kills"]
    assert lane.counts.done["rows"] == sum(lane.sender.sent.values())
    assert all(word in render({"x": lane.counts}) for word in ("kills", "commits", "rows", *CLASSES))


def test_what_others_did_to_the_rows_is_found(tmp_path: Path, lives: tuple[Lives, Lives]) -> None:
    lane = soak(tmp_path, lives, "delta")
    assert lane.counts.is_clean, lane.counts
    for harm in (delete_a_row, write_a_row_again, write_a_row_of_nobody):
        harm(lane.folder)
    lane.journal.end(lane.sender.sent)
    # The table is also not what the commits say, and has one row more than their totals.
    assert lane.counts.found == {"LOSS": 1, "DUP": 1, "CORRUPT": 1, "PROGRESS-MISMATCH": 2}


def test_rows_of_a_key_that_stand_in_the_wrong_order_are_found(tmp_path: Path) -> None:
    counts = Counts()
    journal = Journal(JobId("j"), FolderLake("delta", tmp_path), counts)
    journal.take({"k": ["a", "a", "b"], "n": [0, 2, 0]})
    assert counts.is_clean
    journal.take({"k": ["b", "a"], "n": [1, 1]})
    assert counts.found == {"REORDER": 1}
