"""Loading what SHOW, jobs() and tasks() show. Nothing here fails or hangs because a source or table is out of reach."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.dialects import ROUTINE, STREAMING
from lading.jobs.record import JobRecord
from lading.jobs.views import (
    KEPT_URLS,
    RoutineFacts,
    Row,
    render_jobs,
    render_routine_load,
    render_routine_task,
    render_schema_row,
    render_tasks,
)
from lading.model.bill import Head
from lading.model.load import LoadSpec
from lading.model.positions import Positions
from lading.service.compile.compiler import open_source
from lading.service.compile.sourced import AnyJob, source_of, with_source
from lading.service.installation import Installation
from lading.service.session import Session
from lading.service.telemetry.lag_cache import Ask, LagWatch
from lading.service.telemetry.recent import lookout_of
from lading.service.views.jobs import JobViews
from lading.service.views.load_facts import facts_of
from lading.service.views.services import services_of
from lading.sources.registry import stream_kind
from lading.sources.streams import StreamSight
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render

MOST_URL_BILLS = 50
MOST_SEEN = 2_000
"""Jobs whose last bill is remembered."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the bill of one head says; bills never change."""

    head: Head
    positions: Positions
    error_urls: tuple[str, ...]


class LoadViews:
    """Rows of SHOW for one service. Safe to use from many threads."""

    def __init__(self, lading: Installation) -> None:
        self._lading = lading
        self._seen: dict[JobId, _Seen] = {}
        self.watch = LagWatch(lading.clock)

    def rows(self, records: Sequence[JobRecord]) -> list[Row]:
        """Rows of SHOW ROUTINE LOAD."""
        facts = self.facts(records)
        totals = self._lading.store.read_totals()
        now, overlay = self._lading.clock.now(), self._lading.unrecorded.overlay
        return [
            render_routine_load(overlay(record), facts[record.job_id], totals.get(record.job_id), now=now)
            for record in records
        ]

    def facts(self, records: Sequence[JobRecord]) -> dict[JobId, RoutineFacts]:
        """What is shown of jobs and is not in their records."""
        seen = {record.job_id: self._see(record) for record in records}
        asks: dict[JobId, Ask] = {}
        for record in records:
            positions = seen[record.job_id].positions
            if not record.is_final and positions.partitions:
                asks[record.job_id] = partial(ask_stream, self._lading, record, positions)
        sights, services = self.watch.look(asks), services_of(self._lading)
        return {
            record.job_id: replace(
                self._facts(record, seen[record.job_id], sights.get(record.job_id)),
                service=services.get(record.job_id, ""),
            )
            for record in records
        }

    def positions(self, record: JobRecord) -> Positions:
        """Where a job stands, as far as can be read; empty before it was opened."""
        return self._see(record).positions

    def _facts(self, record: JobRecord, seen: _Seen, sight: StreamSight | None) -> RoutineFacts:
        urls = seen.error_urls if record.window_rows.error else ()
        load = self._load(record)
        facts = RoutineFacts(source_type=load.source.kind if load is not None else "", error_urls=urls)
        if load is not None:
            with suppress(LadingError):
                facts = facts_of(record, load, seen.positions, sight, urls)
        recent = JobViews(self._lading, lookout=lookout_of(self._lading))
        rates, health = recent.rates(record), recent.health(record).state.value
        facts = replace(facts, rows_per_s=rates.rows_per_s, bytes_per_s=rates.bytes_per_s, health=health)
        if seen.positions.partitions or not record.current_offset:
            return facts
        return replace(facts, progress=json.loads(record.current_offset))

    def _load(self, record: JobRecord) -> LoadSpec | None:
        """With its secrets, which are masked later; without them when they cannot be read."""
        try:
            return self._lading.load_of(record)
        except LadingError:
            return record.spec

    def _see(self, record: JobRecord) -> _Seen:
        head, known = record.last_seen, self._seen.get(record.job_id)
        if head is None:
            return _Seen(Head(seq=-1, token=0), Positions(), ())  # type: ignore[arg-type]  # names no bill
        if known is None or known.head != head:
            try:
                known = self._read(record, head)
            except LadingError:
                return known or _Seen(head, Positions(), ())
            self._seen.pop(record.job_id, None)
            self._seen[record.job_id] = known
            while len(self._seen) > MOST_SEEN:  # Those of jobs that nobody looks at any more are the oldest.
                self._seen.pop(next(iter(self._seen), record.job_id), None)
        return known

    def _read(self, record: JobRecord, head: Head) -> _Seen:
        bills = self._lading.open_target(record).bills
        bill = bills.read(record.job_id, head)
        urls, older = list(bill.quarantine), bill
        if record.window_rows.error:
            for _ in range(MOST_URL_BILLS):
                if len(urls) >= KEPT_URLS or older.continues is None or older.totals.rows.error == 0:
                    break
                try:
                    older = bills.read(record.job_id, older.continues)
                except LadingError:
                    break
                urls += older.quarantine
        return _Seen(head, bill.positions, tuple(urls[:KEPT_URLS]))


