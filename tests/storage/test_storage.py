"""What a storage promises, on a local disk and in S3."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import boto3
import pytest

from lading.errors import ConfigError, StorageError
from lading.tables.storage import Storage, StorageOptions, open_storage
from lading.testing.marked import secret
from tests.tables.s3_server import S3Server

AWKWARD = ("with space.json", "größe 東京 🚚", 'it\'s "quoted"', "100% %2F", "a+b&c=d?e#f", "deep/er/still")
THREADS = 8


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return open_storage(str(tmp_path / "root"))
    s3 = cast("S3Server", request.getfixturevalue("s3"))
    return open_storage(f"s3://{s3.make_bucket()}/root", s3.options)


def test_what_was_put_can_be_read(storage: Storage) -> None:
    assert storage.put_if_absent("folder/key.json", b"content")
    assert storage.get("folder/key.json") == b"content"


def test_an_empty_object_is_not_an_absent_one(storage: Storage) -> None:
    assert storage.put_if_absent("key", b"")
    assert storage.get("key") == b""
    assert not storage.put_if_absent("key", b"other")


def test_a_second_put_is_refused_and_the_first_content_stays(storage: Storage) -> None:
    storage.put_if_absent("key", b"first")
    assert not storage.put_if_absent("key", b"second")
    assert storage.get("key") == b"first"


def test_an_absent_object_reads_as_none(storage: Storage) -> None:
    assert storage.get("nothing") is None
    assert storage.get("no/such/folder/nothing") is None
    storage.put_if_absent("file", b"x")
    assert storage.get("file/below") is None


def test_of_eight_threads_exactly_one_puts(storage: Storage) -> None:
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
def test_awkward_keys_come_back(storage: Storage, key: str) -> None:
    assert storage.put_if_absent(key, key.encode())
    assert storage.get(key) == key.encode()
    assert list(storage.keys("")) == [key]
    storage.delete([key])
    assert list(storage.keys("")) == []


def test_keys_come_in_order_and_only_those_under_the_prefix(storage: Storage) -> None:
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
    storage = open_storage(f"s3://{bucket}/root", options)
    assert list(storage.keys("")) == [name.removeprefix("root/") for name in names]
    storage.delete(storage.keys(""))
    assert list(storage.keys("")) == []


def test_deleting_what_is_gone_is_fine(storage: Storage) -> None:
    storage.put_if_absent("key", b"x")
    storage.delete(["key", "never/was"])
    storage.delete([])
    assert storage.get("key") is None


def test_arrow_sees_the_same_objects(storage: Storage) -> None:
    storage.put_if_absent("folder/key", b"content")
    filesystem, root = storage.arrow()
    with filesystem.open_input_stream(f"{root}/folder/key") as stream:
        assert stream.read() == b"content"


def test_a_local_put_leaves_nothing_but_the_object(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put_if_absent("folder/key", b"first")
    storage.put_if_absent("folder/key", b"second")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["key"]


def test_a_local_put_into_something_that_is_no_folder_is_certainly_not_written(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.put_if_absent("file", b"x")
    with pytest.raises(StorageError) as caught:
        storage.put_if_absent("file/below", b"y")
    assert caught.value.facts["unknown"] is False


def test_a_store_that_cannot_be_reached_leaves_the_outcome_unknown() -> None:
    options = StorageOptions(
        endpoint="http://127.0.0.1:9", region="us-east-1", access_key=secret("a"), secret_key=secret("b")
    )
    with pytest.raises(StorageError) as caught:
        open_storage("s3://bucket/root", options).put_if_absent("key", b"x")
    assert caught.value.facts["unknown"] is True


def test_a_bucket_that_is_missing_is_certainly_not_written(s3: S3Server) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage("s3://no-such-bucket/root", s3.options).put_if_absent("key", b"x")
    assert caught.value.facts["unknown"] is False


def test_a_missing_bucket_is_not_an_empty_answer(s3: S3Server) -> None:
    storage = open_storage("s3://no-such-bucket/root", s3.options)
    with pytest.raises(StorageError):
        storage.get("key")
    with pytest.raises(StorageError):
        list(storage.keys(""))


def test_file_uris_and_paths_name_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    open_storage(str(folder)).put_if_absent("key", b"x")
    assert open_storage(folder.as_uri()).get("key") == b"x"
    assert open_storage(os.path.relpath(folder)).get("key") == b"x"


def test_a_scheme_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="gs"):
        open_storage("gs://bucket/root")


def test_unknown_storage_properties_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"s3\.colour"):
        StorageOptions.from_properties({"s3.colour": "red"})


def test_secrets_do_not_show() -> None:
    keys = {"s3.access_key": "hidden", "s3.secret_key": "hidden"}
    options = StorageOptions.from_properties({**keys, "use_path_style": "true"})
    assert "hidden" not in repr(options)
    assert options.path_style
