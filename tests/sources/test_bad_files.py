"""Files that are cut off, of the wrong format, gone or replaced: an error with the name of the file, never silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from lading.errors import ConfigError, LadingError, SourceError, StageError, StorageError
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.files.errors import translating
from lading.sources.files.reader import read_split
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec
from lading.storage.store import open_store
from tests.sources.support import BIG, Place, errors, load, pack, values, with_columns
from tests.sources.test_matrix import orc, parquet, table

TEXT = b"".join(b"%d\tx\n" % number for number in range(200_000))


def plan(spec: FilesSpec) -> Split:
    source = FilesSource(spec)
    return source.plan(source.open("").partitions, BIG)[0]


def refuse(spec: FilesSpec, kind: type[LadingError], message: str, split: Split | None = None) -> None:
    """Reading fails with an error that helps, and without an end of the split."""
    seen: list[object] = []
    with pytest.raises(kind, match=message) as caught:
        seen.extend(read_split(spec, split or plan(spec)))
    assert not any(isinstance(item, SplitEnd) for item in seen)
    assert caught.value.facts["file"] in str(caught.value)
    assert "committed" in str(caught.value)
    assert caught.value.todo


def csv(place: Place, glob: str = "a*", **properties: str) -> FilesSpec:
    return with_columns(place.bare(glob, **properties), "c1", "c2")


@pytest.mark.parametrize("compression", ["gz", "zstd", "bz2", "lz4", "snappy", "snappy_framed", "lz4block", "deflate"])
def test_a_packed_file_that_is_cut_off(folder: Place, compression: str) -> None:
    whole = pack(TEXT, compression)
    named = compression.removesuffix("_framed")
    for size in (len(whole) - 1, len(whole) // 2, 0):
        folder.put("a", whole[:size])
        refuse(csv(folder, compress_type=named), SourceError, "cannot be read")


def test_a_packed_file_in_a_bucket_that_is_cut_off(place: Place) -> None:
    place.put("a.gz", pack(TEXT, "gz")[:-9])
    refuse(csv(place), SourceError, "Truncated")


@pytest.mark.parametrize("compression", ["gz", "zstd", "bz2", "lz4", "snappy", "lz4block", "deflate"])
def test_text_where_packed_bytes_should_be(folder: Place, compression: str) -> None:
    folder.put("a", TEXT[:1000])
    refuse(csv(folder, compress_type=compression), SourceError, "cannot be read")


@pytest.mark.parametrize("compression", ["gz", "zstd", "bz2", "lz4", "snappy_framed"])
def test_packed_bytes_where_text_should_be(folder: Place, compression: str) -> None:
    folder.put("a", pack(TEXT, compression))
    refuse(csv(folder), SourceError, "starts like")


def test_parquet_where_text_should_be(folder: Place) -> None:
    folder.put("a", parquet(table()))
    refuse(csv(folder, format="json"), SourceError, "starts like parquet")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[: len(b) // 2], lambda _: b"", lambda _: TEXT])
def test_a_columnar_file_that_is_none(place: Place, kind: str, damage: Callable[[bytes], bytes]) -> None:
    content = parquet(table()) if kind == "parquet" else orc(table())
    place.put("good", content)
    spec = place.spec("good", format=kind)
    place.put("a", damage(content))
    bad = replace(place.bare("a", format=kind), schema=spec.schema)
    refuse(bad, SourceError, "cannot be read")


def test_a_damaged_page_is_noticed(folder: Place) -> None:
    content = bytearray(parquet(table(), compression="none", use_dictionary=False, write_page_checksum=True))
    folder.put("good", bytes(content))
    spec = folder.spec("good", format="parquet")
    content[2_000] ^= 0xFF
    folder.put("good", bytes(content))
    refuse(spec, SourceError, "cannot be read")


@pytest.mark.parametrize("size", [0, 10, len(TEXT)])
def test_a_file_that_was_deleted_after_it_was_planned(place: Place, size: int) -> None:
    place.put("a", TEXT[:size])
    spec = csv(place)
    split = plan(spec)
    place.delete("a")
    refuse(spec, StageError, "was deleted", split)


@pytest.mark.parametrize(("old", "new"), [(b"1\tx\n", b"2\ty\n"), (b"", b"2\ty\n"), (b"1\tx\n", b"")])
def test_a_file_that_was_replaced_after_it_was_planned(place: Place, old: bytes, new: bytes) -> None:
    place.put("a", old)
    spec = csv(place)
    split = plan(spec)
    place.delete("a")
    place.put("b", b"takes the place on the disk\n")
    place.put("a", new)
    refuse(spec, StageError, "was replaced", split)


def test_a_parquet_file_that_was_replaced_after_it_was_planned(place: Place) -> None:
    place.put("a", parquet(table()))
    spec = place.spec("a", format="parquet")
    split = plan(spec)
    place.put("a", parquet(table().slice(0, 10)))
    refuse(spec, StageError, "was replaced", split)


def test_a_file_that_grows_while_it_is_read(folder: Place) -> None:
    folder.put("a", TEXT)
    spec = csv(folder)
    items = iter(read_split(spec, plan(spec)))
    next(items)
    with open(folder.uri.removeprefix("file://") + "/a", "ab") as file:
        file.write(b"1\tlate\n")
    with pytest.raises(StageError, match="was replaced"):
        list(items)


def test_a_file_that_may_not_be_read(folder: Place) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    folder.put("a", TEXT)
    spec = csv(folder)
    os.chmod(folder.uri.removeprefix("file://") + "/a", 0)
    refuse(spec, StorageError, "could not be fetched")


def test_a_broken_connection_is_resumed_where_it_broke(place: Place) -> None:
    place.put("a", TEXT)
    spec = csv(place)
    info = FilesSource(spec).first_file()
    assert info is not None
    file = open_store(spec.place.root, spec.s3).open(info.key, if_match=info.etag, size=info.size)
    assert file.read(5) == TEXT[:5]
    body = getattr(file, "_body", None)
    if body is not None:
        body._raw_stream.close()
    assert file.read(10)[:1] == TEXT[5:6]
    assert file.seek(100) == 100
    assert file.read(10) == TEXT[100:110]
    file.close()


def test_a_row_that_is_longer_than_allowed(folder: Place) -> None:
    folder.put("a", b"1\tx\n" + b"y" * 3_000_000)
    refuse(csv(folder, max_record_bytes="100000"), SourceError, "longer than 100000 bytes")
    refuse(csv(folder, max_record_bytes="100000", enclose='"'), SourceError, "longer than 100000 bytes")
    folder.put("b.json", b'[{"a": "' + b"y" * 9_000_000 + b'"}]')
    spec = csv(folder, "b.json", format="json", strip_outer_array="true", max_record_bytes="100000")
    refuse(spec, SourceError, "longer than 100000 bytes")


def test_a_file_without_an_expected_column(folder: Place) -> None:
    folder.put("a", b"id\tother\n1\t2\n")
    spec = with_columns(folder.bare("a", format="csv_with_names"), "id", "name")
    refuse(spec, SourceError, "no column name")
    nulls = with_columns(folder.bare("a", format="csv_with_names", missing_columns="null"), "id", "name")
    assert values(load(nulls)) == [("1", None)]
    folder.put("b", parquet(table().select(["id"])))
    typed = replace(folder.bare("b", format="parquet"), schema=table().schema)
    refuse(typed, SourceError, "no column name")
    lenient = replace(folder.bare("b", format="parquet", missing_columns="null"), schema=table().schema)
    assert load(lenient)[0]["name"] is None


def test_a_column_of_another_type(folder: Place) -> None:
    folder.put("a", parquet(pa.table({"id": ["1", "x"]})))
    spec = replace(folder.bare("a", format="parquet"), schema=pa.schema([("id", pa.int64())]))
    refuse(spec, SourceError, "column id is string and the job expects int64")
    folder.put("a", parquet(pa.table({"id": pa.array([1, 2], pa.int32())})))
    assert [row["id"] for row in load(spec)] == [1, 2]


def test_names_that_stand_twice(folder: Place) -> None:
    folder.put("a", b"id\tid\n1\t2\n")
    refuse(with_columns(folder.bare("a", format="csv_with_names"), "id"), SourceError, "different column names")
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    folder.put("b", parquet(doubled))
    spec = replace(folder.bare("b", format="parquet"), schema=pa.schema([("id", pa.int64())]))
    with pytest.raises(SourceError):
        load(spec)


def test_a_path_without_the_expected_folders(folder: Place) -> None:
    folder.put("a", b"1\t2\n")
    refuse(csv(folder, path_partition_keys="year"), SourceError, "no folder year=")


def test_columns_must_be_known(folder: Place) -> None:
    folder.put("a", b"1\n")
    spec = folder.bare("a")
    with pytest.raises(ConfigError, match="columns of the files are not known"):
        list(read_split(spec, plan(spec)))


def test_empty_files_have_no_rows(place: Place) -> None:
    place.put("a.csv", b"")
    place.put("b.csv", b"\n\r\n")
    assert load(csv(place, "*.csv")) == []
    place.put("a.json", b"")
    assert load(csv(place, "*.json", format="json")) == []
    names = csv(place, "a.csv", format="csv_with_names", missing_columns="null")
    assert load(names) == []


def test_an_error_in_the_second_file_of_a_split_gives_no_end(folder: Place) -> None:
    folder.put("a.gz", pack(TEXT, "gz"))
    folder.put("b.gz", pack(TEXT, "gz")[:-4])
    refuse(csv(folder, "*.gz"), SourceError, r"b\.gz")


def test_bad_rows_carry_their_text_and_good_ones_do_not(place: Place) -> None:
    place.put("a.csv", b"1\tx\n\xff\tx\nshort\n2\ty\textra\n3\tz\n")
    rows = load(csv(place, "*.csv"))
    assert values(rows) == [("1", "x"), ("3", "z")]
    assert errors(rows) == [
        (2, b"\xff\tx", "Not UTF-8"),
        (3, b"short", "Column count mismatch: 1 fields, 2 expected"),
        (4, b"2\ty\textra", "Column count mismatch: 3 fields, 2 expected"),
    ]
    assert [row["__raw"] for row in rows if row["__error"] is None] == [None, None]


def test_a_worker_without_memory_is_no_fault_of_the_file() -> None:
    with pytest.raises(pa.ArrowMemoryError), translating("file:///a.csv"):
        raise pa.ArrowMemoryError("malloc of size 100 failed")
    with pytest.raises(StageError, match="could not be read now") as caught, translating("file:///a.csv"):
        raise pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")
    assert caught.value.retry
