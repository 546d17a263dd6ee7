"""Large files that are read in parts: every row once, whatever the cuts."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.sources.files.packing import SplitSizing
from lading.sources.files.reader import output_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec
from tests.sources.support import BIG, Place, read_all, spec_of, with_columns
from tests.sources.test_matrix import orc, parquet, table

SMALL = SplitSizing(target_bytes=7, parallel=1, smallest_bytes=1, open_cost_bytes=0, max_splits=10_000)


def load_in_parts(spec: FilesSpec, sizing: SplitSizing) -> tuple[list[dict[str, object]], int]:
    source = FilesSource(spec, sizing=sizing)
    splits = source.plan(source.open("").partitions, BIG)
    rows, ends = read_all(spec, splits)
    assert sum(end.source_files for end in ends) == 1
    return rows, len(splits)


lines_ = st.lists(st.text(alphabet="ab\r|!", max_size=12), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
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
