"""A task without Spark: what is read comes to the writer in the same order, with notes between the rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import StageError
from lading.model.batch import Report, Split, StagedFile
from lading.model.codec import decode
from lading.model.rows import ERROR, FILE, RAW, ROW
from lading.pipeline.mapping import NOTE, UNSELECTED
from lading.pipeline.notes import Place, place_note, rescued_at
from lading.pipeline.reading import read_task
from lading.pipeline.tasks import TaskTools, write_task
from tests.support.examples import examples

SOURCE = pa.schema([("x", pa.int64())])
WHOLE = pa.schema([*SOURCE, (FILE, pa.string()), (ROW, pa.int64()), (RAW, pa.binary()), (ERROR, pa.string())])
TO_SPARK = pa.schema([*SOURCE, (NOTE, pa.binary())])

Item = tuple[str, int, int | None]
"""File, row, and the value; None: a bad row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    rows: int
    end: str = "z"
    finished: bool = False
    source_files: int = 1
    source_bytes: int = 2
    received_bytes: int = 3
    marks: dict[str, str] = field(default_factory=dict)
    skipped: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    lag_ms: int | None = None


class Kept:
    """Rows and bad rows as they came to the writer."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.bad: list[tuple[str, int, str, bytes]] = []
        self.is_aborted = False

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.column("x").to_pylist()

    def add(self, *, file: str, row: int, reason: str, raw: bytes, form: object = None) -> None:
        self.bad.append((file, row, reason, raw))

    def abort(self) -> None:
        self.is_aborted = True


class Writer(Kept):
    def close(self) -> tuple[StagedFile, ...]:
        return ()


class Bin(Kept):
    def put(self, line: str) -> None:
        raise NotImplementedError

    def close(self) -> str:
        return "bin"


def batch_of(items: Sequence[Item]) -> pa.RecordBatch:
    files, rows, values = zip(*items, strict=True)
    raws = [None if value is not None else f"{row}\0raw".encode() for _, row, value in items]
    errors = [None if value is not None else f"no {row}\0\n" for _, row, value in items]
    arrays = [values, files, rows, raws, errors]
    return pa.RecordBatch.from_arrays(
        [pa.array(array, kind.type) for array, kind in zip(arrays, WHOLE, strict=True)], schema=WHOLE
    )


def run(splits: Sequence[Sequence[Sequence[Item]]], *, rebatch: int = 1000) -> tuple[list[Report], Writer, Bin]:
    """Read and write, with something between them that does to batches what Spark may do: cut them again."""
    writer, bad = Writer(), Bin()

    def read(_: Sequence[Split]) -> Iterator[Any]:
        for batches in splits:
            yield from (batch_of(items) for items in batches if items)
            yield End(rows=sum(map(len, batches)))

    tools = _tools(read, len(splits), writer, bad)
    numbers = iter([pa.record_batch([pa.array(range(len(splits)), pa.int64())], names=["id"])])
    table = pa.Table.from_batches(list(read_task(tools, TO_SPARK, numbers)), TO_SPARK).combine_chunks()
    told = [row["report"] for batch in write_task(tools, "a", _mapped(table, rebatch)) for row in batch.to_pylist()]
    return [decode(Report, json.loads(text), where="test") for text in told], writer, bad


def _tools(read: Any, count: int, writer: Writer, bad: Bin) -> TaskTools:
    return TaskTools(
        read=read,
        open_writer=lambda _: writer,
        open_quarantine=lambda _: bad,
        batch_id="b",
        splits=tuple(Split(number=n, partition="p", start=str(n)) for n in range(count)),
        columns=("x",),
    )


def _mapped(table: pa.Table, rebatch: int) -> Iterator[pa.RecordBatch]:
    """Odd values are left out, as WHERE would."""
    values, notes = table.column("x").to_pylist(), table.column(NOTE).to_pylist()
    noted = [
        UNSELECTED.encode() if note is None and value is not None and value % 2 else note
        for value, note in zip(values, notes, strict=True)
    ]
    whole = pa.record_batch([pa.array(values, pa.int64()), pa.array(noted, pa.binary())], schema=TO_SPARK)
    for at in range(0, whole.num_rows, rebatch):
        yield whole.slice(at, rebatch)


items = st.lists(
    st.tuples(st.sampled_from(["a.csv", "b.csv"]), st.integers(1, 9), st.none() | st.integers(0, 99)), max_size=8
)


@settings(deadline=None)
@given(st.lists(st.lists(items, max_size=3), min_size=1, max_size=3), st.integers(1, 30))
def test_every_row_has_its_fate_and_bad_rows_their_places(splits: list[list[list[Item]]], rebatch: int) -> None:
    reports, writer, bad = run(splits, rebatch=rebatch)
    every = [item for batches in splits for batch in batches for item in batch]
    assert writer.rows == [value for _, _, value in every if value is not None and value % 2 == 0]
    assert bad.bad == [
        (file, row, f"no {row}\0\n", f"{row}\0raw".encode()) for file, row, value in every if value is None
    ]
    assert [report.split for report in reports] == list(range(len(splits)))
    for report, batches in zip(reports, splits, strict=True):
        values = [value for batch in batches for _, _, value in batch]
        assert report.rows.total == len(values)
        assert report.rows.error == values.count(None)
        assert report.rows.unselected == sum(1 for value in values if value is not None and value % 2)
        assert report.rows.adds_up


def test_rows_that_count_up_are_told_by_the_first() -> None:
    rows: list[Item] = [("a.csv", n, 0) for n in range(5, 20_000)]
    rows[-1] = ("a.csv", 19_999, None)
    _, _, bad = run([[rows]])
    assert bad.bad[0][:2] == ("a.csv", 19_999)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.integers(1, 40)), min_size=1, max_size=9))
def test_rows_of_many_files_in_one_batch_are_told_by_the_first_of_each(runs: list[tuple[str, int, int]]) -> None:
    rows: list[Item] = [
        (file, row, None if row % 5 == 0 else 0) for file, first, count in runs for row in range(first, first + count)
    ]
    note = place_note(batch_of(rows))
    assert len(note) < 40 * (len(runs) + 1) or len(rows) < 4 * len(runs)
    places = [Place(note).of(number) for number in range(len(rows))]
    assert places == [(file, row) for file, row, _ in rows]
    files, numbers = Place(note).of_rows(pa.array(range(len(rows)), pa.int64()))
    assert list(zip(files.to_pylist(), numbers.to_pylist(), strict=True)) == places
    _, _, bad = run([[rows]])
    assert [place[:2] for place in bad.bad] == [(file, row) for file, row, value in rows if value is None]


def test_a_split_whose_rows_do_not_all_arrive_fails_and_its_files_go() -> None:
    writer = Writer()
    tools = _tools(None, 1, writer, Bin())
    note = b"E" + json.dumps({"split": 0, "rows": 3}).encode()
    batch = pa.record_batch([pa.array([1, None], pa.int64()), pa.array([None, note], pa.binary())], schema=TO_SPARK)
    with pytest.raises(StageError, match="read 3 rows, and 1 came"):
        list(write_task(tools, "a", iter([batch])))
    assert writer.is_aborted


def test_a_split_without_an_end_fails() -> None:
    def read(_: Sequence[Split]) -> Iterator[Any]:
        yield batch_of([("a.csv", 1, 1)])

    numbers = iter([pa.record_batch([pa.array([0], pa.int64())], names=["id"])])
    with pytest.raises(StageError, match="ended without saying where"):
        list(read_task(_tools(read, 1, Writer(), Bin()), TO_SPARK, numbers))


def test_small_batches_are_put_together() -> None:
    def read(_: Sequence[Split]) -> Iterator[Any]:
        for number in range(500):
            yield batch_of([(f"{number}.csv", 1, 1)] * 10)
        yield End(rows=5000)

    numbers = iter([pa.record_batch([pa.array([0], pa.int64())], names=["id"])])
    assert len(list(read_task(_tools(read, 1, Writer(), Bin()), TO_SPARK, numbers))) == 1


def test_long_rows_are_refused_until_batches_are_small() -> None:
    schema = pa.schema([("x", pa.string()), (NOTE, pa.binary())])
    count = 1000

    def read(_: Sequence[Split]) -> Iterator[Any]:
        values = pa.array(["x" * 5000] * count)
        files, rows = pa.array(["a"] * count), pa.array(range(1, count + 1), pa.int64())
        nothing = [pa.nulls(count, pa.binary()), pa.nulls(count, pa.string())]
        yield pa.RecordBatch.from_arrays([values, files, rows, *nothing], names=["x", FILE, ROW, RAW, ERROR])
        yield End(rows=count)

    def numbers() -> Iterator[pa.RecordBatch]:
        return iter([pa.record_batch([pa.array([0], pa.int64())], names=["id"])])

    tools = _tools(read, 1, Writer(), Bin())
    with pytest.raises(StageError, match="too long"):
        list(read_task(tools, schema, numbers()))
    told = list(read_task(replace(tools, max_records=1000), schema, numbers()))
    assert sum(batch.num_rows for batch in told) == count + 2


WITHOUT_PANDAS = """
import sys
from lading.pipeline import daemon
daemon.prepare()
import pyarrow as pa
pa.array([1, None]), pa.scalar("x")
from lading.pipeline.notes import binaries, bad_notes, place_note
from lading.sources.files.rows import RowShaper, BadRow
shaper = RowShaper(pa.schema([("x", pa.string())]), "f", {})
for batch in [*shaper.good([pa.nulls(3, pa.string())], 1), shaper.bad([BadRow(1, b"a", "b")])]:
    place_note(batch), bad_notes(batch).to_pylist()
