"""What a storage promises, on a local disk and in S3."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import boto3
import pytest

from lading.errors import ConfigError, StorageError
from lading.model.s3_access import S3Access
from lading.storage.errors import CHANGED, GONE, MISSING, fault_of
from lading.storage.store import ObjectStore, open_store
from lading.testing.marked import secret
from tests.tables.s3_server import S3Server

AWKWARD = ("with space.json", "größe 東京 🚚", 'it\'s "quoted"', "100% %2F", "a+b&c=d?e#f", "deep/er/still")
THREADS = 8


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "local":
        return open_store(str(tmp_path / "root"))
    s3 = cast("S3Server", request.getfixturevalue("s3"))
    return open_store(f"s3://{s3.make_bucket()}/root", s3.options)


def test_what_was_put_can_be_read(storage: ObjectStore) -> None:
    assert storage.put_if_absent("folder/key.json", b"content")
    assert storage.get("folder/key.json") == b"content"


def test_an_empty_object_is_not_an_absent_one(storage: ObjectStore) -> None:
    assert storage.put_if_absent("key", b"")
    assert storage.get("key") == b""
    assert not storage.put_if_absent("key", b"other")


def test_a_second_put_is_refused_and_the_first_content_stays(storage: ObjectStore) -> None:
    storage.put_if_absent("key", b"first")
    assert not storage.put_if_absent("key", b"second")
    assert storage.get("key") == b"first"


def test_an_absent_object_reads_as_none(storage: ObjectStore) -> None:
    assert storage.get("nothing") is None
    assert storage.get("no/such/folder/nothing") is None
    storage.put_if_absent("file", b"x")
    assert storage.get("file/below") is None


def test_of_eight_threads_exactly_one_puts(storage: ObjectStore) -> None:
    gate = threading.Barrier(THREADS)

    def put(key: str, number: int) -> bool:
        gate.wait()
        return storage.put_if_absent(key, str(number).encode())

    with ThreadPoolExecutor(THREADS) as pool:
        for turn in range(20):
            key = f"race/{turn}"
            won = list(pool.map(put, [key] * THREADS, range(THREADS)))
            assert won.count(True) == 1
            assert storage.get(key) == str(won.index(True)).encode()


@pytest.mark.parametrize("key", AWKWARD)
def test_awkward_keys_come_back(storage: ObjectStore, key: str) -> None:
    assert storage.put_if_absent(key, key.encode())
    assert storage.get(key) == key.encode()
    assert list(storage.keys("")) == [key]
    storage.delete([key])
    assert list(storage.keys("")) == []


def test_keys_come_in_order_and_only_those_under_the_prefix(storage: ObjectStore) -> None:
    for key in ("b/2", "b/10", "a/1", "b/1", "bb/1", "b/sub/3"):
        storage.put_if_absent(key, b"x")
    assert list(storage.keys("b/")) == ["b/1", "b/10", "b/2", "b/sub/3"]
    assert list(storage.keys("b/1")) == ["b/1", "b/10"]
    assert list(storage.keys("b/", start_after="b/10")) == ["b/2", "b/sub/3"]
    assert list(storage.keys("c/")) == []


def test_keys_come_from_every_page(s3: S3Server) -> None:
    bucket = s3.make_bucket()
    options = s3.options
    client = boto3.client(
        "s3",
        endpoint_url=options.endpoint,
        region_name=options.region,
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
    )
    names = [f"root/{number:05d}" for number in range(1003)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda name: client.put_object(Bucket=bucket, Key=name, Body=b""), names))
    storage = open_store(f"s3://{bucket}/root", options)
    assert list(storage.keys("")) == [name.removeprefix("root/") for name in names]
    storage.delete(storage.keys(""))
    assert list(storage.keys("")) == []


def test_a_listing_tells_what_is_there_now(storage: ObjectStore) -> None:
    storage.put_if_absent("a/1", b"one")
    storage.put_if_absent("a/deep/2", b"")
    storage.put_if_absent("b", b"x")
    first, second = storage.list("a/")
    assert (first.key, first.size, second.key, second.size) == ("a/1", 3, "a/deep/2", 0)
    assert abs(first.modified - datetime.now(UTC)) < timedelta(minutes=1)
    assert [found.key for found in storage.list("", "a/1")] == ["a/deep/2", "b"]
    assert "a/1" in [found.key for found in storage.list("a/", max_slashes=1)]
    storage.put("a/1", b"1")
    assert next(iter(storage.list("a/1"))).etag != first.etag


@pytest.mark.parametrize("random", [False, True])
def test_ranges_of_an_object_are_read(storage: ObjectStore, random: bool) -> None:
    storage.put_if_absent("a/1", b"0123456789")
    found = next(iter(storage.list("a/")))
    file = storage.open("a/1", if_match=found.etag, size=found.size, random=random)
    assert (file.seek(3), file.read(4), file.tell()) == (3, b"3456", 7)
    assert (file.seek(-2, 2), file.read(), file.read(1)) == (8, b"89", b"")
    file.check()
    file.close()


def test_what_was_replaced_or_deleted_since_it_was_listed_is_not_read(storage: ObjectStore) -> None:
    storage.put_if_absent("a", b"old")
    found = next(iter(storage.list("a")))

    def read() -> bytes:
        file = storage.open("a", if_match=found.etag, size=found.size)
        try:
            return file.read()
        finally:
            file.close()

    assert read() == b"old"
    storage.put("a", b"new")
    with pytest.raises(StorageError) as caught:
        read()
    assert fault_of(caught.value) == CHANGED
    storage.delete(["a"])
    with pytest.raises(StorageError) as caught:
        read()
    assert fault_of(caught.value) == GONE


def test_sizes_are_those_of_the_objects_and_nothing_for_what_is_not_there(storage: ObjectStore) -> None:
    storage.put_if_absent("a", b"123")
    storage.put_if_absent("deep/b", b"")
    assert list(storage.sizes(["deep/b", "no", "a", "a/no"])) == [0, None, 3, None]
    assert list(storage.sizes([])) == []


def test_a_hint_is_put_over_what_is_there(storage: ObjectStore) -> None:
    for content in (b"1", b"22", b""):
        storage.put("deep/hint", content)
        assert storage.get("deep/hint") == content
    assert list(storage.keys("")) == ["deep/hint"]


def test_of_a_root_without_a_folder_keys_are_whole_paths(tmp_path: Path) -> None:
    storage = open_store("file://")
    assert storage.put_if_absent(f"{tmp_path}/in/a", b"x")
    assert [found.key for found in storage.list(f"{tmp_path}/in/")] == [f"{tmp_path}/in/a"]
    assert storage.uri_of(f"{tmp_path}/in/a") == f"file://{tmp_path}/in/a"


def test_a_folder_that_is_not_there_has_no_keys_and_cannot_be_listed(tmp_path: Path) -> None:
    storage = open_store(str(tmp_path))
    assert list(storage.keys("gone/")) == []
    with pytest.raises(StorageError) as caught:
        storage.list("gone/")
    assert fault_of(caught.value) == MISSING


def test_deleting_what_is_gone_is_fine(storage: ObjectStore) -> None:
    storage.put_if_absent("key", b"x")
    storage.delete(["key", "never/was"])
    storage.delete([])
    assert storage.get("key") is None


def test_arrow_sees_the_same_objects(storage: ObjectStore) -> None:
    storage.put_if_absent("folder/key", b"content")
    filesystem, root = storage.arrow()
    with filesystem.open_input_stream(f"{root}/folder/key") as stream:
        assert stream.read() == b"content"


def test_a_local_put_leaves_nothing_but_the_object(tmp_path: Path) -> None:
    storage = open_store(str(tmp_path))
    storage.put_if_absent("folder/key", b"first")
    storage.put_if_absent("folder/key", b"second")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["key"]


def test_a_local_put_into_something_that_is_no_folder_is_certainly_not_written(tmp_path: Path) -> None:
    storage = open_store(str(tmp_path))
    storage.put_if_absent("file", b"x")
    with pytest.raises(StorageError) as caught:
        storage.put_if_absent("file/below", b"y")
    assert caught.value.facts["unknown"] is False


def test_a_store_that_cannot_be_reached_leaves_the_outcome_unknown() -> None:
    options = S3Access(
        endpoint="http://127.0.0.1:9", region="us-east-1", access_key=secret("a"), secret_key=secret("b")
    )
    with pytest.raises(StorageError) as caught:
        open_store("s3://bucket/root", options).put_if_absent("key", b"x")
    assert caught.value.facts["unknown"] is True


def test_a_bucket_that_is_missing_is_certainly_not_written(s3: S3Server) -> None:
    with pytest.raises(StorageError) as caught:
        open_store("s3://no-such-bucket/root", s3.options).put_if_absent("key", b"x")
    assert caught.value.facts["unknown"] is False


def test_a_missing_bucket_is_not_an_empty_answer(s3: S3Server) -> None:
    storage = open_store("s3://no-such-bucket/root", s3.options)
    with pytest.raises(StorageError):
        storage.get("key")
    with pytest.raises(StorageError):
        list(storage.keys(""))


def test_file_uris_and_paths_name_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    open_store(str(folder)).put_if_absent("key", b"x")
    assert open_store(folder.as_uri()).get("key") == b"x"
    assert open_store(os.path.relpath(folder)).get("key") == b"x"


def test_a_scheme_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="gs"):
        open_store("gs://bucket/root")


def test_unknown_storage_properties_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"s3\.colour"):
        S3Access.from_properties({"s3.colour": "red"})


def test_secrets_do_not_show() -> None:
    keys = {"s3.access_key": "hidden", "s3.secret_key": "hidden"}
    options = S3Access.from_properties({**keys, "use_path_style": "true"})
    assert "hidden" not in repr(options)
    assert options.path_style
