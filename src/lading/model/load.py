"""A load as one value: what CREATE or ALTER asked for, read once by `sql` and kept in the record of the job.

A job is opened, run, shown and asked for its lag by this value. The text of its statement is for people: SHOW CREATE
prints it, ALTER changes it, and bills keep it so that a lost store can be rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.model.row_formats import CsvOptions, JsonOptions

TIMEOUT_INTERVALS, LEAST_TIMEOUT_S = 10, 600
"""A batch of a routine load may take so many times as long as it reads, and at least so many seconds: workers may have
to be started, on a machine that is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """Where rows come from: a kind of source and the properties that this kind reads."""

    kind: str
    """S3, FILE, KAFKA or KINESIS; for a join of two streams both of them, as in FILE+KAFKA."""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As they were written, by name. A stored spec has no secrets: those are sealed apart, and references such as
    `env:NAME` are followed each time the source is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """One item of COLUMNS or of a SELECT."""

    name: str | None = None
    """None: a SELECT gave it no name; its place says which column of the target it fills."""
    expression: str | None = None
    """In the words of the statement: what Spark is told depends on the types of columns, which may change. None: the
    column is read from the source as it is."""
    is_star: bool = False
    """All columns of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingSpec:
    """How a row of the source becomes a row of the table. Expressions are in the words of the statement."""

    target_columns: tuple[str, ...] = ()
    """Columns of the target, in the order of `columns`. Empty: all of them, in the table's order."""
    columns: tuple[ColumnSpec, ...] | None = None
    """None: the columns of the table, by place for CSV and by name for JSON."""
    preceding_filter: str | None = None
    where: str | None = None
    is_select: bool = False
    """The columns are the items of a SELECT, which fill the target by their place. Else they are those of COLUMNS,
    which fill it by their name."""
    source_alias: str | None = None
    """The name that a SELECT gives its source."""
    by_name: bool = False
    """Items of the SELECT fill columns of their own name, among `target_columns`; others stay NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLimits:
    """Bounds of one batch. None: the source has no such bound."""

    interval_s: int
    """How long to wait when the source had nothing; a stream is also read for so long at most."""
    size_bytes: int
    files: int | None = None
    rows: int | None = None
    tasks: int | None = None
    """How many tasks read at one time at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBudget:
    """How many bad rows a load may have."""

    max_ratio: float = 1.0
    is_strict: bool = False
    """Any bad row refuses its batch."""
    max_errors: int | None = None
    """So many are committed before the job is paused; they are counted over a window of batches. None: each batch is
    judged alone, before its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How expressions are computed."""

    strict_cast: bool = False
    """A CAST that fails makes a bad row, not NULL."""
    strict_values: bool = False
    """A value that does not fit its column makes a bad row, not NULL."""
    timeout_s: int = 0
    """After so long a batch is given up. 0: never."""
    time_zone: str = ""
    """Empty: that of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIntake:
    """Which files are loaded, and when."""

    offset: str | None = None
    """The last file that counts as loaded. None: the statement says nothing about it."""
    ingestion_mode: str = "CONTINUOUS"
    """ONCE: the job is finished when everything that was there is loaded."""
    late_files: str = "LOAD"
    """Files that sort before the position when they appear: LOAD loads them, SHOW only counts them."""
    late_window: int | None = None
    """How many loaded files are remembered. None: as the source has it."""
    also_load: tuple[str, ...] = ()
    """Files that are loaded wherever they sort, once."""
    settle_s: int | None = None
    """For so many seconds a file on a disk must not have been modified. None: as the installation has it."""
    on_error: str = "PAUSE"
    """What becomes of a file that cannot be read: PAUSE stops the job and says which it is, SKIP puts it aside and goes
    on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """How rows stand in the records of a stream."""

    format: str = "csv"
    csv: CsvOptions = field(default_factory=CsvOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    exec_mem_limit_bytes: int = 2_147_483_648
    """Only shown, as `send_batch_parallelism`."""
    send_batch_parallelism: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkSpec:
    """The event time of a load, and how long it waits for rows that come late."""

    column: str
    """A column of the table, or of the source where the table has none of that name."""
    delay_s: float = 0.0
    idle_s: float = 300.0
    """After so long a partition with nothing left to read does not hold the others back. 0: it always does."""
    max_future_s: float = 86_400.0
    """Rows that are further ahead of the clock than this do not move the watermark. 0: all do."""
    late_rows: str = "QUARANTINE"
    """What becomes of a row behind the watermark: QUARANTINE keeps it, DROP only counts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupSpec:
    """Rows that come more than once are loaded once."""

    keys: tuple[str, ...]
    """Columns of the table: rows that have the same values in them are the same."""
    horizon_s: float = 86_400.0
    """How far apart the event times of two such rows may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec:
    """One aggregate over the rows of a window."""

    function: str
    inputs: tuple[int, ...] = ()
    """Which of the inputs it takes, by their places. None: it counts rows."""
    parameter: float | None = None
    """A number that is the same for all rows: which percentile, or how many values are kept at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec:
    """GROUP BY window(…): rows are added up by time and keys. Expressions are in the words of the statement; the
    columns of the mapping are over what comes of it: g0 and so on for keys, r0 for aggregates, window_start and _end.
    """

    time: str
    """The column with the event time."""
    size_us: int
    slide_us: int
    """How far apart windows begin; as long as they are, unless they overlap."""
    is_session: bool = False
    """session_window(…): a window lasts for as long as rows of its keys come less than `size_us` apart."""
    keys: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    aggregates: tuple[AggregateSpec, ...] = ()
    having: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    """Somebody who is told that a partition of the table is done."""

    name: str
    type: str
    """success_file, done_partition, tag, http or command."""
    url: str = ""
    token: str = field(default="", repr=False)
    """A reference to a secret, such as `env:NAME`, that goes with each request."""
    command: str = ""
    """The name of a command that the installation allows."""
    timeout_s: float = 10.0
    retain_s: float = 604_800.0
    """For so long a tag is kept at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSpec:
    """When partitions are done, and who is told."""

    listeners: tuple[ListenerSpec, ...]
    mode: str = "process-time"
    """process-time, or watermark."""
    idle_s: float | None = None
    """After so long without a commit to it a partition is done. 0: after each commit. None: 0, by the watermark."""
    pattern: str = ""
    """For watermark: how texts of partition columns make a time. Empty: the table is partitioned by a time."""
    formatter: str = ""
    interval_s: float = 0.0
    """How long a partition of such texts is."""
    time_zone: str = ""
    """Empty: UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpec:
    """A table that rows are joined with."""

    table: str
    """`database.table`."""
    alias: str
    """What the statement calls it. In a join, every column is written with the name of its side."""
    on: str
    is_left: bool = False
    """Rows without a match are loaded, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoinSpec:
    """A join of two streams: rows of both with the same keys, whose event times are near each other."""

    alias: str
    """What the statement calls the second stream."""
    on: str
    is_left: bool = False
    """Rows of the first stream without a match are written, too, once none can come any more."""
    times: tuple[str, str] = ("", "")
    """The columns with the event times of both."""
    low_us: int = 0
    """How much later than the first the second may be, at least and at most. Below zero: it may be earlier."""
    high_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionSpec:
    """What becomes of fields that the table has no column for, and of values that do not fit theirs."""

    mode: str = "NONE"
    """NONE, ADD (such a field becomes a column), or ADD_AND_WIDEN (a column also gets the wider type of its values)."""
    rescued_column: str = ""
    """The column of the table that takes, as JSON, what fits nowhere. Empty: none does."""

    @property
    def is_on(self) -> bool:
        """Whether fields beside the columns of the table are looked at."""
        return self.mode != "NONE" or bool(self.rescued_column)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """Everything that a job needs to know to run, but for its secrets."""

    name: str
    target: str
    """`database.table`."""
    source: SourceSpec
    mapping: MappingSpec
    limits: LoadLimits
    budget: LoadBudget = LoadBudget()
    session: SessionOptions = SessionOptions()
    intake: FileIntake = FileIntake()
    """For sources of files."""
    records: RecordOptions = RecordOptions()
    """For streams; files say it among the properties of their source."""
    watermark: WatermarkSpec | None = None
    """None: rows have no event time."""
    dedup: DedupSpec | None = None
    window: WindowSpec | None = None
    """Results of windows are written, and not rows."""
    listening: ListeningSpec | None = None
    """None: nobody is told when partitions are done."""
    join: JoinSpec | None = None
    stream_join: StreamJoinSpec | None = None
    """The source is a pair then."""
    on_poison_record: str = "PAUSE"
    """What becomes of a record that ends every worker that reads it: PAUSE stops the job and says which it is,
    QUARANTINE puts it aside by its position and goes on."""
    evolution: EvolutionSpec = EvolutionSpec()
    errors_table: str = ""
    """`database.table`, which gets the bad rows of the job. Empty: none does."""

    @property
    def timeout_s(self) -> int:
        """After so long a batch is given up and tried again; 0: never. Routine loads show it with their tasks."""
        if self.mapping.is_select:
            return self.session.timeout_s
        return max(TIMEOUT_INTERVALS * self.limits.interval_s, LEAST_TIMEOUT_S)
