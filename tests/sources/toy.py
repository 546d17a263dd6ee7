"""A source that nobody has heard of: lists of words, one for each partition. It is one module and a line in a registry.

FROM TOY ("toy_box" = "animals", "toy_start" = "0")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from lading.errors import SqlError
from lading.model.batch import Limits, Split
from lading.model.load import LoadSpec
from lading.model.moves import Direction, PartitionMove, direction_of, given_up, plain_way
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.model.rows import SplitEnd
from lading.sources.hidden import HIDDEN
from lading.sources.kind import OpenContext, OpenSource
from lading.sources.open_streams import StreamDefaults, StreamParts, opened_stream
from lading.sources.streams import StreamSight
from lading.sql.statements.alter import AlteredSource
from lading.status.lag import LagUnit

BOXES: dict[str, dict[str, list[str]]] = {"animals": {"north": ["hare", "lynx"], "south": ["newt"]}}
NAMES = ("toy_box", "toy_start")


class ToyKind(StreamDefaults):
    """See `StreamKind`. A position is the number of words that were read."""

    name = "TOY"
    lag_unit = LagUnit.RECORDS
    metadata: pa.Schema = pa.schema([("_partition", pa.string())])
    subject = "toy_box"

    def check(self, load: LoadSpec) -> None:
        properties = load.source.properties
        if unknown := [name for name in properties if name not in NAMES]:
            msg = f"{unknown[0]} is invalid property of TOY(…)"
            raise SqlError(msg, property=unknown[0])
        if not properties.get("toy_start", "0").isdecimal():
            msg = "toy_start should be a number"
            raise SqlError(msg, property="toy_start")

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        fields = [(name, pa.string()) for name in (*context.columns, *context.metadata)]
        schema, box = pa.schema([*fields, *HIDDEN]), load.source.properties["toy_box"]
        parts = StreamParts(
            source=ToySource(box),
            read=partial(read_words, box, schema),
            schema=schema,
            start=load.source.properties.get("toy_start", "0"),
            resolve=lambda moves: dict(moves),
        )
        return opened_stream(self, load, parts)

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        return "PAUSE"

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        return False

    def progress(self, positions: Positions) -> dict[str, str]:
        return {name: state.at for name, state in positions.partitions.items()}

    words = progress

    def position_text(self, positions: Positions) -> str:
        return json.dumps(self.progress(positions))

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        return plain_way(old, new) or direction_of(int(new.at) - int(old.at))

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        if end is None:
            return given_up(name, state, "words")
        far = int(end) - int(state.at)
        return PartitionMove(
            partition=name,
            start=state.at,
            end=end,
            direction=direction_of(far),
            again=max(0, -far),
            skipped=max(0, far),
            unit="words",
        )

    def alter(self, old: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
        moves = dict.fromkeys(consumed, changed["toy_start"]) if "toy_start" in changed else {}
        return AlteredSource(properties={**old, **changed}, moves=moves)

    def begin_again(self, old: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
        return {**old, **changed}

    def beginning_at(self, properties: Mapping[str, str], positions: Positions) -> dict[str, str]:
        return {**properties, "toy_start": min(state.at for state in positions.partitions.values())}

    def shown_source(
        self, properties: Mapping[str, str], positions: Positions, sight: StreamSight | None
    ) -> dict[str, str]:
        return {"box": properties["toy_box"]}

    def shown_default(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {}


class ToySource:
    """The driver's side."""

    def __init__(self, box: str) -> None:
        self._words = BOXES[box]

    def open(self, start: str) -> Positions:
        return Positions(partitions={name: PartitionState(at=start) for name in self._words})

    def list_partitions(self) -> Listing:
        return Listing(partitions=dict.fromkeys(self._words, ListedPartition()))

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        unread = [(name, state) for name, state in ready.items() if int(state.at) < len(self._words[name])]
        return tuple(
            Split(number=number, partition=name, start=state.at, end=str(len(self._words[name])), limits=limits)
            for number, (name, state) in enumerate(unread)
        )

    def sight(self, positions: Positions) -> StreamSight:
        lag = {name: len(self._words[name]) - int(state.at) for name, state in positions.partitions.items()}
        return StreamSight(lag=lag)

    def ends(self) -> Mapping[str, str]:
        return {name: str(len(words)) for name, words in self._words.items()}

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        ends = self.ends()
        return lambda now: all(int(state.at) >= int(ends[name]) for name, state in now.partitions.items())


def read_words(box: str, schema: pa.Schema, splits: Sequence[Split]) -> Iterator[pa.RecordBatch | SplitEnd]:
    """What executors do: the first column is the word, the second its number; metadata by its name."""
    for split in splits:
        first, end = int(split.start), int(split.end or split.start)
        words = BOXES[box][split.partition][first:end]
        rows = [
            {
                **dict(zip(schema.names, (str(number), word), strict=False)),
                **({"_partition": split.partition} if "_partition" in schema.names else {}),
                "__file": split.partition,
                "__row": number,
            }
            for number, word in enumerate(words, first)
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)
        yield SplitEnd(end=str(end), rows=len(rows), received_bytes=sum(map(len, words)))
