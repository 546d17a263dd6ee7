"""Metrics for Prometheus.

What jobs loaded is read from the store at every scrape, so that no restart resets it. What only a running service can
know (how long steps take, how commits end, who was fenced) is counted in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lading import __version__
from lading.clock import Clock
from lading.errors import LadingError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.table import ColumnChange
from lading.model.tally import Tally
from lading.service.runtime.store_health import StoreHealth
from lading.service.security.audit_log import AuditLog
from lading.service.security.audit_metrics import AuditCollector
from lading.service.telemetry.metric_labels import JobLabels
from lading.service.telemetry.recent import RecentActivity
from lading.service.telemetry.table_metrics import TableMetrics
from lading.status.families import JOB_LABELS, MOST_JOBS, Family, JobFigures, Labels, derive_families
from lading.status.lag import Lag, LagUnit
from lading.status.outcomes import Outcome
from lading.status.rates import Beat
from lading.store.protocols import MetadataStore
from lading.tables.compaction.figures import TableFigures
from lading.tables.compaction.model import Compacted

_COMMIT_OUTCOMES = {"refused": "not_landed", "unknown": "unknown", "fenced": "fenced"}
_LANDED = "landed"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What the service tells of itself. Every method may be called from any thread and never raises."""

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        *,
        audit: AuditLog | None = None,
        most_jobs: int = MOST_JOBS,
        health: StoreHealth | None = None,
        crashes: int = 0,
    ) -> None:
        self.health = health or StoreHealth(store, clock)
        self.lookout = RecentActivity()
        self.registry = CollectorRegistry(auto_describe=False)
        self._clock = clock
        self._labels = JobLabels(most_jobs)
        registry = self.registry
        self._of_job = _OfJob()
        # First, so that a scrape no longer counts jobs that are gone.
        registry.register(_StoreCollector(store, clock, self.health, self._labels, self.lookout, self._of_job))
        for metric in self._of_job.all:
            registry.register(metric)
        self._of_table = TableMetrics(registry)
        if audit is not None:
            registry.register(AuditCollector(audit))
        Counter(
            "lading_service_crashes",
            "How often a library ended the process of the service and it was started again, since its parent began.",
            registry=registry,
        ).inc(crashes)
        self._batch = Histogram(
            "lading_batch_seconds",
            "How long batches take, by their end.",
            ("kind", "outcome"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._step = Histogram(
            "lading_step_seconds",
            "How long the steps of a commit take.",
            ("kind", "step"),
            buckets=_BUCKETS,
            registry=registry,
        )

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        """A batch ended. `committed` and `fenced` are told besides with their own methods."""
        self._batch.labels(record.kind.value, outcome).observe(seconds)
        labels = self._labels.of(record)
        self._of_job.batch.labels(*labels).observe(seconds)
        if outcome in _COMMIT_OUTCOMES:
            self._of_job.commits.labels(*labels, _COMMIT_OUTCOMES[outcome]).inc()

    def step(self, record: JobRecord, step: str, seconds: float) -> None:
        """One of the seven steps ended."""
        self._step.labels(record.kind.value, step).observe(seconds)
        self._of_job.step.labels(*self._labels.of(record), step).observe(seconds)

    def committed(self, record: JobRecord, bill: Bill) -> None:
        """A bill is the head now."""
        self._of_job.commits.labels(*self._labels.of(record), _LANDED).inc()
        seconds = (bill.billed_at - bill.planned_at).total_seconds()
        self.lookout.saw_commit(record.job_id, bill.seq, Beat(at=bill.billed_at, tally=bill.tally, seconds=seconds))

    def fenced(self, record: JobRecord) -> None:
        """Another incarnation owns the job."""
        self._of_job.fenced.labels(*self._labels.of(record)).inc()

    def unrecorded(self, record: JobRecord) -> None:
        """The end of a batch could not be written to the store."""
        self._of_job.unrecorded.labels(*self._labels.of(record)).inc()

    def auto_resumed(self, record: JobRecord) -> None:
        """A paused job goes on without a person."""
        self._of_job.resumes.labels(*self._labels.of(record)).inc()

    def evolved(self, record: JobRecord, changes: Sequence[ColumnChange]) -> None:
        """The table of a job got columns, or wider ones."""
        self._of_job.evolved.labels(*self._labels.of(record)).inc(len(changes))

    def lag_seen(
        self,
        record: JobRecord,
        *,
        unit: LagUnit,
        partitions: Mapping[str, int | None],
        seconds_to_trim: float | None = None,
    ) -> None:
        """How far a job is behind its source now."""
        lag = Lag(unit=unit, partitions=dict(partitions), seconds_to_trim=seconds_to_trim, at=self._clock.now())
        self.lookout.saw_lag(record.job_id, lag)

    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None:
        """How many files a job has still to load."""
        self.lag_seen(record, unit=LagUnit.FILES, partitions=files)

    def files_left_out(self, record: JobRecord, files: Mapping[str, int], remark: str) -> None:
        """Which files a job is not going to load."""
        self.lookout.saw_left_out(record.job_id, files)

    def table_seen(self, found: TableFigures) -> None:
        """How the files of a table stand."""
        self.lookout.saw_table(found)
        self._of_table.seen(found)

    def table_compacted(self, table: str, done: Compacted) -> None:
        """One compaction ended."""
        self._of_table.compacted(table, done)

    def tables_there(self, tables: set[str]) -> None:
        """All tables that there are."""
        self._of_table.forget_all_but(tables)

    def timer(self, record: JobRecord) -> StepTimer:
        """Measures the steps of one batch from the names the coordinator yields."""
        return StepTimer(self, record, self._clock)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(_WithoutBirths(self.registry))


class _OfJob:
    """What is counted for each job. Counters begin at zero and are told so: Prometheus sees no step in a first one."""

    def __init__(self) -> None:
        settled = "Commits, by how they were settled."
        self.commits = Counter("lading_commits", settled, (*JOB_LABELS, "outcome"), registry=None)
        taken_over = "How often another incarnation had taken the job over."
        self.fenced = Counter("lading_fenced", taken_over, JOB_LABELS, registry=None)
        resumed = "How often a paused job was resumed without a person."
        self.resumes = Counter("lading_auto_resumes", resumed, JOB_LABELS, registry=None)
        unwritten = "Batches whose end could not be written to the metadata store."
        self.unrecorded = Counter("lading_unrecorded_batches", unwritten, JOB_LABELS, registry=None)
        grown = "Columns that the table of a job got, or got wider, because its rows needed them."
        self.evolved = Counter("lading_schema_changes", grown, JOB_LABELS, registry=None)
        batches = "How long the batches of a job take."
        self.batch = Summary("lading_job_batch_seconds", batches, JOB_LABELS, registry=None)
        steps = "How long the steps of a job take."
        self.step = Summary("lading_job_step_seconds", steps, (*JOB_LABELS, "step"), registry=None)
        self.all = (self.commits, self.fenced, self.resumes, self.unrecorded, self.evolved, self.batch, self.step)

    def begin(self, labels: Labels) -> None:
        """Show the counters of a job from now on."""
        for outcome in (_LANDED, *_COMMIT_OUTCOMES.values()):
            self.commits.labels(*labels, outcome)
        self.fenced.labels(*labels)
        self.resumes.labels(*labels)
        self.unrecorded.labels(*labels)
        self.evolved.labels(*labels)

    def forget(self, gone: list[Labels]) -> None:
        """Jobs that are there no more."""
        for labels in gone:
            for metric in self.all:
                metric.remove_by_labels(dict(zip(JOB_LABELS, labels, strict=True)))


class _WithoutBirths(Collector):
    """Leaves away when each sample was first counted: as many samples again, and nobody asks for them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class StepTimer:
    """Turns `stage.before`, `stage.after`, … into durations. Used by one thread."""

    def __init__(self, metrics: Metrics, record: JobRecord, clock: Clock) -> None:
        self._metrics = metrics
        self._record = record
        self._clock = clock
        self._begun: dict[str, float] = {}

    def saw(self, name: str) -> None:
        """A step begins or has ended."""
        step, _, side = name.partition(".")
        now = self._clock.monotonic_s()
        if side == "before":
            self._begun[step] = now
        elif step in self._begun:
            self._metrics.step(self._record, step, now - self._begun.pop(step))


class _StoreCollector(Collector):
    """Two reads of the store for each scrape, however many jobs there are, and now and then a write."""

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        health: StoreHealth,
        labels: JobLabels,
        lookout: RecentActivity,
        of_job: _OfJob,
    ) -> None:
        self._store = store
        self._health = health
        self._clock = clock
        self._labels = labels
        self._lookout = lookout
        self._of_job = of_job

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("lading_up", "1 while the service answers.", 1)
        built = GaugeMetricFamily("lading_build_info", "The version that runs.", labels=("version",))
        built.add_metric((__version__,), 1)
        yield built
        state = self._health.check()
        try:
            # A store that hangs would have the scrape wait, and tell nothing.
            figures = None if state.is_hanging else self._figures()
        except LadingError:
            figures = None
        is_up = state.is_ok and figures is not None
        yield GaugeMetricFamily("lading_store_up", "1 when the metadata store answers and can be written.", int(is_up))
        if figures is None:
            return  # The scrape itself must not fail: that the store is away is what it has to tell.
        yield GaugeMetricFamily("lading_jobs", "Jobs that are not final.", len(figures))
        for family in derive_families(figures):
            yield _metric(family)

    def _figures(self) -> list[JobFigures]:
        records = [stored.record for stored in self._store.list_jobs()]
        totals = self._store.read_totals()
        self._of_job.forget(self._labels.keep_only(records))
        for record in records:
            self._of_job.begin(self._labels.of(record))
        self._lookout.forget_all_but(record.job_id for record in records)
        now = self._clock.now()
        return [
            JobFigures(
                labels=self._labels.of(record),
                state=record.state.value,
                totals=totals.get(record.job_id) or record.totals or Tally(),
                batches={
                    "succeeded": record.counts.succeeded,
                    "failed": record.counts.failed,
                    "cancelled": record.counts.cancelled,
                },
                failures=record.failures,
                auto_resume_tries=record.auto_resume.tries,
                last_commit_at=record.last_success_at,
                watermark_us=record.watermark_us,
                kept=record.kept,
                listening=record.listening,
                lag=self._lookout.lag(record.job_id, now),
                left_out=self._lookout.left_out(record.job_id),
            )
            for record in records
        ]


def _metric(family: Family) -> Metric:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, value in family.samples.items():
        metric.add_metric(labels, value)
    return metric
