"""Listings: complete, in the byte order of keys, loud when they fail."""

from __future__ import annotations

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError, ListingError
from lading.sources.files.payload import parse_payload
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import S3Access
from lading.sources.files.store import ObjectStore, open_store
from lading.sources.files.store_local import LocalStore
from lading.testing.marked import secret
from tests.sources.support import BIG, Job, Place, with_columns
from tests.tables.s3_server import S3Server


def keys_of(store: ObjectStore, prefix: str, start_after: str = "", max_slashes: int | None = None) -> list[str]:
    return [found.key for found in store.list(prefix, start_after, max_slashes=max_slashes)]


names = st.lists(st.sampled_from(["a", "b", "a.csv", "a-b", "a0", "é", "Z", "a b"]), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
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


def test_every_page_of_a_bucket_is_read_and_start_after_skips(s3: S3Server) -> None:
    place = Place(s3)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: place.put(f"{number:05d}.csv", b"x\n"), range(1_050)))
    place.put("00001.json", b"{}")
    source = FilesSource(with_columns(place.bare("*.csv"), "c1"))
    splits = source.plan(source.open("").partitions, BIG)
    assert sum(len(parse_payload(split.payload).parts) for split in splits) == 1_050
    assert splits[-1].end == "in/01049.csv"
    late_start = source.open('{"fileName": "in/01000.csv"}')
    assert source.survey(late_start).pending.files == 49


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
    with pytest.raises(ListingError, match="loop"):
        keys_of(LocalStore(), prefix)


def test_a_folder_that_is_gone_is_an_error_and_not_an_empty_answer(tmp_path: Path) -> None:
    """One that was never there is empty: nothing was loaded from it, so nothing can be missed."""
    place = Place(tmp_path / "in")
    load = Job(with_columns(place.bare("*.csv"), "c1"))
    assert load.plan() == ()
    assert load.source.survey(load.positions).is_missing
    place.put("a.csv", b"x\n")
    assert load.files() == ["a.csv"]
    place.delete("a.csv")
    (tmp_path / "in").rmdir()
    with pytest.raises(ListingError, match="does not exist"):
        load.plan()
    with pytest.raises(ListingError, match="does not exist"):
        load.source.survey(load.positions)
    (tmp_path / "in").write_text("a file")
    with pytest.raises(ListingError, match="Not a directory"):
        load.plan()


def test_a_bucket_that_is_not_there_is_an_error_and_not_an_empty_answer(s3: S3Server) -> None:
    spec = Place(s3).bare("*.csv")
    gone = replace(spec, place=replace(spec.place, bucket="never-made"))
    with pytest.raises(ListingError, match="NoSuchBucket"):
        FilesSource(gone).open("")


def test_an_endpoint_that_does_not_answer_is_an_error(s3: S3Server) -> None:
    spec = Place(s3).bare("*.csv")
    access = S3Access(endpoint="http://127.0.0.1:9", region="us-east-1", access_key=secret("a"), secret_key=secret("b"))
    with pytest.raises(ListingError, match=r"127\.0\.0\.1:9"):
        next(open_store(spec.place, access).list("in/", ""))
    with pytest.raises(ConfigError, match="Can not build s3"):
        open_store(spec.place, replace(access, endpoint="http://[nonsense"))


def test_a_name_that_is_not_utf8_is_refused_only_if_it_matches(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("a.csv", b"1\n")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")).write_bytes(b"")
    assert FilesSource(place.bare("*.csv")).first_file() is not None
    with pytest.raises(ListingError, match="not UTF-8"):
        FilesSource(place.bare("*.json")).first_file()
