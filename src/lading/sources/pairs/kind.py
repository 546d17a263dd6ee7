"""Two sources as a kind of source: everything is asked of the two, and told under the names of their sides."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import pyarrow as pa

from lading.errors import ConfigError, SqlError
from lading.model.load import LoadSpec, SourceSpec
from lading.model.moves import Direction, PartitionMove, plain_way
from lading.model.pairs import SIDES, of_side, on_side, side_of, single_sources
from lading.model.positions import PartitionState, Positions
from lading.model.rows import LOADED_AT, OF_BATCH
from lading.sources.kind import OpenContext, OpenSource, SourceKind
from lading.sources.pairs.reader import SideReader, read_pair
from lading.sources.pairs.source import PairSource, close_all, positions_of_side, texts_together
from lading.status.lag import LagUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class PairKind:
    """See `SourceKind`. Properties of a pair begin with the side that they are of."""

    left: SourceKind
    right: SourceKind
    metadata = pa.schema([])
    cluster_property = ""
    consumer_property = ""
    keeps_offset = False
    is_ordered = False

    def names_again(self, old: str, new: str) -> bool:
        return any(kind.names_again(old, new) for kind in self.sides.values())

    def repeats_nothing(self, was: PartitionState, now: PartitionState) -> bool:
        return False

    @property
    def sides(self) -> dict[str, SourceKind]:
        return dict(zip(SIDES, (self.left, self.right), strict=True))

    @property
    def libraries(self) -> Collection[str]:
        return {*self.left.libraries, *self.right.libraries}

    @property
    def name(self) -> str:
        return f"{self.left.name}+{self.right.name}"

    @property
    def subject(self) -> str:
        return on_side(SIDES[0], self.left.subject)

    @property
    def property_names(self) -> Collection[str]:
        return [on_side(side, name) for side, kind in self.sides.items() for name in kind.property_names]

    @property
    def start_properties(self) -> Collection[str]:
        """What is read of the second stream is no more to be altered than where they begin."""
        named = [(side, kind.start_properties) for side, kind in self.sides.items()]
        starts = [on_side(side, name) for side, names in named for name in names]
        return [on_side(SIDES[1], self.right.subject), *starts]

    @property
    def lag_unit(self) -> LagUnit:
        """That of the stream, where the other one is files: these are counted by those who load them."""
        return self.right.lag_unit if self.left.lag_unit is LagUnit.FILES else self.left.lag_unit

    def places_of(self, offset: str, partitions: Collection[str]) -> dict[str, str]:
        """`{"left": {"fileName": "…"}, "right": {"0": "1000"}}`: of each side that is named, what its kind takes."""
        try:
            found = json.loads(offset)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()) or not found:
            found = {"": offset}
        if unknown := [side for side in found if side not in SIDES]:
            msg = f"Invalid format for offset: {offset!r} does not say which stream is moved"
            todo = (
                'Write {"left": …} for the first stream, {"right": …} for the second, or both, each as in a job that '
            )
            todo += "that reads it alone takes it."
            raise SqlError(msg, property="offset", value=", ".join(unknown), todo=todo)
        places = dict[str, str]()
        for side, text in found.items():
            own = [side_of(name)[1] for name in partitions if side_of(name)[0] == side]
            moved = self.sides[side].places_of(json.dumps(text, ensure_ascii=False), own)
            places |= {on_side(side, name): at for name, at in moved.items()}
        return places

    def check(self, load: LoadSpec) -> None:
        for _, kind, own in self._loads(load):
            kind.check(own)
        check_consumers(self, load.source.properties)

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        """CONTINUE where both say so."""
        words = {kind.on_data_loss(of_side(side, properties)).upper() for side, kind in self.sides.items()}
        return "CONTINUE" if words == {"CONTINUE"} else "PAUSE"

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        opened = dict[str, OpenSource]()
        try:
            for side, kind, own in self._loads(load):
                opened[side] = kind.open(own, _context_of(side, kind, load, context))
        except BaseException:
            close_all(opened.values())
            raise
        return _opened(load, opened)

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        side, own = side_of(name)
        if side not in self.sides:
            msg = f"The job does not read partition {name}"
            raise ConfigError(msg, left="Nothing was changed.", todo=f"Partitions begin with {' or '.join(SIDES)}.")
        source = cast("PairSource", opened.driver).sides[side]
        return replace(self.sides[side].plan_move(source, own, state, end), partition=name)

    def located(
        self, source: Mapping[str, str], properties: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        where = dict[str, str]()
        for side, kind in self.sides.items():
            located, _ = kind.located(of_side(side, source), {})
            where |= {on_side(side, name): value for name, value in located.items()}
        return where, properties

    def start_warning(self, load: LoadSpec) -> str:
        return "; ".join(filter(None, (kind.start_warning(own) for _, kind, own in self._loads(load))))

    def moved(self, properties: Mapping[str, str], moves: Sequence[PartitionMove]) -> Mapping[str, str]:
        return properties

    def position_text(self, positions: Positions) -> str:
        return texts_together(
            {side: kind.position_text(positions_of_side(side, positions)) for side, kind in self.sides.items()}
        )

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        """Positions do not say whose they are: where both sides are of one kind it does not matter."""
        is_one = type(self.left) is type(self.right)
        return self.left.way(old, new) if is_one else plain_way(old, new) or "UNKNOWN"

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        return any(kind.uses_service_identity(of_side(side, properties)) for side, kind in self.sides.items())

    def is_local(self, properties: Mapping[str, str]) -> bool:
        return any(kind.is_local(of_side(side, properties)) for side, kind in self.sides.items())

    def admin_properties(self, properties: Mapping[str, str]) -> Collection[str]:
        return [
            on_side(side, name)
            for side, kind in self.sides.items()
            for name in kind.admin_properties(of_side(side, properties))
        ]

    def _loads(self, load: LoadSpec) -> Iterator[tuple[str, SourceKind, LoadSpec]]:
        """What is read of each side, without what joins them."""
        for side, source in single_sources(load.source).items():
            yield side, self.sides[side], side_load(load, source)


def check_consumers(pair: PairKind, properties: Mapping[str, str]) -> None:
    """Refuse one group for both readers of one topic: each would write over what the other tells of its progress."""
    one, other = (
        (kind.name, own.get(kind.subject), own.get(kind.consumer_property))
        for side, kind in pair.sides.items()
        for own in [of_side(side, properties)]
    )
    if one == other and one[2] is not None:
        name = pair.right.consumer_property
        msg = f"Both streams read {one[1]} with the {name} {one[2]!r}: the group could tell the progress of one of them"
        raise SqlError(msg, property=name, todo="Give one of them another group, or leave it out: each has its own.")


def side_load(load: LoadSpec, source: SourceSpec) -> LoadSpec:
    """A load of one of the sources alone."""
    return replace(load, source=source, stream_join=None, watermark=None)


def aliases(load: LoadSpec) -> dict[str, str]:
    """What the statement calls both sides."""
    names = (load.mapping.source_alias or "", load.stream_join.alias if load.stream_join is not None else "")
    return {side: name.lower() for side, name in zip(SIDES, names, strict=True)}


def _context_of(side: str, kind: SourceKind, load: LoadSpec, context: OpenContext) -> OpenContext:
    """What is asked of one side. Columns of a pair are called `a.name`."""
    prefix = f"{aliases(load)[side]}."
    asked = [name.removeprefix(prefix) for name in context.columns if name.startswith(prefix)]
    told = {name.lower(): name for name in kind.metadata.names}
    metadata = tuple(dict.fromkeys(told[name.lower()] for name in asked if name.lower() in told))
    if waiting := [name for name in metadata if name in (LOADED_AT, OF_BATCH)]:
        msg = f"{prefix}{waiting[0]} cannot be used in a join of two streams: its rows wait for those of later batches"
        raise SqlError(msg, todo="Leave it out.")
    return replace(
        context,
        columns=tuple(name for name in asked if name.lower() not in told),
        metadata=metadata,
        consumer=f"{context.consumer}_{side}",
        addresses=context.side_addresses.get(side, context.addresses),
    )


def _opened(load: LoadSpec, sides: Mapping[str, OpenSource]) -> OpenSource:
    source, names = PairSource(sides), aliases(load)
    schemas = {side: each.expected if each.schema is None else each.schema for side, each in sides.items()}
    columns = {
        side: {field.name: pa.field(f"{names[side]}.{field.name}", field.type) for field in schema or ()}
        for side, schema in schemas.items()
    }
    fields = [field for own in columns.values() for field in own.values()]
    schema = None if None in schemas.values() else pa.schema(fields)
    readers = {
        side: SideReader(read=each.read, columns={name: field.name for name, field in columns[side].items()})
        for side, each in sides.items()
    }
    seconds = [each.read_s for each in sides.values() if each.read_s is not None]
    return OpenSource(
        driver=source,
        read=partial(read_pair, readers, pa.schema(fields)),
        schema=schema,
        knows=" ".join(f"{names[side]}: {each.knows}" for side, each in sides.items()),
        start=json.dumps({side: each.start for side, each in sides.items()}),
        resolve=source.resolve,
        show_range=source.show_range,
        show_end=source.show_end,
        read_s=max(seconds, default=None),
        is_once=all(each.is_once for each in sides.values()),
        sight=source.sight if any(each.sight is not None for each in sides.values()) else None,
        behind=source.behind,
        survey=source.survey if all(each.survey is not None for each in sides.values()) else None,
        look_everywhere=source.look_everywhere,
        read_uncut=partial(_read_uncut, sides),
        is_provisional=schema is not None and any(each.schema is None for each in sides.values()),
        can_learn_columns=source.can_learn_columns,
        pin=source.pin if all(each.pin is not None for each in sides.values()) else None,
        acknowledge=source.acknowledge,
        close=source.close,
    )


def _read_uncut(sides: Mapping[str, OpenSource]) -> None:
    for each in sides.values():
        each.read_uncut()
