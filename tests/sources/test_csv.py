"""What csv options mean."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from lading.sources.files.reader import read_split
from lading.sources.files.source import FilesSource
from tests.sources.support import BIG, Place, errors, load, pack, values, with_columns


@pytest.mark.parametrize(
    ("properties", "text", "expected"),
    [
        ({}, b"1\ta\n2\tb\n", [("1", "a"), ("2", "b")]),
        ({"column_separator": ","}, b"1,a\r\n2,b", [("1", "a"), ("2", "b")]),
        ({"column_separator": "||"}, b"1||a|\n2||b\n", [("1", "a|"), ("2", "b")]),
        ({"column_separator": "\\x01"}, b"1\x01a\n", [("1", "a")]),
        ({"column_separator": "0x0102"}, b"1\x01\x02a\n", [("1", "a")]),
        ({"column_separator": "\\t"}, b"1\ta\n", [("1", "a")]),
        ({"column_separator": ",", "line_delimiter": "\\r\\n"}, b"1,a\nb\r\n2,c\r\n", [("1", "a\nb"), ("2", "c")]),
        ({"column_separator": ",", "line_delimiter": ";;"}, b"1,a;;;2,b;;", [("1", "a"), (";2", "b")]),
        ({"column_separator": ","}, b"1,\\N\n2,\n", [("1", None), ("2", "")]),
        ({"column_separator": ",", "empty_field_as_null": "true"}, b"1,\n", [("1", None)]),
        ({"column_separator": ",", "enclose": '"'}, b'1,"a,b"\n2,"c\nd"\n', [("1", "a,b"), ("2", "c\nd")]),
        ({"column_separator": ",", "enclose": "'"}, b"1,'a''b'\n2,c'd\n", [("1", "a'b"), ("2", "c'd")]),
        (
            {"column_separator": ",", "enclose": '"', "escape": "\\"},
            b'1,"a\\"b,c"\n2,d\\e\n',
            [("1", 'a"b,c'), ("2", "de")],
        ),
        ({"column_separator": ",", "trim_double_quotes": "true"}, b'"1","a"\n2,"\\N"\n', [("1", "a"), ("2", "\\N")]),
        ({"column_separator": ",", "skip_lines": "2"}, b"x\n\n1,a\n", [("1", "a")]),
        ({"column_separator": ","}, b"\n1,a\n\r\n\n2,b\n\n", [("1", "a"), ("2", "b")]),
        ({"column_separator": ","}, b"\xef\xbb\xbf1,a\n", [("1", "a")]),
        ({"column_separator": ","}, b'1,"a\n', [("1", '"a')]),
    ],
)
def test_options(
    folder: Place, properties: dict[str, str], text: bytes, expected: list[tuple[str | None, ...]]
) -> None:
    folder.put("a.csv", text)
    rows = load(with_columns(folder.bare("a.csv", **properties), "c1", "c2"))
    assert errors(rows) == []
    assert values(rows) == expected


def test_columns_without_names_are_numbered(folder: Place) -> None:
    folder.put("a.csv", b"\n1\t2\t3\n")
    schema = folder.spec("a.csv").schema
    assert schema is not None
    assert schema.names == ["c1", "c2", "c3"]


def test_columns_can_be_declared(folder: Place) -> None:
    folder.put("a.csv", b"1\t2\n")
    assert load(folder.spec("a.csv", csv_schema="id:int; name:string"))[0]["name"] == "2"


def test_many_short_rows_come_in_bounded_batches(folder: Place) -> None:
    folder.put("a.csv", b"1\n" * 200_000)
    spec = folder.spec("a.csv")
    source = FilesSource(spec)
    (split,) = source.plan(source.open("").partitions, BIG)
    *batches, end = read_split(spec, split)
    assert max(batch.num_rows for batch in batches) <= 65_536  # type: ignore[union-attr]  # the end is apart
    assert end.rows == 200_000


def test_columns_with_names_are_found_by_name_in_every_file(folder: Place) -> None:
    folder.put("a.csv", b'"id","na me"\n1,x\n')
    folder.put("b.csv", b"na me,more,id\r\ny,z,2\r\n")
    spec = folder.spec("*.csv", format="csv_with_names", column_separator=",", enclose='"')
    assert values(load(spec)) == [("1", "x"), ("2", "y")]


def test_only_good_rows_of_a_block_with_newlines_in_bad_places(folder: Place) -> None:
    folder.put("a.csv", b'1,"a\n2,b\n3,"c"\n')
    rows = load(with_columns(folder.bare("a.csv", column_separator=",", enclose='"'), "c1", "c2"))
    assert values(rows) == [("1", 'a\n2,b\n3,c"')]


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    place = Place(tmp_path)
    block = b"".join(b"%d\tsome text\n" % number for number in range(100_000))
    place.put("a.csv.gz", b"".join(pack(block, "gz") for _ in range(30)))
    spec = with_columns(place.bare("*.gz"), "c1", "c2")
    source = FilesSource(spec)
    (split,) = source.plan(source.open("").partitions, BIG)
    tracemalloc.start()
    count = sum(item.num_rows for item in read_split(spec, split) if hasattr(item, "num_rows"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 3_000_000
    assert peak < 30_000_000
