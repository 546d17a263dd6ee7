"""Copies of state files on the disk of an executor: bounded, and those used last stay."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lading.model.batch import StateFile
from lading.model.s3_access import S3Access
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state.copies import StateCopies
from lading.pipeline.state.files import TIME, StatePlace, StateWriter, read_state_file
from lading.storage.store import open_store


def put(place: StatePlace, number: int) -> StateFile:
    rows = {"k0": [f"{number}"], TIME: pa.array([number], pa.int64()), BUCKET: pa.array([0], pa.int32())}
    writer = StateWriter(place, f"{number}")
    writer.write(pa.RecordBatch.from_pydict(rows))
    return writer.close()[0]


@pytest.fixture
def place(tmp_path: Path) -> StatePlace:
    copies = StateCopies(folder=str(tmp_path / "copies"), most_bytes=1)
    return StatePlace(open=partial(open_store, str(tmp_path / "t"), S3Access()), folder="state", copies=copies)


def bounded(place: StatePlace, most_bytes: int) -> tuple[StatePlace, Path]:
    assert place.copies is not None
    folder = place.copies.folder
    copies = StateCopies(folder=folder, most_bytes=most_bytes)
    return StatePlace(open=place.open, folder=place.folder, copies=copies), Path(folder)


def test_those_used_longest_ago_go_and_are_fetched_again(place: StatePlace) -> None:
    files = [put(place, number) for number in range(4)]
    place, folder = bounded(place, 3 * files[0].size_bytes)
    for age, file in enumerate(files[:3]):
        read_state_file(place, file)
        os.utime(folder / file.digest, (age, age))
    read_state_file(place, files[0])  # Used again: the second is the oldest now.
    read_state_file(place, files[3])
    assert {path.name for path in folder.iterdir()} == {files[number].digest for number in (0, 2, 3)}
    for number, file in enumerate(files):
        assert read_state_file(place, file).column("k0").to_pylist() == [f"{number}"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 3 * files[0].size_bytes


def test_a_file_larger_than_all_copies_may_be_is_read_and_not_kept(place: StatePlace) -> None:
    file = put(place, 1)
    place, folder = bounded(place, file.size_bytes - 1)
    assert read_state_file(place, file).num_rows == 1
    assert list(folder.iterdir()) == []


def test_what_is_not_a_copy_is_left_alone_and_drafts_of_the_dead_go(place: StatePlace) -> None:
    file = put(place, 1)
    place, folder = bounded(place, file.size_bytes)
    folder.mkdir()
    others = ["notes.txt", "a" * 63, f"{'b' * 64}.txt"]
    dead, alive = f"{'c' * 64}.7.aa.draft", f"{'d' * 64}.7.bb.draft"
    for name in (*others, dead, alive):
        (folder / name).write_bytes(b"x" * 5000)
    os.utime(folder / dead, (0, 0))
    read_state_file(place, file)
    assert {path.name for path in folder.iterdir()} == {*others, alive, file.digest}
