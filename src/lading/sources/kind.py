"""One kind of source: everything about it that the rest of Lading has to know.

`registry.py` maps the names that statements use to these objects. Nothing outside the folder of a kind asks which one
it is: it asks the kind. A new source is a folder with a `kind.py`, a line in the registry and a page of docs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from lading.clock import Clock
from lading.model.batch import BatchPlan, Split
from lading.model.bill import Bill
from lading.model.load import LoadSpec
from lading.model.moves import Direction, PartitionMove
from lading.model.positions import PartitionState, Positions
from lading.net.addresses import AddressRules
from lading.plan.planner import Source
from lading.sources.fields import FieldWatch
from lading.sources.streams import StreamSight
from lading.sql.statements.alter import AlterableSource
from lading.status.lag import LagUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenContext:
    """What a source is opened with, beside its load."""

    reads_rows: bool = False
    """False: the source is only asked how far it is, and the next two are empty."""
    columns: tuple[str, ...] = ()
    """What the load asks of a row, by place or by name. A source that knows its columns itself may have others."""
    metadata: tuple[str, ...] = ()
    """What it asks beside the content of a row: names of `SourceKind.metadata`."""
    consumer: str
    """A name of the job that no other job has, for sources that know their readers by name."""
    clock: Clock
    addresses: AddressRules
    """Where it may connect to."""
    side_addresses: Mapping[str, AddressRules] = field(default_factory=dict)
    """For a pair: the same for each of its sides."""
    settle_s: float = 0.0
    """For how long a file on a disk must not have been modified, where the load does not say it."""
    parallel: Callable[[], int] | None = None
    """How many tasks Spark runs at once, for batches that are cut into as many splits. It may start Spark: asked when
    there is something to read. None: as many as this machine has cores."""
    watch: FieldWatch | None = None
    """What is done about fields that the job does not know. None: nobody looks at them."""
    is_trial: bool = False
    """The job is only looked at: its columns may come from a file that is still written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSurvey:
    """What is in a source beside what was loaded, at one moment."""

    pending: Mapping[str, int]
    """Files that are still to be loaded, by partition."""
    behind: str
    """The same in words."""
    left_out: Mapping[str, int]
    """Files that are not going to be loaded, by the reason for it."""
    remark: str = ""
    """What people should know, such as those files; empty when there is nothing."""
    settles_in_s: float = 0.0
    """Until files that wait because they may still be written can be loaded; 0: none waits."""


class Inside(Protocol):
    """Parts of what a batch reads, of a source that can read them but has no positions to commit one of them: files."""

    def extent(self, plan: BatchPlan) -> tuple[int, int] | None:
        """Where what the batch reads begins and ends. None: it has no parts."""
        ...

    def narrowed(self, plan: BatchPlan, begin: int, end: int) -> BatchPlan:
        """A batch that reads the rows which start in this range. Law: it is never committed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSource:
    """The source of one job, opened. The caller that opens it closes it."""

    driver: Source
    """The driver's side."""
    read: Callable[[Sequence[Split]], Iterator[Any]]
    """What executors do. It pickles."""
    parse: Callable[[bytes], Iterator[Any]] | None = None
    """The rows of one record, good or bad, as `read` gives them. It pickles. None: a record that could not be taken
    apart does not say enough by itself, or may be one of several rows."""
    schema: pa.Schema | None
    """Source columns and metadata, without the hidden ones. None: there is no row yet to learn them from."""
    told: tuple[str, ...] = ()
    """Columns of `schema` that are not part of its rows' content: `*` does not mean them."""
    of_batch: tuple[str, ...] = ()
    """Columns of `schema` that `read` does not give: they have one value for all rows of a batch."""
    knows: str
    """Which columns there are, in words, for somebody who asked for another."""
    start: str
    """Where the job begins, as the source wants it."""
    resolve: Callable[[Mapping[str, str]], dict[str, str | None]]
    """Positions for partitions that an operator moves, by the words of SQL. None: nothing more of it is read."""
    show_range: Callable[[BatchPlan, Bill | None], str]
    """What a batch reads, as tasks are shown with it: as it was planned, or as its bill has it."""
    show_end: Callable[[], str]
    """How far the source was known to reach when a batch was last planned; empty where it does not tell."""
    read_s: float | None = None
    """For so long a batch is read at most. None: a batch is bounded by its size alone."""
    is_once: bool = False
    """The job is finished when all partitions are."""
    sight: Callable[[Positions], StreamSight] | None = None
    """How far a job is behind, as the source tells now. May be slow, and may fail. None: see `survey`."""
    behind: Callable[[Positions], str] = lambda positions: ""
    """The same in words, which people should know when there is nothing new. Empty when the source does not tell."""
    survey: Callable[[Positions], SourceSurvey] | None = None
    """Count what is there, where the source counts files. May be slow: it lists everything."""
    look_everywhere: Callable[[], None] = lambda: None
    """Have the next batch look for everything there is, however long that takes."""
    expected: pa.Schema | None = None
    """When `schema` is None: what it will have of what is asked for, where the types are known before any row."""
    is_provisional: bool = False
    """A part of `schema` is only expected. That part is not read before the source was opened again."""
    can_learn_columns: Callable[[], bool] = lambda: True
    """Whether something has come since from which columns can be learned that are not known, or only expected."""
    pin: Callable[[Positions], Callable[[Positions], bool]] | None = None
    """Remember where the source ends now; the answer says of later positions whether they are there. None: a source
    that is read until it has nothing more."""
    acknowledge: Callable[[Bill], None] = lambda bill: None
    """Tell the source what was committed. Best effort: it may not raise, and nothing is ever read back."""
    inside: Inside | None = None
    """To look for the row that ends workers, where batches cannot be made so small."""
    read_uncut: Callable[[], None] = lambda: None
    """A task raised StageError with the code LINES_IN_FIELDS: plan no part of a file from now on."""
    close: Callable[[], None] = lambda: None
    registered: Callable[[], dict[str, str] | None] = lambda: None
    """Columns and Spark's types of them, by the newest schema that a registry keeps for it; None: none does."""


