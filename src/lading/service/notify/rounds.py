"""Tells people what became of jobs: one thread of a service, which no job waits for.

A round compares what is known of each job with what people were told, and writes down in the store what is to be told
before it is. Between rounds, what a job does wakes the thread, so that a short pause is seen too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.record import JobRecord, JobState
from lading.model.bill import Bill
from lading.model.table import ColumnChange
from lading.service.installation import Installation
from lading.service.notify.books import Book, drop_book, load_book, load_books, save_book
from lading.service.notify.config import NotifySettings
from lading.service.notify.delivery import Delivery
from lading.service.notify.signals import Columns, EventKind, Found, Pause, Sight, derive
from lading.service.telemetry.recent import lookout_of
from lading.service.views.build import redacted
from lading.status.outcomes import Outcome

EVERY_S = 5.0
COLUMNS_EVERY_S = 300.0
"""So often at most the columns of a table are looked at, and only after a batch."""
LATE = "late"
"""As a survey of files calls them."""
_MOST_AUDIT = 20


@dataclass(slots=True)
class _Seen:
    """What this process knows of a job."""

    version: int = -1
    record: JobRecord | None = None
    book: Book | None = None
    columns: Columns | None = None
    columns_at: tuple[int, float] = (-1, float("-inf"))
    """After how many batches they were looked at, and when."""
    raised: tuple[Found, ...] = ()
    """What others found out and is not in the book yet."""


class NotifyRounds:
    """One thread of a service, and a watch of its jobs."""

    def __init__(
        self, lading: Installation, settings: NotifySettings, *, console_url: str, every_s: float = EVERY_S
    ) -> None:
        self._lading = lading
        self._settings = settings
        self._every_s = every_s
        self._delivery = Delivery(settings.receivers, lading.clock, settings.console_url or console_url)
        self._seen: dict[JobId, _Seen] = {}
        self._has_loaded = False
        self._lock = threading.Lock()
        """For what watches tell."""
        self._moments: list[JobRecord] = []
        self._late: dict[JobId, tuple[int, str]] = {}
        self._raised: dict[JobId, list[Found]] = {}
        self._awake = threading.Event()
        self._is_ending = False
        self._log = logging.getLogger("lading.notify")
        self._thread = threading.Thread(target=self._run, name="lading-notify", daemon=True)

    def start(self) -> None:
        self._lading.watches.append(self)
        self._thread.start()

    def close(self) -> None:
        """End after the receiver that is being told; what is pending is told by the next start."""
        self._is_ending = True
        self._awake.set()
        if self in self._lading.watches:
            self._lading.watches.remove(self)
        if self._thread.is_alive():
            self._thread.join()

    # What jobs tell. None of these waits.

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        if record.state is JobState.PAUSED:
            self._noted(record)

    def auto_resumed(self, record: JobRecord) -> None:
        self._noted(record)

    def files_left_out(self, record: JobRecord, files: Mapping[str, int], remark: str) -> None:
        with self._lock:
            self._late[record.job_id] = files.get(LATE, 0), remark

    def raise_event(self, job_id: JobId, kind: EventKind, text: str, value: str) -> None:
        """Something else that people should know of a job: one sentence, and the value that is wrong."""
        with self._lock:
            self._raised.setdefault(job_id, []).append((kind, redacted(text), redacted(value)))
        self._awake.set()

    def step(self, record: JobRecord, step: str, seconds: float) -> None: ...
    def committed(self, record: JobRecord, bill: Bill) -> None: ...
    def fenced(self, record: JobRecord) -> None: ...
    def unrecorded(self, record: JobRecord) -> None: ...
    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None: ...
    def evolved(self, record: JobRecord, changes: Sequence[ColumnChange]) -> None:
        """The rounds compare the columns of tables: others may change them, too."""

    def _noted(self, record: JobRecord) -> None:
        with self._lock:
            self._moments.append(record)
        self._awake.set()

    # The rounds.

    def look(self) -> None:
        """One round over all jobs of this service."""
        self._load()
        store, leases = self._lading.store, self._lading.leases
        while self._moments:
            record = self._moments[0]
            self._compare(record.job_id, record)
            del self._moments[0]  # Only this thread takes from it.
        versions = store.list_versions()
        for job_id, version in versions.items():
            if not leases.holds(job_id):
                self._seen.pop(job_id, None)  # Another service tells of it, and writes its book.
                continue
            seen = self._seen.setdefault(job_id, _Seen(book=load_book(store, job_id)))
            if seen.record is None or seen.version != version:
                stored = store.load_job_by_id(job_id)
                seen.version, seen.record = stored.version, stored.record
            self._compare(job_id, seen.record)
        for job_id in [known for known in self._seen if known not in versions]:
            self._part_with(job_id)
        self._deliver()

    def _load(self) -> None:
        if not self._has_loaded:
            names = list(self._settings.receivers)
            found = load_books(self._lading.store)
            self._seen |= {job_id: _Seen(book=book.only_for(names)) for job_id, book in found.items()}
            self._has_loaded = True

    def _compare(self, job_id: JobId, record: JobRecord) -> None:
        seen = self._seen.setdefault(job_id, _Seen(book=load_book(self._lading.store, job_id)))
        book = seen.book or Book(job=str(record.full_name), table=record.target)
        told, events = derive(book.told, self._sight(seen, book, record), self._settings.limits, self._settings.kinds)
        events = [replace(each, text=redacted(each.text), value=redacted(each.value)) for each in events]
        if told != book.told or events:
            after = book.plus(told, events, list(self._settings.receivers))
            if after.let_go > book.let_go:
                self._log.warning("events of %s were let go: too many are pending", book.job)
            # Dies before this: nobody was told, and the next start finds the same. After it: told by the next start.
            save_book(self._lading.store, job_id, after)
            seen.book = after
        seen.raised = ()

    def _sight(self, seen: _Seen, book: Book, record: JobRecord) -> Sight:
        now, job_id = self._lading.clock.now(), record.job_id
        with self._lock:
            late, remark = self._late.get(job_id, (None, ""))
            seen.raised += tuple(self._raised.pop(job_id, ()))
        self._look_at_columns(seen, record)
        may_be_over = book.told.pause is Pause.TRIED_AGAIN and record.state is not JobState.PAUSED
        return Sight(
            record=record,
            now=now,
            late_files=late,
            remark=remark,
            lag=lookout_of(self._lading).lag(job_id, now),
            columns=seen.columns,
            was_resumed_by=self._resumed_by(job_id, book.told.paused_at) if may_be_over else "",
            raised=seen.raised,
        )

    def _resumed_by(self, job_id: JobId, since: datetime | None) -> str:
        """Who resumed a job since it was paused, by the audit."""
        if since is None:
            return ""
        entries = self._lading.store.list_audit(job_id=job_id, limit=_MOST_AUDIT)
        return next((each.user for each in entries if each.action == "RESUME" and each.at >= since), "")

    def _look_at_columns(self, seen: _Seen, record: JobRecord) -> None:
        if EventKind.SCHEMA_CHANGE not in self._settings.kinds or record.last_seen is None or record.is_final:
            return
        now_s, batches = self._lading.clock.monotonic_s(), record.counts.begun
        if batches == seen.columns_at[0] or now_s - seen.columns_at[1] < COLUMNS_EVERY_S:
            return
        seen.columns_at = batches, now_s
        try:
            schema = self._lading.open_target(record).schema()
        except LadingError:
            return  # The job itself says what is wrong with its table.
        seen.columns = tuple((each.name, str(each.type)) for each in schema)

    def _part_with(self, job_id: JobId) -> None:
        """A job is final, or gone."""
        seen = self._seen[job_id]
        try:
            record = self._lading.store.load_job_by_id(job_id).record
        except LadingError:
            record = None
        if record is not None:
            self._compare(job_id, record)
        if seen.book is None or not seen.book.pending:
            drop_book(self._lading.store, job_id)
            del self._seen[job_id]

    def _deliver(self) -> None:
        for job_id, seen in self._seen.items():
            if seen.book is None or self._is_ending:
                continue
            seen.book = self._delivery.deliver(job_id, seen.book, self._save)

    def _save(self, job_id: JobId, book: Book) -> None:
        save_book(self._lading.store, job_id, book)

    def _run(self) -> None:
        while not self._is_ending:
            try:
                self.look()
            except LadingError as error:
                self._log.warning("people could not be told of jobs, trying again: %s", error)
            except Exception:  # noqa: BLE001 - the door of a thread: the rounds go on
                self._log.exception("people could not be told of jobs, trying again")
            self._awake.wait(self._every_s)
            self._awake.clear()


def raise_event(watches: Iterable[object], job_id: JobId, kind: EventKind, text: str, value: str) -> None:
    """Have people told of something that rounds do not see. Nothing happens where nobody is to be told."""
    for watch in watches:
        if isinstance(watch, NotifyRounds):
            watch.raise_event(job_id, kind, text, value)