assert "pandas" not in sys.modules, "pandas was imported"
"""


def test_workers_do_not_import_pandas() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=True)


FAULTS = """
import resource
from lading.pipeline.freed_memory import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        bytes(4 * 1024 * 1024)[::2].count(b"x")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
taken = faults()
if keep_freed_memory():
    faults()
    assert faults() < taken / 10, taken
"""


def test_blocks_of_a_file_do_not_take_new_pages_each_time() -> None:
    subprocess.run([sys.executable, "-c", FAULTS], check=True)


ADDRESSES = """
from lading.pipeline.daemon import prepare
prepare()
from pathlib import Path
(size,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")]
assert int(size) < 700 * 1024, f"{size} kB"
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
def test_a_worker_begins_with_few_addresses() -> None:
    """spark.executor.pyspark.memory limits them: a worker that had more from its start could do nothing at all."""
    subprocess.run([sys.executable, "-c", ADDRESSES], check=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"x":1}', ("_file", "_row")),
        ('{"_file":"mine","x":1}', ("__file", "_row")),
        ('{"_row":' + "9" * 5000 + ',"__row":2}', ("_file", "___row")),
        ('{"x":{"_file":"inside"}}', ("_file", "_row")),
    ],
)
def test_the_place_of_what_is_rescued_hides_no_field(text: str, names: tuple[str, str]) -> None:
    def pairs(found: str) -> list[tuple[str, Any]]:
        decoded: list[tuple[str, Any]] = json.loads(found, object_pairs_hook=list, parse_int=str)
        return decoded

    assert pairs(rescued_at(text, "a.json", 7)) == [*pairs(text), (names[0], "a.json"), (names[1], "7")]
