"""Which partitions are known, which may be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lading.errors import ConfigError, SourceError, TrimmedError
from lading.model.positions import (
    BEGINNING,
    ListedPartition,
    Listing,
    PartitionState,
    Positions,
    merge_listing,
    move_positions,
    passed_partitions,
    ready_partitions,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def positions(**states: PartitionState) -> Positions:
    return Positions(partitions=states)


def listing(**parents: tuple[str, ...]) -> Listing:
    return Listing(partitions={name: ListedPartition(parents=found) for name, found in parents.items()})


def test_a_new_partition_is_read_from_its_beginning() -> None:
    merged = merge_listing(positions(a=PartitionState(at="5")), listing(a=(), b=("a",)), NOW)
    assert merged.partitions["b"] == PartitionState(at=BEGINNING, parents=("a",))


def test_a_finished_partition_is_forgotten_when_listings_have_lacked_it_for_an_hour() -> None:
    base = positions(a=PartitionState(at="5", finished=True))
    assert "a" in merge_listing(base, listing(a=()), NOW).partitions
    missed = merge_listing(base, listing(), NOW)
    assert missed.partitions["a"].missing_since == NOW
    later = NOW + timedelta(minutes=59)
    assert merge_listing(missed, listing(), later) == missed
    assert merge_listing(missed, listing(a=()), later) == base  # It was an old listing.
    assert merge_listing(missed, listing(), NOW + timedelta(hours=1)).partitions == {}


def test_a_partition_that_was_given_up_stays_known_for_ever() -> None:
    given_up = move_positions(positions(a=PartitionState(at="5")), {"a": None})
    for days in range(3):
        given_up = merge_listing(given_up, listing(), NOW + timedelta(days=days))
    back = merge_listing(given_up, listing(a=()), NOW + timedelta(days=9))
    assert ready_partitions(back, back) == {}
    assert back.partitions["a"].given_up
    moved = move_positions(back, {"a": "7"})
    assert ready_partitions(moved, moved) == {"a": PartitionState(at="7")}


def test_a_partition_that_vanishes_unfinished_is_an_error_with_its_position() -> None:
    with pytest.raises(TrimmedError, match="read only up to '5'"):
        merge_listing(positions(a=PartitionState(at="5")), listing(), NOW)


def test_a_source_made_again_under_the_same_name_stops_the_job() -> None:
    with pytest.raises(SourceError, match="made again"):
        merge_listing(Positions(incarnation="monday"), Listing(incarnation="tuesday"), NOW)


def test_a_source_that_learns_who_it_is_stays_the_same_and_one_that_forgets_does_not() -> None:
    merged = merge_listing(Positions(), Listing(incarnation="tuesday"), NOW)
    assert merged.incarnation == "tuesday"
    with pytest.raises(SourceError, match="made again"):
        merge_listing(merged, Listing(), NOW)


def test_a_child_waits_until_all_parents_are_finished_and_that_is_committed() -> None:
    child = PartitionState(at=BEGINNING, parents=("a", "b"))
    one = positions(a=PartitionState(at="5", finished=True), b=PartitionState(at="5"), c=child)
    both = positions(a=PartitionState(at="5", finished=True), b=PartitionState(at="5", finished=True), c=child)
    assert list(ready_partitions(one, one)) == ["b"]
    assert list(ready_partitions(one, both)) == []
    assert list(ready_partitions(both, both)) == ["c"]


def test_a_parent_that_nobody_knows_any_more_does_not_hold_its_child_back() -> None:
    orphan = positions(c=PartitionState(at=BEGINNING, parents=("gone",)))
    assert list(ready_partitions(orphan, orphan)) == ["c"]


def test_a_partition_moved_by_an_operator_is_read_again() -> None:
    moved = move_positions(positions(a=PartitionState(at="9", finished=True, marks={"x": "y"})), {"a": "3"})
    assert moved.partitions["a"] == PartitionState(at="3")


def test_a_partition_given_up_counts_as_finished_where_it_stands() -> None:
    moved = move_positions(positions(a=PartitionState(at="3")), {"a": None})
    assert moved.partitions["a"] == PartitionState(at="3", finished=True, given_up=True)


def test_moving_a_partition_that_is_not_read_is_refused_and_says_which_are() -> None:
    with pytest.raises(ConfigError, match=r"does not read partition z.*It reads: a"):
        move_positions(positions(a=PartitionState(at="3")), {"z": "1"})


def test_a_finished_partition_is_passed_once_its_children_are_being_read() -> None:
    merging = {
        "a": PartitionState(at="9", finished=True),
        "b": PartitionState(at="3"),
        "child": PartitionState(at="", parents=("a", "b")),
        "lonely": PartitionState(at="5", finished=True),
        "left": PartitionState(at="5", finished=True, given_up=True),
    }
    assert passed_partitions(Positions(partitions=merging)) == {"left"}
    merged = {**merging, "b": PartitionState(at="9", finished=True)}
    assert passed_partitions(Positions(partitions=merged)) == {"a", "b", "left"}


def test_a_partition_that_is_given_up_twice_stays_given_up() -> None:
    """An ALTER that was cut off is repeated. It took the mark away, and the partition could be read again."""
    positions = Positions(partitions={"a": PartitionState(at="3")})
    twice = move_positions(move_positions(positions, {"a": None}), {"a": None})
    assert twice.partitions["a"].given_up
    read = Positions(partitions={"a": PartitionState(at="3", finished=True)})
    assert not move_positions(read, {"a": None}).partitions["a"].given_up
