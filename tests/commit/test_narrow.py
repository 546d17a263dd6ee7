"""Batches that were cut down to single records read one partition at a time, and none is forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lading.commit.watermark import advance_watermark
from lading.model.batch import BatchPlan, Limits, PoisonRecord, RecordPlace, Split
from lading.model.job import WatermarkRule
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.plan.planner import Planner
from lading.testing.clock import ManualClock

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLACE = RecordPlace(partition="1", at="0", words="offset 0", is_record=True)


class Topic:
    """Partitions that have rows up to an offset."""

    def __init__(self, **ends: int) -> None:
        self.ends = {name.removeprefix("p"): end for name, end in ends.items()}

    def open(self, start: str) -> Positions:
        return Positions(partitions={name: PartitionState(at="0") for name in self.ends})

    def list_partitions(self) -> Listing:
        return Listing(partitions={name: ListedPartition() for name in self.ends})

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        splits = list[Split]()
        for name, state in sorted(ready.items()):
            at = int(state.at)
            if at < self.ends[name]:
                rows = min(self.ends[name] - at, max(1, limits.rows // len(ready)))
                words = f"offset {at}" if rows == 1 else ""
                split = Split(number=len(splits), partition=name, start=state.at, end=str(at + rows), least=words)
                splits.append(replace(split, is_record=rows == 1))
        return tuple(splits)


def read(plan: BatchPlan) -> Positions:
    """What is committed after it."""
    known = dict(plan.positions.partitions)
    for split in plan.splits:
        known[split.partition] = replace(known[split.partition], at=split.end or "")
    return replace(plan.positions, partitions=known)


def test_each_partition_has_its_turn() -> None:
    topic, clock = Topic(p0=40, p1=40, p2=40), ManualClock(NOW)
    planner, positions, read_of = Planner(topic, clock, is_narrow=True), topic.open(""), list[str]()
    for _ in range(120):
        plan = planner.plan(positions, Limits(rows=1))
        assert planner.plan(positions, Limits(rows=1)) == plan
        (split,) = plan.splits
        read_of.append(split.partition)
        positions = read(plan)
    assert {read_of.count(name) for name in topic.ends} == {40}
    assert len(set(read_of[:20])) == 3


def test_batches_that_can_be_made_smaller_read_all_partitions() -> None:
    topic = Topic(p0=40, p1=40)
    plan = Planner(topic, ManualClock(NOW), is_narrow=True).plan(topic.open(""), Limits(rows=10, files=1))
    assert [split.partition for split in plan.splits] == ["0", "1"]


@pytest.mark.parametrize("poison", [None, PoisonRecord(place=PLACE, reason="it kills")])
def test_partitions_that_wait_for_their_turn_hold_the_watermark(poison: PoisonRecord | None) -> None:
    topic, clock, rule = Topic(p0=9, p1=9), ManualClock(NOW), WatermarkRule(delay_us=0, idle_s=60)
    states = {"0": 1, "1": 2}
    at = {name: PartitionState(at="0", event_us=time, read_at=NOW) for name, time in states.items()}
    base = Positions(partitions=at, watermark_us=1)
    clock.sleep(3600)
    plan = Planner(topic, clock, is_narrow=True, poison=poison).plan(base, Limits(rows=1))
    assert len(plan.splits) == 1
    after = advance_watermark(rule, base, plan.positions, (), clock.now())
    left_out = ({"0", "1"} - {plan.splits[0].partition}).pop()
    assert after.partitions[left_out].read_at == NOW + timedelta(hours=1)
    assert after.watermark_us == max(1, states[left_out])


def test_a_record_is_passed_over_also_when_others_have_come_behind_it() -> None:
    topic = Topic(p0=9, p1=9)
    planner = Planner(topic, ManualClock(NOW), poison=PoisonRecord(place=PLACE, reason="it kills"))
    plan = planner.plan(topic.open(""), Limits(rows=1_000))
    assert [(split.partition, split.end, split.poison) for split in plan.splits] == [("1", "1", "it kills")]
    # Once it is behind, nothing is left of it: the planner stays the same for as long as the job is open.
    assert [split.end for split in planner.plan(read(plan), Limits(rows=1_000)).splits] == ["9", "9"]


def test_all_splits_of_a_file_pass_over_it_and_no_other_file_comes_with_it() -> None:
    place = RecordPlace(partition="in/", at="a.csv", words="file b.csv", is_record=True, inside=(40, 7))

    class Folder(Topic):
        def list_partitions(self) -> Listing:
            return Listing(partitions={"in/": ListedPartition()})

        def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
            assert limits.files == 1, "no other file comes with it"
            first = Split(number=0, partition="in/", start="a.csv", end="b.csv#9", least="file b.csv", is_record=True)
            return (first, replace(first, number=1, start="b.csv#9", end="b.csv"))

    planner = Planner(Folder(), ManualClock(NOW), poison=PoisonRecord(place=place, reason="it kills"))
    known = {"in/": PartitionState(at="a.csv")}
    plan = planner.plan(Positions(partitions=known), Limits())
    assert [(split.number, split.poison, split.poison_at) for split in plan.splits] == [
        (0, "it kills", (40, 7)),
        (1, "it kills", (40, 7)),
    ]
    assert (plan.least, plan.rows_passed_over) == (place, 2)