class SourceKind(Protocol):
    """What every kind tells. Nothing but what is opened asks the source itself, and nothing changes anything."""

    @property
    def name(self) -> str:
        """As statements write it, in capitals. No other kind has it."""
        ...

    @property
    def lag_unit(self) -> LagUnit:
        """What it counts its lag in. Law: all partitions of a job are counted in the same."""
        ...

    @property
    def metadata(self) -> pa.Schema:
        """The columns that it can tell of a row beside its content."""
        ...

    @property
    def libraries(self) -> Collection[str]:
        """What its tasks import beside pyarrow: an executor that lacks one is refused."""
        ...

    @property
    def cluster_property(self) -> str:
        """The property with the first hosts of a cluster that sends its clients to hosts that no property names:
        somebody who trusts those trusts them with the others. Empty: there are no others.
        """
        ...

    @property
    def consumer_property(self) -> str:
        """The property with the name under which the source is told how far a job is. Empty: it is told nothing."""
        ...

    @property
    def subject(self) -> str:
        """The property that says what is read, such as a topic: another value is another source."""
        ...

    @property
    def property_names(self) -> Collection[str]:
        """The properties that it takes, for those who write a statement. Others may begin with a prefix."""
        ...

    @property
    def start_properties(self) -> Collection[str]:
        """Properties of the source that say where a job begins. ALTER JOB moves a job by its `offset`, not by these."""
        ...

    @property
    def keeps_offset(self) -> bool:
        """Whether `offset` is a property of jobs, which says where they begin. Else it is a word of ALTER alone."""
        ...

    def places_of(self, offset: str, partitions: Collection[str]) -> Mapping[str, str]:
        """Where ALTER JOB sends partitions with its `offset`, in the words of SQL. Raises SqlError."""
        ...

    def check(self, load: LoadSpec) -> None:
        """Refuse properties that make no source, or none for the format of the load. Raises SqlError."""
        ...

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        """The source of a load that has its secrets.

        Law: nothing is asked of it before its first use, but for columns that only its rows can tell.
        """
        ...

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        """PAUSE: stop when unread rows are gone. CONTINUE: go on behind the gap and write it down."""
        ...

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        """What moving a partition would load again or skip; None gives it up. It may ask the source."""
        ...

    def located(
        self, source: Mapping[str, str], properties: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Properties of the source and of the job that mean the same wherever the service is started from.

        Law: what is located already stays as it is.
        """
        ...

    def start_warning(self, load: LoadSpec) -> str:
        """What people should know of where a job begins; mostly nothing."""
        ...

    def moved(self, properties: Mapping[str, str], moves: Sequence[PartitionMove]) -> Mapping[str, str]:
        """Properties of the job after its positions were moved by hand, where they say where it begins."""
        ...

    def position_text(self, positions: Positions) -> str:
        """Where a job is, as SHOW prints it: JSON, or nothing when there is no position.

        Law: equal positions make equal texts, and no text has a secret.
        """
        ...

    def names_again(self, old: str, new: str) -> bool:
        """Whether a later definition of a job may have it load what an earlier one has loaded, wherever its position
        is."""
        ...

    def repeats_nothing(self, was: PartitionState, now: PartitionState) -> bool:
        """Whether an operator's move brings nothing again that was read before it, as far as its marks say that."""
        ...

    @property
    def is_ordered(self) -> bool:
        """Whether nothing before a position is read from it on: `way` then tells what comes again."""
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


class StreamKind(SourceKind, AlterableSource, Protocol):
    """A source that goes on for ever and is read from a position of each partition: what routine loads tell of it."""

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
