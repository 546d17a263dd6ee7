"""The driver's side of two sources: partitions of both, each under the name of its side.

Nobody behind this sees that there are two: batches, positions, bills, moves and the watermark are over all partitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from lading.errors import TrimmedError
from lading.model.batch import BatchPlan, Limits, Split
from lading.model.bill import Bill
from lading.model.pairs import SIDES, on_side, side_of
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.sources.kind import OpenSource, SourceSurvey
from lading.sources.streams import StreamSight


class PairSource:
    """Implements `lading.plan.planner.Source`."""

    def __init__(self, sides: Mapping[str, OpenSource]) -> None:
        self.sides = sides

    def open(self, start: str) -> Positions:
        """Where both begin. `start` has the start of each."""
        starts = json.loads(start)
        opened = {side: source.driver.open(starts[side]) for side, source in self.sides.items()}
        partitions = {
            on_side(side, name): _renamed(side, state)
            for side, positions in opened.items()
            for name, state in positions.partitions.items()
        }
        incarnations = {side: positions.incarnation for side, positions in opened.items()}
        return Positions(incarnation=_together(incarnations), partitions=partitions)

    def list_partitions(self) -> Listing:
        found = {side: source.driver.list_partitions() for side, source in self.sides.items()}
        return Listing(
            incarnation=_together({side: listing.incarnation for side, listing in found.items()}),
            partitions={
                on_side(side, name): ListedPartition(parents=tuple(on_side(side, each) for each in listed.parents))
                for side, listing in found.items()
                for name, listed in listing.partitions.items()
            },
            can_shrink=any(listing.can_shrink for listing in found.values()),
            lasting=tuple(on_side(side, "") for side, listing in found.items() if not listing.can_shrink),
        )

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """Splits of both, each with half of what a batch may have. Raises TrimmedError, as one of them does."""
        half = replace(
            limits,
            rows=max(1, limits.rows // 2),
            size_bytes=max(1, limits.size_bytes // 2),
            files=max(1, limits.files // 2),
        )
        found = list[Split]()
        for side, source in self.sides.items():
            # A side whose columns are only expected is opened again before anything of it is read.
            own = states_of_side(side, ready) if source.schema is not None else {}
            try:
                splits = source.driver.plan(own, half) if own else ()
            except TrimmedError as error:
                error.facts["partition"] = on_side(side, str(error.facts["partition"]))
                raise
            for split in sorted(splits, key=lambda each: each.number):
                found.append(replace(split, number=len(found), partition=on_side(side, split.partition)))
        return tuple(found)

    def sight(self, positions: Positions) -> StreamSight:
        """How far both are behind. Of one that counts something else nobody knows it in this unit."""
        lag, facts = dict[str, int | None](), dict[str, int]()
        trims, opened, closed = list[float](), list[str](), list[str]()
        for side, source in self.sides.items():
            own = positions_of_side(side, positions)
            if source.sight is None:
                lag |= {on_side(side, name): None for name, state in own.partitions.items() if not state.finished}
                continue
            seen = source.sight(own)
            lag |= {on_side(side, name): behind for name, behind in seen.lag.items()}
            facts |= {on_side(side, name): value for name, value in seen.facts.items()}
            trims += [seen.seconds_to_trim] if seen.seconds_to_trim is not None else []
            opened += [on_side(side, name) for name in seen.open_partitions]
            closed += [on_side(side, name) for name in seen.closed_partitions]
        return StreamSight(
            lag=lag,
            facts=facts,
            seconds_to_trim=min(trims, default=None),
            open_partitions=tuple(opened),
            closed_partitions=tuple(closed),
        )

    def survey(self, positions: Positions) -> SourceSurvey:
        """What is there of the files of both."""
        pending, left_out = dict[str, int](), dict[str, int]()
        behind, remarks, settles = list[str](), list[str](), [0.0]
        for side, source in self.sides.items():
            if source.survey is None:
                continue
            found = source.survey(positions_of_side(side, positions))
            pending |= {on_side(side, name): files for name, files in found.pending.items()}
            left_out = {
                key: left_out.get(key, 0) + found.left_out.get(key, 0) for key in {**left_out, **found.left_out}
            }
            behind.append(f"{side}: {found.behind}")
            remarks += [f"{side}: {found.remark}"] if found.remark else []
            settles.append(found.settles_in_s)
        return SourceSurvey(
            pending=pending,
            behind="; ".join(behind),
            left_out=left_out,
            remark="; ".join(remarks),
            settles_in_s=max(settles),
        )

    def behind(self, positions: Positions) -> str:
        """The same in words."""
        texts = dict[str, str]()
        for side, source in self.sides.items():
            own = positions_of_side(side, positions)
            texts[side] = source.behind(own) if source.survey is None else source.survey(own).behind
        return "; ".join(f"{side}: {text}" for side, text in texts.items() if text)

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Where both end now."""
        ends = {
            side: source.pin(positions_of_side(side, positions))
            for side, source in self.sides.items()
            if source.pin is not None
        }
        return lambda now: all(is_there(positions_of_side(side, now)) for side, is_there in ends.items())

    def resolve(self, moves: Mapping[str, str]) -> dict[str, str | None]:
        found = dict[str, str | None]()
        for side, source in self.sides.items():
            own = {name: at for name, at in moves.items() if side_of(name)[0] == side}
            resolved = source.resolve({side_of(name)[1]: at for name, at in own.items()}) if own else {}
            found |= {on_side(side, name): at for name, at in resolved.items()}
        return found

    def show_range(self, plan: BatchPlan, bill: Bill | None) -> str:
        shown = {
            side: source.show_range(plan_of_side(side, plan), None if bill is None else bill_of_side(side, bill))
            for side, source in self.sides.items()
        }
        return _together(shown, is_json=True)

    def show_end(self) -> str:
        return _together({side: source.show_end() for side, source in self.sides.items()}, is_json=True)

    def acknowledge(self, bill: Bill) -> None:
        for side, source in self.sides.items():
            source.acknowledge(bill_of_side(side, bill))

    def look_everywhere(self) -> None:
        for source in self.sides.values():
            source.look_everywhere()

    def can_learn_columns(self) -> bool:
        """Whether opening them again helps: not as long as something is missing that is not even expected."""
        unknown = [source for source in self.sides.values() if source.schema is None]
        known = {source.can_learn_columns() for source in unknown if source.expected is None}
        return False not in known and (True in known or any(source.can_learn_columns() for source in unknown))

    def close(self) -> None:
        close_all(self.sides.values())


