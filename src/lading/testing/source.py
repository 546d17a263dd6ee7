"""A source in memory that grows, reshards, trims and fails: what a stream does in a bad month."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

from lading.errors import ListingError, TrimmedError
from lading.model.batch import Limits, Split
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions

HASH_SPACE = 1 << 16


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `number` counts the records of its key, so order can be checked."""

    key: int
    number: int
    fate: str
    """loaded, unselected or error. A row that would be loaded may be late."""
    event: int = 0
    """Its event time."""
    is_deadly: bool = False
    """It ends every worker that reads it. Its fate is error: all that can be done is to put it into quarantine."""

    def fate_at(self, watermark: int | None) -> str:
        """Its fate in a batch that begins with this watermark."""
        return "late" if self.fate == "loaded" and watermark is not None and self.event < watermark else self.fate


@dataclass(slots=True)
class Shard:
    """An append-only list of rows for a range of hashes."""

    name: str
    low: int
    high: int
    parents: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """When each row arrived."""
    horizon: int = 0
    """Rows before this offset were trimmed."""
    closed_at: int | None = None
    expired: bool = False

    @property
    def closed(self) -> bool:
        return self.closed_at is not None


@dataclass(frozen=True, slots=True)
class Extent:
    """What there was to read at a moment when a batch was planned, whatever the batch then took."""

    at: datetime
    ends: Mapping[str, int]
    """How many rows each shard had."""
    closed: frozenset[str]

    def has_more(self, name: str, position: str) -> bool:
        """Whether there were rows behind a position, or the end of a shard that had closed."""
        return name in self.closed or offset_of(position) < self.ends.get(name, 0)


