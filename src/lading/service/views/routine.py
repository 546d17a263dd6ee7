"""Loading what SHOW shows of routine loads. Nothing here fails or hangs because a stream or table is out of reach."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.record import JobKind, JobRecord
from lading.jobs.routine_views import (
    KEPT_URLS,
    ROUTINE_COLUMNS,
    ROUTINE_TASK_COLUMNS,
    RoutineFacts,
    Row,
    render_routine_load,
    render_routine_task,
    render_schema_row,
)
from lading.model.bill import Head
from lading.model.load import LoadSpec
from lading.model.positions import Positions
from lading.pipeline.mapping import RowMapping
from lading.service.compile.mapping import Mapped
from lading.service.compile.streams import open_stream
from lading.service.installation import Installation
from lading.service.result import Result, table
from lading.service.session import Session
from lading.service.telemetry.lag_cache import Ask, LagWatch
from lading.service.telemetry.recent import lookout_of
from lading.service.views.jobs import JobViews
from lading.service.views.routine_facts import facts_of
from lading.sources.registry import stream_kind
from lading.sources.streams import StreamSight
from lading.sql.statements.jobs import CreateRoutineLoad
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render

NO_ROWS = Mapped(source_columns=(), metadata=(), mapping=RowMapping(columns=()))
"""For a source that is only asked how far it is."""
MOST_URL_BILLS = 50
MOST_SEEN = 2_000
"""Jobs whose last bill is remembered."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the bill of one head says; bills never change."""

    head: Head
    positions: Positions
    error_urls: tuple[str, ...]


class RoutineViews:
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
        sights = self.watch.look(asks)
        return {
            record.job_id: self._facts(record, seen[record.job_id], sights.get(record.job_id)) for record in records
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
        rates = JobViews(self._lading, lookout=lookout_of(self._lading)).rates(record)
        facts = replace(facts, rows_per_s=rates.rows_per_s, bytes_per_s=rates.bytes_per_s)
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
    stream = open_stream(record, load, NO_ROWS, lading.clock, addresses)
    try:
        return stream.source.sight(positions)
    finally:
        stream.close()


_VIEWS: WeakKeyDictionary[Installation, RoutineViews] = WeakKeyDictionary()


def views_of(lading: Installation) -> RoutineViews:
    """The views of a service: one for as long as it lives, because they remember answers."""
    return _VIEWS.setdefault(lading, RoutineViews(lading))


def show_jobs(lading: Installation, records: Sequence[JobRecord]) -> Result:
    """SHOW ROUTINE LOAD, oldest first."""
    ordered = sorted(records, key=lambda record: (record.created_at, record.job_id))
    return table(ROUTINE_COLUMNS, views_of(lading).rows(ordered))


def show_tasks(lading: Installation, record: JobRecord) -> Result:
    """SHOW ROUTINE LOAD TASK."""
    facts = views_of(lading).facts([record])[record.job_id]
    return table(ROUTINE_TASK_COLUMNS, render_routine_task(record, facts))


def schema_rows(session: Session) -> list[Row]:
    """information_schema.routine_load_jobs: routine loads of all databases that were not stopped or cancelled."""
    stored = session.lading.store.list_jobs(kind=JobKind.ROUTINE)
    records = [found.record for found in stored if session.sees(found.record)]
    shown = views_of(session.lading).rows(records)
    return [render_schema_row(record, row) for record, row in zip(records, shown, strict=True)]


def create_text(statement: CreateRoutineLoad, positions: Positions) -> str:
    """A statement that makes a job which goes on where this one is. Secrets are masked and have to be filled in."""
    shown = mask(statement)
    if not positions.partitions:
        return render(shown)
    kept = stream_kind(shown.source.name).beginning_at(shown.source.properties, positions)
    return render(replace(shown, source=replace(shown.source, properties=kept)))


def like_pattern(like: str) -> re.Pattern[str]:
    """MySQL's wildcards: `%` for any letters, `_` for one, a backslash before those that are meant."""
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    words = {"%": ".*", "_": "."}
    text = "".join(words.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(text, re.IGNORECASE | re.DOTALL)
