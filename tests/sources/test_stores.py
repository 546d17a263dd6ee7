"""Listings: complete, in the byte order of keys, loud when they fail."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import ConfigError, ListingError
from lading.model.s3_access import S3Access
from lading.sources.files.payload import parse_payload
from lading.sources.files.source import FilesSource
from lading.testing.marked import secret
from tests.sources.support import BIG, Job, Place, with_columns
from tests.tables.s3_server import S3Server


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
        FilesSource(replace(spec, s3=access)).open("")
    with pytest.raises(ConfigError, match="Can not build s3"):
        FilesSource(replace(spec, s3=replace(access, endpoint="http://[nonsense"))).open("")


def test_a_name_that_is_not_utf8_is_refused_only_if_it_matches(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("a.csv", b"1\n")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")).write_bytes(b"")
    assert FilesSource(place.bare("*.csv")).first_file() is not None
    with pytest.raises(ListingError, match="not UTF-8"):
        FilesSource(place.bare("*.json")).first_file()
