"""Positions, starts, aggregates and hash ranges: what can be said of them for all values."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.sources.kinesis.kpl import MAGIC, UserRecord, all_belong, user_records_or_none
from lading.sources.kinesis.payload import Payload, parse_payload, render_payload
from lading.sources.kinesis.position import (
    BEGINNING,
    HORIZON,
    Position,
    after_sequence,
    at_sequence,
    at_time,
    from_horizon,
    parse_position,
    render_position,
)
from lading.sources.kinesis.shards import LAST_HASH, Shard, ancestors, descendants, first_hole_or_none
from lading.sources.kinesis.starts import parse_start, render_start
from tests.support.kinesis.aggregate import aggregate, seal

SEQUENCES = st.integers(0, 10**56)
MOMENTS = st.integers(0, 4_000_000_000_000).map(
    lambda ms: datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)
)
POSITIONS = st.one_of(
    st.just(BEGINNING),
    st.just(HORIZON),
    MOMENTS.map(at_time),
    MOMENTS.map(from_horizon),
    st.builds(at_sequence, SEQUENCES, st.integers(0, 10_000)),
    SEQUENCES.map(after_sequence),
)
KEYS = st.text(min_size=1, max_size=20)
RECORDS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.binary(max_size=60)), st.tuples(KEYS, st.binary(max_size=60), st.integers(0, LAST_HASH))
    ),
    max_size=8,
)


@given(POSITIONS)
def test_positions_come_back_from_their_text(position: Position) -> None:
    assert parse_position(render_position(position)) == position


@pytest.mark.parametrize("text", ["AT", "AT x", "AFTER -1", "TIME soon", "LATEST", "4954", "AFTER 1 2 3"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_position(text)


def test_the_beginning_is_the_empty_text() -> None:
    assert render_position(BEGINNING) == ""


def test_numbers_compare_as_numbers() -> None:
    assert parse_position("AFTER 100").sequence > parse_position("AFTER 99").sequence


@given(st.dictionaries(st.text(max_size=9), st.sampled_from(["LATEST", "TRIM_HORIZON", "17"]), max_size=3))
def test_starts_come_back_from_their_text(shards: dict[str, str]) -> None:
    start = parse_start(render_start("TRIM_HORIZON", shards))
    assert (start.default, dict(start.shards)) == ("TRIM_HORIZON", shards)


@given(st.integers(0, LAST_HASH), st.integers(0, LAST_HASH), st.booleans(), st.booleans())
def test_payloads_come_back_from_their_text(start: int, end: int, verify: bool, oldest: bool) -> None:
    payload = Payload(hash_start=start, hash_end=end, verify=verify, from_oldest=oldest)
    assert parse_payload(render_payload(payload)) == payload


@given(RECORDS)
def test_aggregates_come_apart_as_they_were_put_together(records: list[tuple[str, bytes]]) -> None:
    found = user_records_or_none(aggregate(records))
    assert found == [UserRecord(one[0], one[2] if len(one) == 3 else None, one[1]) for one in records]


@given(st.binary(max_size=200))
def test_whatever_is_not_an_aggregate_is_a_plain_record(data: bytes) -> None:
    assert user_records_or_none(data) is None
    assert user_records_or_none(MAGIC + data) is None or len(data) >= 16


@given(st.binary(max_size=100))
def test_a_digest_that_fits_does_not_make_an_aggregate(body: bytes) -> None:
    """Anything may stand between the mark and its digest: it never raises."""
    found = user_records_or_none(seal(body))
    assert found is None or isinstance(found, list)


@given(RECORDS.filter(bool), st.data())
def test_a_changed_byte_makes_a_plain_record(records: list[tuple[str, bytes]], data: st.DataObject) -> None:
    whole = bytearray(aggregate(records))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    assert user_records_or_none(bytes(whole)) is None


def test_tags_and_unknown_fields_are_passed_over() -> None:
    record = b"\x08\x00\x1a\x01x\x22\x05\x0a\x01t\x12\x00"
    body = b"\x0a\x01k" + b"\x1a" + bytes([len(record)]) + record + b"\x31" + b"12345678" + b"\x3d" + b"1234"
    assert user_records_or_none(seal(body)) == [UserRecord("k", None, b"x")]


@pytest.mark.parametrize(
    "body",
    [
        b"\x1a\x04\x08\x00\x1a\x00",  # a key that is not in the table
        b"\x0a\x01k\x1a\x02\x08\x00",  # no data
        b"\x0a\x01k\x1a\x02\x1a\x00",  # no key
        b"\x0a\x01k\x1a\x06\x08\x00\x10\x00\x1a\x00",  # a hash that is not in the table
        b"\x0a\x01\xff",  # a key that is no text
        b"\x12\x01x",  # a hash that is no number
        b"\x08\x01",  # a table that is a number
        b"\x0b\x00",  # a wire type that is not used
        b"\x0a\x7f",  # cut off
        b"\xff" * 12,
    ],
)
def test_a_message_that_is_broken_is_a_plain_record(body: bytes) -> None:
    assert user_records_or_none(seal(body)) is None


def test_the_hash_of_a_record_is_the_explicit_one_or_that_of_its_key() -> None:
    hashed = int(hashlib.md5(b"key").hexdigest(), 16)
    assert UserRecord("key", None, b"").hash == hashed
    assert UserRecord("key", 7, b"").hash == 7
    assert all_belong([UserRecord("key", None, b""), UserRecord("x", hashed, b"")], hashed, hashed)
    assert not all_belong([UserRecord("key", None, b""), UserRecord("x", hashed + 1, b"")], hashed, hashed)


def cuts(points: set[int]) -> list[Shard]:
    edges = [0, *sorted(points), LAST_HASH + 1]
    return [Shard(name=str(n), hash_start=low, hash_end=high - 1) for n, (low, high) in enumerate(pairwise(edges))]


@given(st.sets(st.integers(1, LAST_HASH), max_size=6), st.data())
def test_a_cover_has_no_hole_until_a_shard_is_taken_out(points: set[int], data: st.DataObject) -> None:
    shards = data.draw(st.permutations(cuts(points)))
    assert first_hole_or_none(shards) is None
    gone = data.draw(st.integers(0, len(shards) - 1))
    taken = shards[gone]
    assert first_hole_or_none(shards[:gone] + shards[gone + 1 :]) == (taken.hash_start, taken.hash_end)


def test_lineages_are_followed_both_ways() -> None:
    def one(name: str, *parents: str) -> Shard:
        return Shard(name=name, hash_start=0, hash_end=1, parents=parents)

    graph = {s.name: s for s in (one("a"), one("b"), one("c", "a", "b"), one("d", "c"), one("e", "gone"))}
    assert descendants(graph, ["a"]) == {"c", "d"}
    assert ancestors(graph, ["d"]) == {"a", "b", "c"}
    assert ancestors(graph, ["e"]) == set()
