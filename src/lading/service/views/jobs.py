"""Read-only views over store and tables, shared by HTTP, console and metrics.

A list of jobs costs a few reads of the store, however many jobs there are: for the records, the totals and the services
that run them. Only what is asked of one job may touch its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import JobNotFoundError, LadingError
from lading.ids import JobId
from lading.jobs.record import JobRecord, JobState, parse_job_name
from lading.model.codec import encode
from lading.model.names import split_table
from lading.model.tally import Tally
from lading.service.catalog.kept_tables import KeptTables
from lading.service.installation import Installation
from lading.service.telemetry.recent import RecentActivity
from lading.service.views.build import (
    beat_of,
    redacted,
    show_audit,
    show_batch,
    show_bill,
    show_detail,
    show_job,
    without_secrets_deep,
)
from lading.service.views.error_rows import read_error_rows
from lading.service.views.health import health_of
from lading.service.views.records import (
    AuditView,
    BatchView,
    BillView,
    ErrorRow,
    GapView,
    HappenedView,
    HealthView,
    JobDetail,
    JobView,
    JsonRecord,
    Series,
)
from lading.service.views.services import services_of
from lading.service.views.since import entries_since
from lading.service.views.timeline import ended_at, retry_of, timeline_of
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Rates, fixed_span, measure_rates, plot
from lading.store.records import BillEntry
from lading.tables.compaction.figures import TableFigures

if TYPE_CHECKING:
    from lading.service.runtime.opening import newest_bills
else:
    newest_bills = deferred("lading.service.runtime.opening", "newest_bills")

MaySee = Callable[[JobRecord], bool]

RATE_WINDOW_S = 300.0
MOST_FILLED = 60
"""So many commits of a job are read from the index at once; those that this service makes it hears of anyway."""
MOST_FILLS = 20
"""So many jobs are looked up in the index of bills in one listing; the others follow with the next ones."""
MOST_POINTS = 120
MOST_SERIES_BILLS = 5000


def see_all(_record: JobRecord) -> bool:
    """Nobody is kept from anything."""
    return True


class JobViews:
    """Safe to use from many threads."""

    def __init__(self, lading: Installation, *, lookout: RecentActivity | None = None) -> None:
        self._lading = lading
        self._lookout = lookout or RecentActivity()
        self._tables = KeptTables(lading.catalog)

    def files_of(self, table: str) -> TableFigures | None:
        """How the files of a table stood when compaction last looked; None when it did not yet."""
        return self._lookout.table(table)

    # Lists.

    def list_jobs(self, may_see: MaySee = see_all, *, include_final: bool = False) -> list[JobView]:
        """Jobs, oldest first."""
        store = self._lading.store
        overlay = self._lading.unrecorded.overlay
        records = [overlay(stored.record) for stored in store.list_jobs(include_final=include_final)]
        totals, services = store.read_totals(), services_of(self._lading)
        fills = MOST_FILLS
        shown = []
        for record in filter(may_see, records):
            known = totals.get(record.job_id) or record.totals or Tally()
            if fills and self._fill(record):
                fills -= 1
            shown.append(self._show(record, known, services))
        return shown

    def record(self, name: str, may_see: MaySee = see_all) -> JobRecord:
        """The job of a name, final or not. One that may not be seen is not there."""
        found = self._lading.store.find_job(parse_job_name(name), include_final=True)
        if found is None or not may_see(found.record):
            msg = f"job not exist: {name}"
            todo = "See the list of jobs; a routine load is named database.name."
            raise JobNotFoundError(msg, left="Nothing was changed.", todo=todo, name=name)
        return self._lading.unrecorded.overlay(found.record)

    # One job.

    def one_job(self, name: str, may_see: MaySee = see_all) -> JobDetail:
        """A job with its positions. A table that cannot be read is told, not raised."""
        record = self.record(name, may_see)
        self._fill(record)
        newest = self._lading.store.list_bills(record.job_id, limit=1)
        totals = newest[0].totals if newest else record.totals or Tally()
        job = self._show(record, totals, services_of(self._lading))
        try:
            bills = self._tables.ask(*split_table(record.target), lambda table: newest_bills(table, record.job_id, 1))
        except LadingError as error:
            return show_detail(record, job, fault=redacted(str(error)))
        return show_detail(record, job, newest=bills[0] if bills else None)

    def bills(
        self, name: str, *, before_seq: int | None = None, limit: int = 100, may_see: MaySee = see_all
    ) -> list[BillView]:
        """Commits, newest first; `before_seq` turns the page."""
        record = self.record(name, may_see)
        entries = self._lading.store.list_bills(record.job_id, limit=limit, before_seq=before_seq)
        return [show_bill(entry) for entry in entries]

    def bill_or_none(self, name: str, seq: int, may_see: MaySee = see_all) -> JsonRecord | None:
        """One bill as it stands beside the table; None when the index has none of this seq."""
        record = self.record(name, may_see)
        entries = self._lading.store.list_bills(record.job_id, limit=1, before_seq=seq + 1)
        if not entries or entries[0].seq != seq:
            return None
        found = self._lading.open_target(record).bills.read(record.job_id, entries[0].head)
        shown: JsonRecord = without_secrets_deep(encode(found))
        return {**shown, "token": str(found.token)}

    def batches(
        self, name: str, *, before_id: int | None = None, limit: int = 100, may_see: MaySee = see_all
    ) -> list[BatchView]:
        """Batches that are remembered, newest first; `before_id` turns the page."""
        record = self.record(name, may_see)
        tasks = sorted(self._lading.store.list_tasks(record.job_id), key=lambda task: task.task_id, reverse=True)
        older = (task for task in tasks if before_id is None or task.task_id < before_id)
        return [show_batch(task) for task in islice(older, limit)]

    def errors(self, name: str, *, limit: int = 100, may_see: MaySee = see_all) -> list[ErrorRow]:
        """Bad rows, those of the newest commit first."""
        return list(islice(self.read_errors(name, may_see), limit))

    def read_errors(self, name: str, may_see: MaySee = see_all) -> Iterator[ErrorRow]:
        """All bad rows that are kept, one after the other, so that a download needs no memory.

        Nothing is read before the first row is asked for, except the record of the job.
        """
        return read_error_rows(self._lading, self.record(name, may_see))

    def gaps(self, name: str, *, bills: int = 1000, may_see: MaySee = see_all) -> list[GapView]:
        """Rows that the source no longer had, as the newest bills tell."""
        record = self.record(name, may_see)
        return [
            GapView(seq=bill.seq, partition=gap.partition, start=gap.start, end=gap.end, reason=gap.reason, at=gap.at)
            for bill in self._lading.bills(record, bills)
            for gap in bill.gaps
        ]

    def audit(self, name: str, *, limit: int = 100, may_see: MaySee = see_all) -> list[AuditView]:
        """What people changed, newest first."""
        record = self.record(name, may_see)
        return [show_audit(entry) for entry in self._lading.store.list_audit(job_id=record.job_id, limit=limit)]

    def timeline(
        self, name: str, *, minutes: int = 60, limit: int = 500, may_see: MaySee = see_all
    ) -> list[HappenedView]:
        """What happened in the last minutes, newest first; of very many commits and changes the newest are told."""
        record = self.record(name, may_see)
        start = self._lading.clock.now() - timedelta(minutes=minutes)
        entries, _ = self._entries_since(record, start, most=limit)
        bills = [show_bill(entry) for entry in entries if entry.billed_at >= start]
        batches = [each for each in self.batches(name, limit=limit, may_see=may_see) if ended_at(each) >= start]
        audit = [entry for entry in self.audit(name, limit=limit, may_see=may_see) if entry.at >= start]
        job = self._show(record, record.totals or Tally(), {})
        if job.paused_at is not None and job.paused_at < start:
            job = replace(job, paused_at=None)
        tries = [retry_of(each) for each in record.tries if each.at >= start]
        return timeline_of(job, bills, batches, audit, tries)

    def definition(self, name: str, may_see: MaySee = see_all) -> str:
        """The statement that makes the job, without its secrets."""
        return redacted(self.record(name, may_see).definition)

    def series(self, name: str, *, minutes: int = 60, may_see: MaySee = see_all) -> Series:
        """Points for plots, from the index of bills."""
        record = self.record(name, may_see)
        points = min(MOST_POINTS, max(1, minutes * 6))
        start, end = fixed_span(self._lading.clock.now(), timedelta(minutes=minutes), points)
        entries, is_cut = self._entries_since(record, start, most=MOST_SERIES_BILLS)
        beats = [beat_of(entry) for entry in entries]
        return Series(
            start=start,
            end=end,
            step_s=(end - start).total_seconds() / points,
            lag_unit=self._lookout.unit(record.job_id),
            points=plot(beats, self._lookout.past_lags(record.job_id), start=start, end=end, points=points),
            is_cut=is_cut,
        )

    # Inside.

    def _show(self, record: JobRecord, totals: Tally, services: Mapping[JobId, str]) -> JobView:
        return show_job(
            record,
            totals,
            self._rates(record),
            self.lag(record),
            left_out=self._lookout.left_out(record.job_id),
            service=services.get(record.job_id, ""),
        )

    def health(self, record: JobRecord) -> HealthView:
        """How a job is doing, as lists of jobs say it."""
        left_out = self._lookout.left_out(record.job_id)
        return health_of(record, lag=self.lag(record), rates=self._rates(record), left_out=left_out)

    def rates(self, record: JobRecord) -> Rates:
        """How fast a job loads, over the last minutes. A job that does not run has no rate."""
        self._fill(record)
        return self._rates(record)

    def _rates(self, record: JobRecord) -> Rates:
        beats = self._lookout.beats(record.job_id) if record.state is JobState.RUNNING else []
        now = self._lading.clock.now()
        return measure_rates(beats, now=now, window_s=RATE_WINDOW_S, since=record.created_at)

    def lag(self, record: JobRecord) -> Lag | None:
        """How far a job is behind. Files are counted by the job itself: while it is PAUSED, by nobody."""
        found = self._lookout.lag(record.job_id, self._lading.clock.now())
        is_stale = found is not None and found.unit is LagUnit.FILES and record.state is JobState.PAUSED
        return None if is_stale else found

    def _fill(self, record: JobRecord) -> bool:
        """Read the commits of a job from the index, if it has some that were not seen. Says whether it did."""
        newest = record.last_seen.seq if record.last_seen else None
        seen = self._lookout.newest_seq(record.job_id)
        recent = record.last_success_at
        window = timedelta(seconds=RATE_WINDOW_S)
        if newest is None or recent is None or self._lading.clock.now() - recent > window:
            return False
        if seen is not None and seen >= newest:
            return False
        unseen = MOST_FILLED if seen is None else min(MOST_FILLED, newest - seen)
        entries = self._lading.store.list_bills(record.job_id, limit=unseen)
        self._lookout.saw_commits(record.job_id, [(entry.seq, beat_of(entry)) for entry in reversed(entries)])
        return True

    def _entries_since(self, record: JobRecord, start: datetime, *, most: int) -> tuple[list[BillEntry], bool]:
        def turn(limit: int, before_seq: int | None) -> list[BillEntry]:
            return self._lading.store.list_bills(record.job_id, limit=limit, before_seq=before_seq)

        return entries_since(turn, start, most=most)
