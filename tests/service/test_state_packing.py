"""Small files of state are put together, and nothing of them is lost or counted twice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lading.ids import Token
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state import packing
from lading.pipeline.state.files import TARGET_BYTES, TIME, StatePlace, StateWriter, read_state_file
from lading.pipeline.state.jobs import StateJobs
from lading.storage.local import LocalStore
from tests.service.conftest import Desk
from tests.service.test_watermarks import create, ids, put

SCHEMA = pa.schema([pa.field("k0", pa.int64()), pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32())])


def test_more_than_64_small_files_become_one_with_the_same_rows(tmp_path: Path, spark: SparkSession) -> None:
    place = StatePlace(open=partial(LocalStore, tmp_path), folder="_lading/j/state")
    writer = StateWriter(place, "a")
    for number in range(packing.MOST_FILES + 6):
        writer.write(pa.RecordBatch.from_pydict({"k0": [number], TIME: [5], BUCKET: [number % 64]}, schema=SCHEMA))
        writer._finish()
    files = list(writer.close())
    large = files.pop()
    jobs = StateJobs(spark=spark, place=place, group="packing", pool="default")
    assert packing.pack(jobs, SCHEMA, files[:63], lambda: Token(7)) == files[:63]
    huge = replace(large, size_bytes=TARGET_BYTES)
    first, packed = packing.pack(jobs, SCHEMA, [huge, *files], lambda: Token(7))
    assert first == huge
    assert sorted(read_state_file(place, packed)["k0"].to_pylist()) == list(range(len(files)))
    assert packed.rows == len(files)
    assert all((tmp_path / file.path).exists() for file in files)  # Older bills name them.


def kept_rows(desk: Desk) -> int:
    """How many rows the state has, in how many files at most."""
    state = desk.lading.bills(desk.lading.job("j"), 1)[0].state
    assert state is not None
    assert state.files < packing.MOST_FILES
    return state.rows


def test_a_row_far_ahead_of_the_clock_keeps_no_others(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,9999-12-31 00:00:00")
    desk.run()
    for minute in (1, 2):
        put(desk, f"b{minute}.csv", f"{minute + 2},2026-01-03 12:0{minute}:00")
        desk.run()
    assert kept_rows(desk) == 3
    put(desk, "c.csv", "2,9999-12-31 00:00:00")
    desk.run()
    assert ids(desk) == [1, 2, 3, 4]


def test_a_job_whose_files_are_packed_knows_its_keys(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_FILES", 3)
    create(desk, "'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id'")
    for batch in range(3):
        rows = [f"{number},2026-01-01 12:00:0{batch}" for number in range(4 * batch + 4)]
        put(desk, f"{batch}.csv", *rows)
        desk.run()
        assert kept_rows(desk) == 4 * batch + 4
    assert ids(desk) == list(range(12))
    monkeypatch.setattr(packing, "MOST_FILES", 2)
    for minute in (1, 2):  # Packed with rows that are kept, those that can match nothing more are not kept with them.
        put(desk, f"1{minute}.csv", f"{minute},2026-01-03 12:0{minute}:00")
        desk.run()
    assert kept_rows(desk) == 2
    assert desk.lading.verify("j").is_clean
