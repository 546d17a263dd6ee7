"""A disk or a store that fails for a moment is never taken for a file that is bad."""

from __future__ import annotations

import errno
from collections.abc import Container, Iterator
from dataclasses import replace

import pytest

from lading.errors import FILE_UNREADABLE, SourceError, StageError, StorageError
from lading.model.batch import Split
from lading.sources.files.reader import read_split
from lading.sources.files.schema import infer_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec
from lading.storage.errors import store_failed
from lading.storage.store import ByteFile, ObjectInfo, ReadStore, open_store
from tests.sources.support import BIG, Place, load, pack, with_columns
from tests.sources.test_matrix import orc, parquet, table

TEXT = b"".join(b"%d\tx\n" % number for number in range(200_000))
CONTENTS = {
    "a.csv": TEXT,
    "a.csv.gz": pack(TEXT, "gz"),
    "a.csv.zst": pack(TEXT, "zstd"),
    "a.csv.deflate": pack(TEXT, "deflate"),
    "a.parquet": parquet(table()),
    "a.orc": orc(table()),
}


class Failing:
    """A file of which one read fails, as of a disk that is about to go or a store that does not answer."""

    def __init__(self, file: ByteFile, fails_at: int, error: Exception) -> None:
        self._file, self._left, self._error = file, fails_at, error
        self.seek, self.tell, self.close, self.check = file.seek, file.tell, file.close, file.check

    def read(self, size: int = -1, /) -> bytes:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return self._file.read(size)


class Shaky:
    """A store whose files fail so."""

    def __init__(self, store: ReadStore, fails_at: int, error: Exception) -> None:
        self._store, self._fails_at, self._error = store, fails_at, error

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        return self._store.list(prefix, start_after, max_slashes=max_slashes, known=known)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        return Failing(self._store.open(key, if_match=if_match, size=size, random=random), self._fails_at, self._error)

    def uri_of(self, key: str) -> str:
        return self._store.uri_of(key)

    def for_many(self) -> ReadStore:
        return self


def spec_of(place: Place, name: str) -> FilesSpec:
    place.put(name, CONTENTS[name])
    if ".csv" in name:
        return with_columns(place.bare(name), "c1", "c2")
    return place.spec(name, format=name.rpartition(".")[2])


def plan(spec: FilesSpec) -> Split:
    source = FilesSource(spec)
    return source.plan(source.open("").partitions, BIG)[0]


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error"), store_failed("s3://b/a", EOFError("503 Slow Down"))],
    ids=["disk", "store"],
)
def test_a_read_that_fails_once_is_of_the_disk_and_not_of_the_file(
    folder: Place, name: str, fails_at: int, error: Exception
) -> None:
    spec = spec_of(folder, name)
    shaky = Shaky(open_store(spec.place.root, spec.s3), fails_at, error)
    with pytest.raises(StorageError, match="could not be fetched") as caught:
        list(read_split(spec, plan(spec), store=shaky))
    assert caught.value.retry, "it is tried again"
    assert name in str(caught.value)
    assert load(spec), "and can be read then"


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "a.csv"])
def test_columns_that_cannot_be_looked_at_for_a_moment(folder: Place, name: str) -> None:
    spec = replace(spec_of(folder, name), schema=None)
    shaky = Shaky(open_store(spec.place.root, spec.s3), 1, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageError, match="could not be fetched"):
        infer_schema(spec, store=shaky)


def test_a_file_that_is_cut_off_while_it_is_read_was_replaced_and_is_not_bad(folder: Place) -> None:
    path = folder.uri.removeprefix("file://") + "/a.csv.gz"
    spec = spec_of(folder, "a.csv.gz")
    items = iter(read_split(spec, plan(spec)))
    with open(path, "r+b") as file:
        next(items)
        file.truncate(len(CONTENTS["a.csv.gz"]) // 2)
        with pytest.raises(StageError, match="was replaced"):
            list(items)


def test_a_file_with_bad_content_is_bad_every_time(folder: Place) -> None:
    spec = spec_of(folder, "a.parquet")
    folder.put("a.parquet", CONTENTS["a.parquet"][:-20])
    for _ in range(2):
        with pytest.raises(SourceError, match="cannot be read") as caught:
            list(read_split(spec, plan(spec)))
        assert caught.value.code == FILE_UNREADABLE