def close_all(sources: Iterable[OpenSource]) -> None:
    """Close each, also when closing another one fails. Raises what the last of them raised."""
    with ExitStack() as closing:
        for source in sources:
            closing.callback(source.close)


def texts_together(texts: Mapping[str, str]) -> str:
    """Texts of both sides as one, which are JSON themselves; nothing when there are none."""
    return _together(texts, is_json=True)


def states_of_side(side: str, states: Mapping[str, PartitionState]) -> dict[str, PartitionState]:
    """Partitions of one side, by their own names."""
    found = {side_of(name): state for name, state in states.items()}
    return {
        own: replace(state, parents=tuple(side_of(each)[1] for each in state.parents)) if state.parents else state
        for (place, own), state in found.items()
        if place == side
    }


def positions_of_side(side: str, positions: Positions) -> Positions:
    """The positions of one side, by its own names."""
    together = json.loads(positions.incarnation) if positions.incarnation else {}
    return replace(positions, incarnation=together.get(side, ""), partitions=states_of_side(side, positions.partitions))


def plan_of_side(side: str, plan: BatchPlan) -> BatchPlan:
    """What a batch reads of one side."""
    own = [split for split in plan.splits if side_of(split.partition)[0] == side]
    splits = tuple(replace(split, partition=side_of(split.partition)[1]) for split in own)
    return replace(plan, positions=positions_of_side(side, plan.positions), splits=splits)


def bill_of_side(side: str, bill: Bill) -> Bill:
    """What a commit says of one side."""
    own = [each for each in bill.ranges if side_of(each.partition)[0] == side]
    ranges = tuple(replace(each, partition=side_of(each.partition)[1]) for each in own)
    return replace(bill, positions=positions_of_side(side, bill.positions), ranges=ranges)


def _renamed(side: str, state: PartitionState) -> PartitionState:
    return replace(state, parents=tuple(on_side(side, each) for each in state.parents)) if state.parents else state


def _together(texts: Mapping[str, str], *, is_json: bool = False) -> str:
    known = {side: json.loads(texts[side]) if is_json else texts[side] for side in SIDES if texts.get(side)}
    return json.dumps(known, separators=(",", ":"), ensure_ascii=False) if known else ""