class ScriptedSource:
    """The source, both sides: what producers do to it and what Lading may ask it."""

    def __init__(self, rng: Random, *, shards: int = 2, keys: int = 6, knows_ends: bool = False) -> None:
        self.rng = rng
        self.keys = keys
        self.knows_ends = knows_ends
        """Whether a range is planned to its end, as for Kafka, or found while reading, as for Kinesis."""
        self.bad_share = 0.05
        """How many of the rows are bad."""
        self.has_poison = False
        """Whether some of the bad rows are deadly."""
        self.incarnation = "source-1"
        self.shards: dict[str, Shard] = {}
        self.listing_fails = 0
        self.old_listings = 0
        """So many of the next listings lack a partition."""
        self._hidden = ""
        self.time = 0
        self.horizon = 0
        self.now: Callable[[], datetime] | None = None
        """The clock of those who plan. With it the source remembers what it had whenever a batch was planned."""
        self._extents: list[Extent] = []
        self._numbers = dict.fromkeys(range(keys), 0)
        step = HASH_SPACE // shards
        for index in range(shards):
            high = HASH_SPACE if index == shards - 1 else (index + 1) * step
            self._add(index * step, high, ())

    # What producers and the operator of the stream do.

    def produce(self, count: int) -> None:
        """Append rows of random keys to the shards that own them."""
        for _ in range(count):
            key = self.rng.randrange(self.keys)
            draw = self.rng.random()
            fate = "error" if draw < self.bad_share else "unselected" if draw < self.bad_share + 0.1 else "loaded"
            self.time += 1
            owner = self._owner(key)
            behind = self.rng.choice((0, 0, 1, 2, 5, 30))
            is_deadly = self.has_poison and fate == "error"
            owner.rows.append(Row(key, self._numbers[key], fate, self.time - behind, is_deadly))
            owner.times.append(self.time)
            self._numbers[key] += 1

    def split(self) -> None:
        """Close one shard and open two children."""
        parent = self.rng.choice(self._open_shards())
        if parent.high - parent.low < 2:
            return
        middle = (parent.low + parent.high) // 2
        self._close(parent)
        self._add(parent.low, middle, (parent.name,))
        self._add(middle, parent.high, (parent.name,))

    def merge(self) -> None:
        """Close two neighbours and open one child of both."""
        open_shards = sorted(self._open_shards(), key=lambda shard: shard.low)
        if len(open_shards) < 2:
            return
        at = self.rng.randrange(len(open_shards) - 1)
        left, right = open_shards[at], open_shards[at + 1]
        self._close(left)
        self._close(right)
        self._add(left.low, right.high, (left.name, right.name))

    def list_old(self) -> None:
        """The next answer to a listing has not heard of a partition yet, or not again. It takes a while to hear."""
        self._hidden = self.rng.choice(sorted(self.shards))
        self.old_listings = self.rng.randint(1, 3)

    def trim(self) -> None:
        """Retention passes: what arrived before a moment is gone, and shards that were closed before it expire."""
        self.horizon = self.rng.randint(self.horizon, self.time)
        for shard in self.shards.values():
            shard.horizon = max(shard.horizon, bisect_left(shard.times, self.horizon))
            shard.expired = shard.closed_at is not None and shard.closed_at < self.horizon

    def expire_read(self, positions: Positions) -> None:
        """Retention passes as far as everything the job has finished, and no further."""
        unread = [
            offset_time
            for shard in self.shards.values()
            if (offset_time := _first_unread(shard, positions.partitions.get(shard.name))) is not None
        ]
        self.horizon = max(self.horizon, min(unread, default=self.time))
        for shard in self.shards.values():
            shard.horizon = max(shard.horizon, bisect_left(shard.times, self.horizon))
            state = positions.partitions.get(shard.name)
            read = shard.expired or (state is not None and state.finished)
            shard.expired = read and shard.closed_at is not None and shard.closed_at < self.horizon

    # What Lading asks.

    def open(self, start: str) -> Positions:
        partitions = {}
        for shard in self.shards.values():
            if shard.expired:
                continue
            latest = start == "LATEST"
            at = len(shard.rows) if latest else shard.horizon
            partitions[shard.name] = PartitionState(at=str(at), parents=shard.parents, finished=latest and shard.closed)
        return Positions(incarnation=self.incarnation, partitions=partitions)

    def list_partitions(self) -> Listing:
        if self.listing_fails:
            self.listing_fails -= 1
            msg = "A page of the listing could not be read"
            raise ListingError(msg, left="Nothing was read.", todo="It is listed again.")
        listed = {s.name: ListedPartition(parents=s.parents) for s in self.shards.values() if not s.expired}
        if self.old_listings:
            self.old_listings -= 1
            listed.pop(self._hidden, None)
        return Listing(incarnation=self.incarnation, partitions=listed)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        splits: list[Split] = []
        for name, state in ready.items():
            shard, at = self.shards[name], offset_of(state.at)
            if at < shard.horizon:
                msg = f"Rows {at} to {shard.horizon} of {name} are gone from the source"
                raise TrimmedError(
                    msg,
                    left="The position is unchanged.",
                    todo="Move the partition.",
                    partition=name,
                    at=state.at,
                    horizon=str(shard.horizon),
                )
            if at < len(shard.rows) or shard.closed:
                end = str(min(len(shard.rows), at + limits.rows)) if self.knows_ends and at < len(shard.rows) else None
                is_record = limits.rows == 1 and at < len(shard.rows)
                split = Split(number=len(splits), partition=name, start=state.at, end=end, limits=limits)
                splits.append(replace(split, least=f"offset {at}" if is_record else "", is_record=is_record))
        if self.now is not None:
            ends = {name: len(shard.rows) for name, shard in self.shards.items()}
            closed = frozenset(name for name, shard in self.shards.items() if shard.closed)
            self._extents.append(Extent(self.now(), ends, closed))
        return tuple(splits)

    # What the reader and the verifier see.

    def rows(self, partition: str, start: str, end: str) -> list[Row]:
        """The rows of a range, also of trimmed ones: the verifier must know what there was."""
        return self.shards[partition].rows[offset_of(start) : offset_of(end)]

    def extent_of(self, planned_at: datetime) -> Extent:
        """What there was when a batch was planned. Its planning began at this time, and no other came between."""
        return self._extents[bisect_left(self._extents, planned_at, key=lambda extent: extent.at)]

    def _owner(self, key: int) -> Shard:
        spot = (key * 40503) % HASH_SPACE
        return next(shard for shard in self._open_shards() if shard.low <= spot < shard.high)

    def _open_shards(self) -> list[Shard]:
        return [shard for shard in self.shards.values() if not shard.closed]

    def _close(self, shard: Shard) -> None:
        self.time += 1
        shard.closed_at = self.time

    def _add(self, low: int, high: int, parents: tuple[str, ...]) -> None:
        name = f"shard-{len(self.shards):04d}"
        self.shards[name] = Shard(name, low, high, parents)


def _first_unread(shard: Shard, state: PartitionState | None) -> int | None:
    if shard.expired or (state is not None and state.finished):
        return None
    at = 0 if state is None else offset_of(state.at)
    return shard.times[at] if at < len(shard.times) else None


def offset_of(at: str) -> int:
    """The offset a position text stands for."""
    return 0 if at == BEGINNING else int(at)
