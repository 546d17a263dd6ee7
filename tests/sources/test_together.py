"""Small files that are read together give what each of them gives alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.errors import LadingError
from lading.model.row_formats import CsvOptions
from lading.model.rows import SplitEnd
from lading.sources.files import together
from lading.sources.files.reader import read_split
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, MissingColumns
from tests.sources.support import BIG, Place, bare_spec_of, errors, pack, values, with_columns
from tests.support.examples import examples

HEAD = b"a,b\n"


def read(spec: FilesSpec, *, alone: bool = False) -> tuple[list[dict[str, Any]], list[SplitEnd], int]:
    """Rows as they come, good ones before bad ones, the end, and in how many batches."""
    source = FilesSource(spec)
    (split,) = source.plan(source.open("").partitions, BIG)
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(together, "SMALL_BYTES", -1)
        items = list(read_split(spec, split))
    batches = [item for item in items if not isinstance(item, SplitEnd)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    good = [row for row in rows if row["__error"] is None]
    bad = [row for row in rows if row["__error"] is not None]
    return [*good, *bad], [item for item in items if isinstance(item, SplitEnd)], len(batches)


def same(spec: FilesSpec) -> None:
    """Rows, reasons and ends, or the same error of the same file."""
    assert outcome(spec, alone=False) == outcome(spec, alone=True)


def outcome(spec: FilesSpec, *, alone: bool) -> object:
    try:
        return read(spec, alone=alone)[:2]
    except LadingError as error:
        return type(error), str(error)


pieces = [b"", b"x", b"\\N", b'"', b'""', b",", b"||", b"\n", b"\r\n", b"\r", b"\\", b"\xff", b"\x01"]
pieces += ["é€".encode(), b'"a\nb"', b'"a""b"', b"1,2\n", b"a||b\n", b'"1","2"\r\n', b"\xef\xbb\xbf", b"\x1f\x8b\x08"]
ordinary = st.lists(
    st.sampled_from([b"1,2\n", b'"q",\n', b"\n", b"x\n", b"1,2,3\n", b'"a\nb",4\n', b"5,6", b"7,8\r\n", b'9,"', b"\r"]),
    max_size=5,
).map(b"".join)
contents = st.lists(st.sampled_from(pieces), max_size=8).map(b"".join) | ordinary
heads = st.sampled_from([b"", HEAD, b"a,b\r\n", b"\xef\xbb\xbfa,b\n", b"b,a\n", b"a,c\n", b"a,b", b"\x1f\x8b\x08\xff"])
mixed = st.lists(st.tuples(heads, contents), min_size=2, max_size=5)
alike = st.lists(st.tuples(st.just(HEAD), ordinary), min_size=2, max_size=5)
usual = st.builds(CsvOptions, column_separator=st.just(","), enclose=st.sampled_from(["", '"']))
options_ = usual | st.builds(
    CsvOptions,
    column_separator=st.sampled_from([",", "||", "x"]),
    line_delimiter=st.sampled_from(["\n", "\r\n", "$$"]),
    enclose=st.sampled_from(["", '"']),
    escape=st.sampled_from(["", "\\"]),
    empty_field_as_null=st.booleans(),
    skip_lines=st.sampled_from([0, 0, 0, 1, 2]),
)


@settings(max_examples=examples(150, costs=2), deadline=None)
@given(
    mixed | alike,
    options_,
    st.sampled_from([Format.CSV, Format.CSV_WITH_NAMES, Format.CSV_WITH_NAMES_AND_TYPES]),
    st.sampled_from([("a", "b"), ("b",), ("a", "b", "c")]),
    st.sampled_from(MissingColumns),
)
@example(
    [(HEAD, b'1,"2\n'), (HEAD, b'3",4\n'), (HEAD, b"5,6")],
    CsvOptions(column_separator=",", enclose='"'),
    Format.CSV_WITH_NAMES,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(b"a,b", b""), (b"a,b,c\n", b"1,2,3\n")],
    CsvOptions(column_separator=","),
    Format.CSV_WITH_NAMES,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(b"1,2\n", b""), (b"PAR1", b"1,2\n")],
    CsvOptions(column_separator=","),
    Format.CSV,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(b"1,2$$", b"3,4$"), (b"5,6$$", b"")],
    CsvOptions(column_separator=",", line_delimiter="$$"),
    Format.CSV,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(HEAD, b""), (HEAD, b"int,int\n1,2\n")],
    CsvOptions(column_separator=","),
    Format.CSV_WITH_NAMES_AND_TYPES,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(b"note\n", b""), (b"note\nmore\n", b"1,2\n3,4\n")],
    CsvOptions(column_separator=",", skip_lines=2),
    Format.CSV,
    ("a", "b"),
    MissingColumns.ERROR,
)
@example(
    [(b"1\n", b"2\n"), (b"3\n", b"")],
    CsvOptions(column_separator="xyzwvuXYZWVU0123456789"),
    Format.CSV,
    ("a", "b"),
    MissingColumns.ERROR,
)
def test_together_and_alone_give_the_same(
    files: list[tuple[bytes, bytes]],
    options: CsvOptions,
    form: Format,
    names: tuple[str, ...],
    missing: MissingColumns,
) -> None:
    with TemporaryDirectory() as folder:
        for number, (head, body) in enumerate(files):
            Path(folder, f"{number}.csv").write_bytes(head + body)
        spec = with_columns(bare_spec_of(uri=f"{folder}/*.csv"), *names)
        same(replace(spec, format=form, csv=options, missing_columns=missing, tells=("_file", "_row")))


def lines(first: int, last: int) -> bytes:
    return b"".join(b"%d,x\n" % number for number in range(first, last))


def test_one_batch_has_the_rows_of_many_files_and_each_knows_its_own(place: Place) -> None:
    place.put("p=1/a.csv", HEAD + lines(0, 3))
    place.put("p=2/b.csv", HEAD + lines(3, 4) + b"too,many,fields\n\n" + lines(4, 6).rstrip())
    place.put("p=3/c.csv", b"")
    place.put("p=4/d.csv", HEAD + lines(6, 8))
    spec = place.spec("*/*.csv", format="csv_with_names", column_separator=",", path_partition_keys="p")
    rows, ends, batches = read(spec)
    assert batches == 2, "one of good rows, one of bad ones"
    assert [(row["p"], row["a"], row["__row"]) for row in rows if row["__error"] is None] == [
        *[("1", str(at), at + 1) for at in range(3)],
        *[("2", "3", 1), ("2", "4", 3), ("2", "5", 4)],
        *[("4", "6", 1), ("4", "7", 2)],
    ]
    assert errors(rows) == [(2, b"too,many,fields", "Column count mismatch: 3 fields, 2 expected")]
    assert rows[-1]["__file"].endswith("p=2/b.csv")
    assert ends[0].received_bytes == ends[0].source_bytes
    assert ends[0].source_files == 4
    same(spec)


def test_files_with_one_column_are_read_together(folder: Place) -> None:
    for name in "abc":
        folder.put(f"{name}.csv", b'1\n"2"\n\n3')
    spec = with_columns(folder.bare("*.csv", column_separator=",", enclose='"'), "x")
    rows, _, batches = read(spec)
    assert batches == 1
    assert values(rows) == [("1",), ("2",), ("3",)] * 3


odd = [b'{"b": null, "c": 3}', b"{}", b'{"a": "s"}', b'{"a": 1.50}', b'{"a": [1]}', b'{"b": {"c": 1}}']
odd += [b"", b" ", b"x", b'{"a": 1}{"a": 2}', b'{"a":', b"1}", b'{"a": 1,\r\n"b": 2}', b"[]", b'{"a": -0}']
odd += [b'{"a": "\xff"}', b"\xef\xbb\xbf{}", b'{"a": 1, "b": "x"}', b'{"a": 2}']
documents = st.lists(st.sampled_from(odd), max_size=5)
plain = st.lists(st.sampled_from([b'{"a": 1, "b": "x"}', b'{"a": 2}', b'{"b": "y"}']), max_size=5)


@settings(max_examples=examples(100, costs=2), deadline=None)
@given(
    st.lists(st.tuples(documents | plain, st.sampled_from([b"\n", b"\r\n"]), st.booleans()), min_size=2, max_size=5),
    st.sampled_from([True, True, True, False]),
    st.sampled_from(["json", "json.gz"]),
)
@example(
    [([b'{"a": 1}'], b"\n", True), ([b'{"a": 2}', b""], b"\n", True), ([b'{"a": 3}'] * 2, b"\n", False)], True, "json"
)
@example([([b'{"a": 1}'], b"\n", True), ([b'{"a":'], b"\n", False), ([b"1}"], b"\n", False)], True, "json")
@example([([b'{"a": 1}'], b"\n", True), ([b'{"a": 1}{"a": 2}', b""], b"\n", True)], True, "json")
def test_together_and_alone_give_the_same_of_json(
    files: list[tuple[list[bytes], bytes, bool]], by_line: bool, ending: str
) -> None:
    with TemporaryDirectory() as folder:
        for number, (given, delimiter, is_ended) in enumerate(files):
            text = delimiter.join(given) + (delimiter if is_ended else b"")
            Path(folder, f"{number}.{ending}").write_bytes(pack(text, "gz") if ending.endswith("gz") else text)
        lines_or_not = "true" if by_line else "false"
        spec = with_columns(
            bare_spec_of(uri=f"{folder}/*.{ending}", format="json", read_json_by_line=lines_or_not), "a", "b"
        )
        same(replace(spec, tells=("_file", "_row")))


def test_files_of_json_are_read_together_once_the_first_has_shown_its_values(folder: Place) -> None:
    for number in range(5):
        folder.put(f"{number}.json", b'{"a": %d, "b": "x"}\n' % number * (number + 1))
    rows, _, batches = read(with_columns(folder.bare("*.json", format="json"), "a", "b"))
    assert batches == 2
    assert [(row["a"], row["__row"]) for row in rows] == [(str(n), at + 1) for n in range(5) for at in range(n + 1)]


def test_packed_files_are_read_together_unless_they_are_long_or_broken(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        folder.put(f"{name}.csv.gz", pack(lines(0, 3), "gz"))
    spec = with_columns(folder.bare("*.gz", column_separator=","), "a", "b")
    rows, ends, batches = read(spec)
    assert batches == 1
    assert values(rows) == [("0", "x"), ("1", "x"), ("2", "x")] * 2
    assert ends[0].received_bytes == 2 * len(lines(0, 3))
    same(spec)
    monkeypatch.setattr(together, "TEXT_BYTES", len(lines(0, 3)))
    assert read(spec)[2] == 2
    monkeypatch.undo()
    folder.put("c.csv.gz", pack(lines(0, 3), "gz")[:-6])
    with pytest.raises(LadingError, match=r"c\.csv\.gz cannot be read"):
        read(spec)


def test_files_that_do_not_begin_alike_are_read_one_by_one(folder: Place) -> None:
    folder.put("a.csv", b"a,b\n1,2\n")
    folder.put("b.csv", b"b,a\n4,3\n")
    spec = folder.spec("*.csv", format="csv_with_names", column_separator=",")
    rows, _, batches = read(spec)
    assert batches == 2
    assert values(rows) == [("1", "2"), ("3", "4")]


def test_more_files_than_fit_are_read_in_groups(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "GROUP_BYTES", 1000)
    for number in range(50):
        folder.put(f"{number:02}.csv", lines(number, number + 20))
    spec = with_columns(folder.bare("*.csv", column_separator=","), "a", "b")
    rows, _, batches = read(spec)
    assert 1 < batches < 20
    assert [int(row["a"]) - row["__row"] + 1 for row in rows] == [number for number in range(50) for _ in range(20)]
    same(spec)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_small_files_of_other_formats_are_fetched_together(place: Place, form: str) -> None:
    from tests.sources.test_matrix import parquet, table

    for name in "abc":
        place.put(f"{name}.{form}", parquet(table()) if form == "parquet" else b'{"a": "%s"}\n' % name.encode())
    same(place.spec(f"*.{form}", format=form))


def test_a_file_that_is_gone_or_changed_is_named(place: Place) -> None:
    for name in "abc":
        place.put(f"{name}.csv", lines(0, 5))
    spec = with_columns(place.bare("*.csv", column_separator=","), "a", "b")
    source = FilesSource(spec)
    (split,) = source.plan(source.open("").partitions, BIG)
    place.put("b.csv", lines(0, 7))
    with pytest.raises(LadingError, match=r"b\.csv was replaced"):
        list(read_split(spec, split))
    place.delete("b.csv")
    with pytest.raises(LadingError, match=r"b\.csv was deleted"):
        list(read_split(spec, split))
