"""The disk lists as S3 would: in the byte order of keys, everything, loud when it fails, and quickly."""

from __future__ import annotations

import os
import tracemalloc
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import StorageError
from lading.storage.local import LocalStore
from lading.storage.store import ReadStore
from tests.support.examples import examples


def keys_of(store: ReadStore, prefix: str, start_after: str = "", max_slashes: int | None = None) -> list[str]:
    return [found.key for found in store.list(prefix, start_after, max_slashes=max_slashes)]


names = st.lists(st.sampled_from(["a", "b", "a.csv", "a-b", "a0", "é", "Z", "a b"]), min_size=1, max_size=3)


@settings(max_examples=examples(60), deadline=None)
@given(
    paths=st.sets(names.map("/".join), max_size=12),
    start=names.map("/".join),
    prefix=st.sampled_from("ab") | st.just(""),
)
def test_the_disk_lists_as_s3_would(
    paths: set[str], start: str, prefix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    made = set()
    for path in sorted(paths, key=len, reverse=True):
        target = root / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"")
            made.add(f"{root}/{path}")
    expected = [key for key in made if key.startswith(f"{root}/{prefix}") and key > f"{root}/{start}"]
    expected.sort(key=str.encode)
    assert keys_of(LocalStore(), f"{root}/{prefix}", f"{root}/{start}") == expected


def test_nothing_but_its_key_is_asked_of_a_known_file(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    found = list(LocalStore().list(f"{tmp_path}/", known={f"{tmp_path}/b"}))
    assert [(Path(each.key).name, each.size, bool(each.etag)) for each in found] == [
        ("a", 1, True),
        ("b", 0, False),
        ("c", 1, True),
    ]


def test_a_hundred_thousand_files_are_listed_quickly_and_in_little_memory(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        descriptor = os.open(folder, os.O_RDONLY)
        for number in range(100_000):
            os.close(os.open(f"{number:06d}.csv", os.O_CREAT, dir_fd=descriptor))
        os.close(descriptor)
        store, prefix = LocalStore(), f"{folder}/"
        began = process_time()
        assert sum(1 for _ in store.list(prefix, "")) == 100_000
        assert process_time() - began < 8
        tracemalloc.start()
        began = process_time()
        tail = [found.key[-10:] for found in islice(store.list(prefix, f"{prefix}000001.csv"), 2)]
        took, (_, peak) = process_time() - began, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert tail == ["000002.csv", "000003.csv"]
        assert took < 4
        assert peak < 20_000_000


def test_folders_deeper_than_the_glob_are_not_walked(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "deep" / "b.csv").write_bytes(b"")
    (tmp_path / "deep").chmod(0)
    slashes = str(tmp_path).count("/") + 1
    try:
        assert keys_of(LocalStore(), f"{tmp_path}/", max_slashes=slashes) == [f"{tmp_path}/a.csv"]
    finally:
        (tmp_path / "deep").chmod(0o755)


def test_links_are_followed_and_loops_are_loud(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.csv").write_bytes(b"1\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "in" / "file.csv").symlink_to(tmp_path / "real" / "a.csv")
    (tmp_path / "in" / "dangling.csv").symlink_to(tmp_path / "nowhere")
    prefix = f"{tmp_path}/in/"
    assert keys_of(LocalStore(), prefix) == [f"{prefix}file.csv", f"{prefix}linked/a.csv"]
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "in")
    with pytest.raises(StorageError, match="loop"):
        keys_of(LocalStore(), prefix)
