"""Large files that are read in parts: every row once, whatever the cuts."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.net.addresses import EVERY_PRIVATE
from lading.sources.files.packing import SplitSizing
from lading.sources.files.reader import output_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec
from lading.sources.kind import OpenContext
from lading.sources.registry import kind_of
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.load_specs import load_spec
from lading.sql.syntax.parse import parse_statement
from lading.testing.clock import ManualClock
from tests.sources.support import BIG, Place, read_all, spec_of, with_columns
from tests.sources.test_matrix import orc, parquet, table
from tests.support.examples import examples

SMALL = SplitSizing(target_bytes=7, parallel=1, smallest_bytes=1, open_cost_bytes=0, max_splits=10_000)


def load_in_parts(spec: FilesSpec, sizing: SplitSizing) -> tuple[list[dict[str, object]], int]:
    source = FilesSource(spec, sizing=sizing)
    splits = source.plan(source.open("").partitions, BIG)
    rows, ends = read_all(spec, splits)
    assert sum(end.source_files for end in ends) == 1
    return rows, len(splits)


lines_ = st.lists(st.text(alphabet="ab\r|!", max_size=12), min_size=1, max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(
    lines=lines_,
    size=st.integers(1, 30),
    delimiter=st.sampled_from(["\n", "\r\n", "|!"]),
    closed=st.booleans(),
    header=st.booleans(),
)
def test_every_line_is_in_exactly_one_part(
    lines: list[str], size: int, delimiter: str, closed: bool, header: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(tmp_path_factory.mktemp("parts"))
    text = delimiter.join([*(["c1"] if header else []), *lines]) + (delimiter if closed else "")
    place.put("a.csv", text.encode())
    kind = "csv_with_names" if header else "csv"
    spec = with_columns(place.bare("a.csv", format=kind, line_delimiter=delimiter, column_separator=";"), "c1")
    whole, count = load_in_parts(spec, SplitSizing())
    assert count == 1
    parts, _ = load_in_parts(spec, replace(SMALL, target_bytes=size))
    assert [row["c1"] for row in parts] == [row["c1"] for row in whole]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_groups_and_stripes_are_in_exactly_one_part(place: Place, kind: str) -> None:
    many = pa.concat_tables([table()] * 5)
    content = parquet(many, row_group_size=1_500) if kind == "parquet" else orc(many, stripe_size=20_000)
    place.put("a.bin", content)
    spec = place.spec("a.bin", format=kind)
    rows, count = load_in_parts(spec, replace(SMALL, target_bytes=len(content) // 7))
    assert count >= 7
    assert [row["id"] for row in rows] == many["id"].to_pylist()
    first = [row for row in rows if "#" not in str(row["__file"])]
    assert [row["__row"] for row in first] == list(range(1, len(first) + 1))
    # The rows of Parquet files have one number each, whichever part they are read in.
    assert (len(first) == len(rows)) == (kind == "parquet")


@pytest.mark.parametrize("kind", ["csv", "json", "orc", "parquet"])
def test_a_row_that_tells_its_number_tells_that_of_its_file(folder: Place, kind: str) -> None:
    count = 900_000 if kind == "csv" else 250_000
    numbers = pa.array(range(1, count + 1))
    if kind == "csv":
        folder.put("a.csv", b"n\n" + b"".join(b"%08d\n" % n for n in range(1, count + 1)))
    elif kind == "json":
        folder.put("a.json", b"".join(b'{"n": %d, "x": "some text beside"}\n' % n for n in range(1, count + 1)))
    else:
        texts = pa.array([os.urandom(30).hex() for _ in range(count)])
        content = pa.table({"n": numbers, "x": texts})
        folder.put(
            f"a.{kind}",
            (parquet(content, row_group_size=20_000) if kind == "parquet" else orc(content, stripe_size=65536)),
        )
    form = "csv_with_names" if kind == "csv" else kind
    text = (
        "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT n, _file, _row, _batch "
        f'FROM FILE("uri"="{folder.uri}/a.{kind}", "format"="{form}")'
    )
    statement = parse_statement(text)
    assert isinstance(statement, CreateJob)
    context = OpenContext(consumer="", clock=ManualClock(), addresses=EVERY_PRIVATE, reads_rows=True, columns=("n",))
    cut = {}
    for metadata in ((), ("_file", "_row", "_batch")):
        opened = kind_of("FILE").open(load_spec(statement), replace(context, metadata=metadata))
        splits = opened.driver.plan(opened.driver.open("").partitions, BIG)
        cut[metadata] = len(splits)
        for item in opened.read(splits) if metadata else ():
            if isinstance(item, pa.RecordBatch):
                assert item["_row"].equals(item["n"].cast(pa.int64()))
                assert pc.unique(item["_file"]).to_pylist() == [f"{folder.uri}/a.{kind}"]
        assert opened.of_batch == (("_batch",) if metadata else ())
    told = cut["_file", "_row", "_batch"]
    assert (cut[()] > 1, told) == (True, cut[()] if kind == "parquet" else 1)


def test_json_lines_in_parts(place: Place) -> None:
    place.put("a.json", b"".join(b'{"a": %d}\n' % n for n in range(100)))
    rows, count = load_in_parts(place.spec("a.json", format="json"), replace(SMALL, target_bytes=100))
    assert count > 5
    assert [row["a"] for row in rows] == [str(n) for n in range(100)]


def test_columns_are_the_same_in_every_part(folder: Place) -> None:
    folder.put("y=1/a.csv", b"1\n" * 100)
    spec = spec_of(uri=f"{folder.uri}/**", path_partition_keys="y")
    assert output_schema(spec).names == ["c1", "y", "__file", "__row", "__raw", "__error"]
    rows, _ = load_in_parts(spec, replace(SMALL, target_bytes=50))
    assert [row["y"] for row in rows] == ["1"] * 100


@pytest.mark.parametrize("size", [10**6, 9])
@pytest.mark.parametrize("closed", [True, False])
def test_rows_that_are_passed_over_are_bad_and_all_others_are_as_they_were(
    place: Place, size: int, closed: bool
) -> None:
    lines = ["c1", "alpha", "b", "", "gamma", "delta"]
    place.put("a.csv", ("\n".join(lines) + "\n" * closed).encode())
    spec = with_columns(place.bare("a.csv", format="csv_with_names", column_separator=";"), "c1")
    source = FilesSource(spec, sizing=replace(SMALL, target_bytes=size))
    splits = source.plan(source.open("").partitions, BIG)
    whole = [(row["__file"], row["__row"], row["c1"]) for row in read_all(spec, splits)[0]]
    starts = [len("\n".join(lines[:number])) + 1 for number in (1, 2, 4, 5)]
    for passed in ([0], [1], [3], [0, 1], [1, 3], [0, 1, 2, 3]):
        at = tuple(starts[number] for number in passed)
        rows, ends = read_all(spec, [replace(split, poison="it kills", poison_at=at) for split in splits])
        assert [(row["__file"], row["__row"], row["c1"] or row["__raw"].decode()) for row in rows] == whole
        assert [number for number, row in enumerate(rows) if row["__error"] == "it kills"] == passed
        assert sum(end.source_files for end in ends) == 1


def test_a_file_that_is_passed_over_is_one_bad_row_and_is_not_opened(place: Place) -> None:
    place.put("a.csv", b"c1\nalpha\nbeta\ngamma\n")
    spec = with_columns(place.bare("a.csv", format="csv_with_names", column_separator=";"), "c1")
    source = FilesSource(spec, sizing=SMALL)
    splits = source.plan(source.open("").partitions, BIG)
    assert len(splits) > 1
    place.put("a.csv", b"another one")
    rows, ends = read_all(spec, [replace(split, poison="it kills") for split in splits])
    assert [(row["__row"], row["__error"]) for row in rows] == [(0, "it kills")]
    assert sum(end.source_files for end in ends) == 1
