"""Metrics for Prometheus.

What jobs loaded is read from the store at every scrape, so that no restart resets it. What only a running service can
know (how long steps take, how commits end, who was fenced) is counted in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, Summary, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lading import __version__
from lading.clock import Clock
from lading.errors import LadingError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.service.labels import JobLabels
from lading.service.lookout import Lookout
from lading.status.families import JOB_LABELS, MOST_JOBS, Family, JobFigures, Labels, derive_families
from lading.status.lag import Lag, LagUnit
from lading.status.outcomes import Outcome
from lading.status.rates import Beat
from lading.store.protocols import MetadataStore

Forget = Callable[[list[Labels]], None]
_COMMIT_OUTCOMES = {"refused": "not_landed", "unknown": "unknown", "fenced": "fenced"}
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What the service tells of itself. Every method may be called from any thread and never raises."""

    def __init__(self, store: MetadataStore, clock: Clock, *, most_jobs: int = MOST_JOBS) -> None:
        self.lookout = Lookout()
        self.registry = CollectorRegistry(auto_describe=False)
        self._clock = clock
        self._labels = JobLabels(most_jobs)
        of_job, registry = JOB_LABELS, self.registry
        # First, so that a scrape no longer counts jobs that are gone.
        registry.register(_StoreCollector(store, clock, self._labels, self.lookout, self._forget))
        self._commits = Counter(
            "lading_commits", "Commits, by how they were settled.", (*of_job, "outcome"), registry=registry
        )
        self._fenced = Counter(
            "lading_fenced", "How often another incarnation had taken the job over.", of_job, registry=registry
        )
        self._resumes = Counter(
            "lading_auto_resumes", "How often a paused job was resumed without a person.", of_job, registry=registry
        )
        self._batch = Histogram(
            "lading_batch_seconds",
            "How long batches take, by their end.",
            ("kind", "outcome"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._job_batch = Summary(
            "lading_job_batch_seconds", "How long the batches of a job take.", of_job, registry=registry
        )
        self._step = Histogram(
            "lading_step_seconds",
            "How long the steps of a commit take.",
            ("kind", "step"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._job_step = Summary(
            "lading_job_step_seconds", "How long the steps of a job take.", (*of_job, "step"), registry=registry
        )

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        """A batch ended. `committed` and `fenced` are told besides with their own methods."""
        self._batch.labels(record.kind.value, outcome).observe(seconds)
        labels = self._labels.of(record)
        self._job_batch.labels(*labels).observe(seconds)
        if outcome in _COMMIT_OUTCOMES:
            self._commits.labels(*labels, _COMMIT_OUTCOMES[outcome]).inc()

    def step(self, record: JobRecord, step: str, seconds: float) -> None:
        """One of the seven steps ended."""
        self._step.labels(record.kind.value, step).observe(seconds)
        self._job_step.labels(*self._labels.of(record), step).observe(seconds)

    def committed(self, record: JobRecord, bill: Bill) -> None:
        """A bill is the head now."""
        self._commits.labels(*self._labels.of(record), "landed").inc()
        seconds = (bill.billed_at - bill.planned_at).total_seconds()
        self.lookout.saw_commit(record.job_id, bill.seq, Beat(at=bill.billed_at, tally=bill.tally, seconds=seconds))

    def fenced(self, record: JobRecord) -> None:
        """Another incarnation owns the job."""
        self._fenced.labels(*self._labels.of(record)).inc()

    def auto_resumed(self, record: JobRecord) -> None:
        """A paused job goes on without a person."""
        self._resumes.labels(*self._labels.of(record)).inc()

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

    def timer(self, record: JobRecord) -> StepTimer:
        """Measures the steps of one batch from the names the coordinator yields."""
        return StepTimer(self, record, self._clock)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(_WithoutBirths(self.registry))

    def _forget(self, gone: list[Labels]) -> None:
        for labels in gone:
            for metric in (self._commits, self._fenced, self._resumes, self._job_batch, self._job_step):
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
    """Two reads of the store for each scrape, however many jobs there are."""

    def __init__(self, store: MetadataStore, clock: Clock, labels: JobLabels, lookout: Lookout, forget: Forget) -> None:
        self._store = store
        self._clock = clock
        self._labels = labels
        self._lookout = lookout
        self._forget = forget

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("lading_up", "1 while the service answers.", 1)
        built = GaugeMetricFamily("lading_build_info", "The version that runs.", labels=("version",))
        built.add_metric((__version__,), 1)
        yield built
        try:
            figures = self._figures()
        except LadingError:
            # The scrape itself must not fail: that the store is away is what it has to tell.
            yield GaugeMetricFamily("lading_store_up", "1 when the metadata store answers.", 0)
            return
        yield GaugeMetricFamily("lading_store_up", "1 when the metadata store answers.", 1)
        yield GaugeMetricFamily("lading_jobs", "Jobs that are not final.", len(figures))
        for family in derive_families(figures):
            yield _metric(family)

    def _figures(self) -> list[JobFigures]:
        records = [stored.record for stored in self._store.list_jobs()]
        totals = self._store.read_totals()
        self._forget(self._labels.keep_only(records))
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
                lag=self._lookout.lag(record.job_id, now),
            )
            for record in records
        ]


def _metric(family: Family) -> Metric:
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, value in family.samples.items():
        metric.add_metric(labels, value)
    return metric
