"""One kind of source: everything about it that the rest of Lading has to know.

`registry.py` maps the names that statements use to these objects. Nothing outside the folder of a kind asks which one
it is: it asks the kind. A new source is a folder with a `kind.py`, a line in the registry and a page of docs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lading.clock import Clock
from lading.model.batch import Split
from lading.model.bill import Bill
from lading.model.load import LoadSpec
from lading.model.moves import Direction, PartitionMove
from lading.model.positions import PartitionState, Positions
from lading.net.addresses import AddressRules
from lading.plan.planner import Source
from lading.sources.streams import StreamSight
from lading.sql.statements.alter import AlterableSource
from lading.status.lag import LagUnit


class SourceKind(Protocol):
    """What every kind tells. Nothing here asks the source itself, and nothing changes anything."""

    @property
    def name(self) -> str:
        """As statements write it, in capitals. No other kind has it."""
        ...

    @property
    def lag_unit(self) -> LagUnit:
        """What it counts its lag in. Law: all partitions of a job are counted in the same."""
        ...

    def position_text(self, positions: Positions) -> str:
        """Where a job is, as SHOW prints it: JSON, or nothing when there is no position.

        Law: equal positions make equal texts, and no text has a secret.
        """
        ...

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        """Whether one position of a partition lies before another.

        Law: SAME for a position and itself; where one way is BACK the other is FORWARD.
        """
        ...

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        """Whether requests would be signed with what the service itself is: true unless nothing can be signed so."""
        ...

    def is_local(self, properties: Mapping[str, str]) -> bool:
        """Whether it reads files of the machines that Lading and Spark run on, which are their owner's."""
        ...

    def admin_properties(self, properties: Mapping[str, str]) -> Collection[str]:
        """Properties among these that are about the machine of the service: only administrators may set them."""
        ...


class StreamSource(Source, Protocol):
    """The driver's side of a stream that is open: `open`, `list_partitions` and `plan` of `Source`, and its lag."""

    def sight(self, positions: Positions) -> StreamSight:
        """How far a job is behind, as the stream tells now. May be slow, and may fail."""
        ...

    def ends(self) -> Mapping[str, str]:
        """Where partitions ended when a batch was last planned; empty when the stream does not tell."""
        ...

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Remember where the stream ends now; the answer says of later positions whether they are there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The source of one job, opened. The caller that opens it closes it."""

    source: StreamSource
    read: Callable[[Sequence[Split]], Iterator[Any]]
    """What executors do. It pickles."""
    schema: pa.Schema
    """Source columns and metadata, without the hidden ones."""
    start: str
    """Where the job begins, as the source wants it."""
    resolve: Callable[[Mapping[str, str]], dict[str, str | None]]
    """Positions for partitions that an operator moves, by the words of SQL. None: nothing more of it is read."""
    acknowledge: Callable[[Bill], None] = lambda bill: None
    """Tell the stream what was committed. Best effort: nothing is ever read back."""
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContext:
    """What a stream is opened with, beside its load."""

    columns: tuple[str, ...] = ()
    """Source columns that are read of a record. Empty, as the next: the stream is only asked how far it is."""
    metadata: tuple[str, ...] = ()
    consumer: str
    """A name of the job that no other job has, for streams that know their readers by name."""
    clock: Clock
    addresses: AddressRules
    """Where it may connect to."""


class StreamKind(SourceKind, AlterableSource, Protocol):
    """A source that goes on for ever and is read from a position of each partition."""

    @property
    def metadata(self) -> pa.Schema:
        """The columns that a stream can tell of a record beside its content."""
        ...

    @property
    def cluster_property(self) -> str:
        """The property with the first hosts of a cluster that sends its clients to hosts that no property names:
        somebody who trusts those trusts them with the others. Empty: there are no others.
        """
        ...

    def check(self, load: LoadSpec) -> None:
        """Refuse properties that make no stream, or none for the format of the load. Raises SqlError."""
        ...

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        """PAUSE: stop when unread rows are gone. CONTINUE: go on behind the gap and write it down."""
        ...

    def open(self, load: LoadSpec, context: StreamContext) -> Stream:
        """The stream of a load that has its secrets. Law: nothing is asked of the stream before its first use."""
        ...

    # Positions in the words of SQL.

    def progress(self, positions: Positions) -> dict[str, str]:
        """What was read of each partition, in the words of SHOW."""
        ...

    def words(self, positions: Positions) -> dict[str, str]:
        """What is read next of each partition. Law: a statement that begins there reads what this job would read."""
        ...

    def beginning_at(self, properties: Mapping[str, str], positions: Positions) -> dict[str, str]:
        """Properties of a job that goes on from these positions, as SHOW CREATE prints them."""
        ...

    def plan_move(self, stream: Stream, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        """What moving a partition would load again or skip; None gives it up. It may ask the stream."""
        ...

    def given_up_by(self, old: Mapping[str, str], new: Mapping[str, str], positions: Positions) -> tuple[str, ...]:
        """Partitions with unread rows that are not read any longer, because an ALTER names only others."""
        ...

    # What SHOW ROUTINE LOAD tells, in the words of Doris.

    def shown_source(
        self, properties: Mapping[str, str], positions: Positions, sight: StreamSight | None
    ) -> dict[str, str]:
        """DataSourceProperties. `sight` is None when the stream did not answer."""
        ...

    def shown_default(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Where partitions begin that have no position of their own, as CustomProperties has it."""
        ...

    def shown_counts(self, positions: Positions, sight: StreamSight | None) -> dict[str, int]:
        """What it counts beside lag and rows."""
        ...
