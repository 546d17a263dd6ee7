"""A listing may be old: what it lacks is asked for again, and nothing is read twice because of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from lading.errors import ListingError, TrimmedError
from lading.model.batch import Limits, Split
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.plan.planner import Planner
from lading.testing.clock import ManualClock


@dataclass
class Topic:
    """A log of ten rows in each of three partitions. The next `old` listings lack the last one."""

    can_shrink: bool = False
    old: int = 0
    listings: int = 0
    names: tuple[str, ...] = ("0", "1", "2")
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def open(self, start: str) -> Positions:
        return Positions(partitions={name: PartitionState(at="0") for name in self.names})

    def list_partitions(self) -> Listing:
        self.listings += 1
        shown = self.names[:-1] if self.listings <= self.old else self.names
        partitions = {name: ListedPartition(parents=self.parents.get(name, ())) for name in shown}
        return Listing(partitions=partitions, can_shrink=self.can_shrink)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return tuple(Split(number=at, partition=name, start=ready[name].at) for at, name in enumerate(sorted(ready)))


def planned(topic: Topic, *, on_data_loss: str = "PAUSE") -> list[str]:
    base = topic.open("")
    plan = Planner(topic, ManualClock(), on_data_loss=on_data_loss).plan(base, Limits())
    assert plan.gaps == ()
    return [split.partition for split in plan.splits]


@pytest.mark.parametrize("on_data_loss", ["PAUSE", "CONTINUE"])
@pytest.mark.parametrize("can_shrink", [True, False])
def test_a_partition_that_a_few_listings_lack_is_neither_lost_nor_given_up(can_shrink: bool, on_data_loss: str) -> None:
    assert planned(Topic(can_shrink=can_shrink, old=3), on_data_loss=on_data_loss) == ["0", "1", "2"]


@pytest.mark.parametrize("on_data_loss", ["PAUSE", "CONTINUE"])
def test_partitions_that_never_go_are_listed_again_for_as_long_as_it_takes(on_data_loss: str) -> None:
    with pytest.raises(ListingError, match="an old listing") as caught:
        planned(Topic(old=99), on_data_loss=on_data_loss)
    assert caught.value.retry


def test_a_shard_that_several_listings_lack_is_lost() -> None:
    with pytest.raises(TrimmedError, match="Partition 2 is gone"):
        planned(Topic(can_shrink=True, old=99))


def test_a_child_does_not_overtake_a_parent_that_the_listing_lacks() -> None:
    topic = Topic(can_shrink=True, old=2, names=("0", "child", "parent"), parents={"child": ("parent",)})
    base = Positions(partitions={"0": PartitionState(at="0")})
    plan = Planner(topic, ManualClock()).plan(base, Limits())
    assert [split.partition for split in plan.splits] == ["0", "parent"]
