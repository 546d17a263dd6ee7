"""A soak of a few lives finds nothing; its verifier finds what others did to the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import deltalake
import pytest

from lading.ids import JobId
from tests.crash.load_stories import FilesSender
from tests.soak.counts import CLASSES, Counts, render
from tests.soak.journal import Journal
from tests.soak.maintenance import maintain
from tests.soak.plain import Lane, Soak
from tests.soak.plain_worker import Lives
from tests.support.stream_worker import JOB, StreamJob


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as made:
        yield made


def soak(path: Path, lives: Lives, form: str) -> Lane:
    """Files that were loaded through kills."""
    sender, counts = FilesSender(path / "in", 3, Random(1)), Counts()
    job = StreamJob(home=str(path), form=form, source="files", address="", stream=sender.stream, start="")
    job.create_table()
    lane = Lane(job, sender, Journal(JOB, path / "warehouse" / "events", counts), counts)
    rng = Soak([lane], lives, Random(2), None)
    for _ in range(6):
        rng.live(lane)
    rng.rest(lane)
    return lane


def delete_a_row(folder: Path) -> None:
    deltalake.DeltaTable(str(folder)).delete("k = 'key-1' AND n = 0")


def write_a_row_again(folder: Path) -> None:
    table = deltalake.DeltaTable(str(folder))
    rows = table.to_pyarrow_table(filters=[("k", "=", "key-1"), ("n", "=", 0)])
    deltalake.write_deltalake(table, rows, mode="append")


def write_a_row_of_nobody(folder: Path) -> None:
    table = deltalake.DeltaTable(str(folder))
    rows = table.to_pyarrow_table().slice(0, 1)
    strange = rows.set_column(0, "k", [["nobody"]])
    deltalake.write_deltalake(table, strange.cast(rows.schema), mode="append")


def test_lives_that_are_killed_and_tables_that_others_look_after(tmp_path: Path, lives: Lives) -> None:
    lane = soak(tmp_path, lives, "delta")
    maintain("delta", tmp_path, "shop", lane.folder, removes_orphans=True)
    lane.sender.put(50)
    Soak([lane], lives, Random(3), None).run(0.0)
    assert lane.counts.is_clean, lane.counts
    assert lane.counts.done["kills"]
    assert lane.counts.done["rows"] == sum(lane.sender.sent.values())
    assert all(word in render({"x": lane.counts}) for word in ("kills", "commits", "rows", *CLASSES))


@pytest.mark.parametrize(
    ("harm", "kind"), [(delete_a_row, "LOSS"), (write_a_row_again, "DUP"), (write_a_row_of_nobody, "CORRUPT")]
)
def test_what_others_did_to_the_rows_is_found(
    tmp_path: Path, lives: Lives, harm: Callable[[Path], None], kind: str
) -> None:
    lane = soak(tmp_path, lives, "delta")
    assert lane.counts.is_clean
    harm(lane.folder)
    lane.journal.end("delta", lane.sender.sent)
    # The table is also not what the commits say.
    assert set(lane.counts.found) == {kind, "PROGRESS-MISMATCH"}
    assert lane.counts.found[kind] == 1


def test_rows_of_a_key_that_stand_in_the_wrong_order_are_found(tmp_path: Path) -> None:
    counts = Counts()
    journal = Journal(JobId("j"), tmp_path, counts)
    journal.take({"k": ["a", "a", "b"], "n": [0, 2, 0]})
    assert counts.is_clean
    journal.take({"k": ["b", "a"], "n": [1, 1]})
    assert counts.found == {"REORDER": 1}
