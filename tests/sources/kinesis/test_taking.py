"""Records that are taken many at once are taken as they would be one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.model.batch import Limits
from lading.model.row_formats import JsonOptions
from lading.model.rows import SplitEnd
from lading.sources.kinesis import split_reader as module
from lading.sources.kinesis.fetcher import Page
from lading.sources.kinesis.position import HORIZON, render_position
from lading.sources.kinesis.split_reader import Taking
from lading.sources.records.parser import RecordParser
from tests.sources.kinesis.support import BIRTH, FORMAT, make_spec, row, shard, split_of
from tests.support.kinesis.aggregate import aggregate


class OneByOne(Taking):
    def _count_plain(self, records: list[dict[str, Any]], at: int) -> int:
        return 0


def data_of(kind: str, number: int) -> bytes:
    if kind == "empty":
        return b""
    if kind == "aggregate":
        return aggregate([("a", row("a", number)), ("b", row("b", number)), ("c", b"")])
    if kind == "several":
        return b"[" + row("a", number) + b"," + row("b", number) + b"]"
    return b"[" + row("k", number, pad="x" * (300 if kind == "long" else number % 7)) + b"]"


def pages_of(kinds: list[str], cuts: list[int]) -> list[Page]:
    records = [
        {
            "SequenceNumber": str(10**20 + number),
            "Data": data_of(kind, number),
            "PartitionKey": f"key-{number % 3}",
            "ApproximateArrivalTimestamp": BIRTH,
        }
        for number, kind in enumerate(kinds)
    ]
    pages, at = [], 0
    for cut in [*cuts, len(records)]:
        pages.append(Page(records=records[at : at + cut], behind_ms=5, ended=False, asked_at=BIRTH))
        at += cut
    return pages


def take(kind: type[Taking], pages: list[Page], limits: Limits) -> tuple[list[dict[str, Any]], SplitEnd]:
    form = replace(FORMAT, json=JsonOptions(strip_outer_array=True))
    spec = make_spec(format=form)
    split = split_of(shard(0), render_position(HORIZON), limits=limits)
    taking = kind(spec, split, RecordParser(form, spec.meta_schema))
    batches: list[pa.RecordBatch] = []
    for page in pages:
        batches += taking.take(page)
        if taking.is_full:
            break
    batches += taking.flush()
    return [found for batch in batches for found in batch.to_pylist()], taking.end()


@settings(deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["plain"] * 6 + ["long", "empty", "aggregate", "several"]), max_size=60),
    cuts=st.lists(st.integers(0, 20), max_size=6),
    rows=st.integers(1, 80),
    size_bytes=st.integers(1, 4000),
    block=st.sampled_from([(100, 3), (700, 16), (100_000, 1000)]),
)
def test_many_at_once_is_the_same_as_one_by_one(
    kinds: list[str], cuts: list[int], rows: int, size_bytes: int, block: tuple[int, int]
) -> None:
    pages, limits = pages_of(kinds, cuts), Limits(rows=rows, size_bytes=size_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block[0])
        patch.setattr(module, "BLOCK_RECORDS", block[1])
        found, end = take(Taking, pages, limits)
        expected, expected_end = take(OneByOne, pages, limits)
    assert found == expected
    assert end == expected_end