def ask_stream(lading: Installation, record: JobRecord, positions: Positions) -> StreamSight:
    """What the stream of a routine load says now."""
    load, addresses = lading.open_source(record)
    with closing(open_source(record, load, lading.clock, addresses)) as stream:
        return stream.sight(positions) if stream.sight is not None else StreamSight()


_VIEWS: WeakKeyDictionary[Installation, LoadViews] = WeakKeyDictionary()


def views_of(lading: Installation) -> LoadViews:
    """The views of a service: one for as long as it lives, because they remember answers."""
    return _VIEWS.setdefault(lading, LoadViews(lading))


def show_tasks(lading: Installation, record: JobRecord) -> list[Row]:
    """Rows of SHOW ROUTINE LOAD TASK."""
    return render_routine_task(record, views_of(lading).facts([record])[record.job_id])


def after_change(session: Session, record: JobRecord) -> None:
    """What was remembered of the job's source may be of another one."""
    views_of(session.lading).watch.forget(record.job_id)


def schema_rows(session: Session) -> list[Row]:
    """information_schema.routine_load_jobs: routine loads of all databases that were not stopped or cancelled."""
    stored = session.lading.store.list_jobs(kind=ROUTINE.kind)
    records = [found.record for found in stored if session.sees(found.record)]
    shown = views_of(session.lading).rows(records)
    return [render_schema_row(record, row) for record, row in zip(records, shown, strict=True)]


def job_rows(session: Session) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """jobs() and tasks(): streaming jobs that were not dropped, and the tasks of all that the user may see."""
    lading = session.lading
    stored = lading.store.list_jobs(kind=STREAMING.kind, include_final=True)
    records = [lading.unrecorded.overlay(each.record) for each in stored if session.sees(each.record)]
    recent = JobViews(lading, lookout=lookout_of(lading))
    lags = {
        str(record.job_id): lag.behind for record in records if (lag := recent.lag(record)) and lag.behind is not None
    }
    totals = {str(job_id): tally for job_id, tally in lading.store.read_totals().items()}
    healths = {str(record.job_id): recent.health(record).state.value for record in records}
    seen = {record.job_id for record in records}
    tasks = [task for task in lading.store.list_tasks() if task.job_id in seen]
    shown = render_jobs(records, totals, lags=lags, services=services_of(lading), healths=healths)
    return shown, render_tasks(tasks)


def create_text(statement: AnyJob, positions: Positions) -> str:
    """A statement that makes a job which goes on where this one is. Secrets are masked and have to be filled in."""
    shown = mask(statement)
    source = source_of(shown)
    if not positions.partitions:
        return render(shown)
    kept = stream_kind(source.name).beginning_at(source.properties, positions)
    return render(with_source(shown, replace(source, properties=kept)))


def like_pattern(like: str) -> re.Pattern[str]:
    """MySQL's wildcards: `%` for any letters, `_` for one, a backslash before those that are meant."""
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    words = {"%": ".*", "_": "."}
    text = "".join(words.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(text, re.IGNORECASE | re.DOTALL)
