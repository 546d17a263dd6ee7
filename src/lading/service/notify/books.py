"""What was told of each job and what is still to be told, in the store.

An event is written down before anybody is told of it, and a receiver is taken off it after they were told. So a
process that dies in between tells it again, with the same number, and nothing is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lading.ids import JobId
from lading.service.notify.signals import EventKind, JobEvent, Pause, Told
from lading.store.protocols import Settings

PREFIX = "notify/"
MOST_PENDING = 100
"""Events of one job that wait for a receiver. Of more, the oldest are let go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """An event that not everybody was told of."""

    event: JobEvent
    waiting: tuple[str, ...]
    """The receivers that were not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All that is known of one job."""

    job: str
    table: str
    told: Told = field(default_factory=Told)
    pending: tuple[Pending, ...] = ()
    let_go: int = 0
    """Events that nobody could be told of."""

    def plus(self, told: Told, events: Sequence[JobEvent], receivers: Sequence[str]) -> Book:
        """With what was found out just now."""
        all_pending = (*self.pending, *(Pending(event=each, waiting=tuple(receivers)) for each in events))
        dropped = max(0, len(all_pending) - MOST_PENDING)
        return replace(self, told=told, pending=all_pending[dropped:], let_go=self.let_go + dropped)

    def without(self, number: int, receiver: str) -> Book:
        """After a receiver took an event."""
        left = [
            replace(each, waiting=tuple(name for name in each.waiting if name != receiver))
            if each.event.number == number
            else each
            for each in self.pending
        ]
        return replace(self, pending=tuple(each for each in left if each.waiting))

    def only_for(self, receivers: Sequence[str]) -> Book:
        """Without receivers that nobody has set any more."""
        left = [
            replace(each, waiting=tuple(name for name in each.waiting if name in receivers)) for each in self.pending
        ]
        return replace(self, pending=tuple(each for each in left if each.waiting))


def load_books(store: Settings) -> dict[JobId, Book]:
    """Of all jobs."""
    found = store.list_settings()
    return {
        JobId(key.removeprefix(PREFIX)): parse_book(text)
        for key, text in found.items()
        if key.startswith(PREFIX) and text
    }


def load_book(store: Settings, job_id: JobId) -> Book | None:
    """None: nobody was told of anything."""
    text = store.read_setting(PREFIX + job_id)
    return parse_book(text) if text else None


def save_book(store: Settings, job_id: JobId, book: Book) -> None:
    store.write_setting(PREFIX + job_id, render_book(book))


def drop_book(store: Settings, job_id: JobId) -> None:
    store.drop_setting(PREFIX + job_id)


def render_book(book: Book) -> str:
    told = book.told
    return json.dumps(
        {
            "version": 1,
            "job": book.job,
            "table": book.table,
            "let_go": book.let_go,
            "told": {
                "number": told.number,
                "pause": told.pause.value,
                "paused_at": _text(told.paused_at),
                "late_files": told.late_files,
                "late_at": _text(told.late_at),
                "is_behind": told.is_behind,
                "columns": told.columns,
            },
            "pending": [
                {
                    "number": each.event.number,
                    "kind": each.event.kind.value,
                    "text": each.event.text,
                    "value": each.event.value,
                    "at": _text(each.event.at),
                    "waiting": each.waiting,
                }
                for each in book.pending
            ],
        }
    )


def parse_book(text: str) -> Book:
    known = json.loads(text)
    told, columns = known["told"], known["told"]["columns"]
    return Book(
        job=known["job"],
        table=known["table"],
        let_go=known["let_go"],
        told=Told(
            number=told["number"],
            pause=Pause(told["pause"]),
            paused_at=_time(told["paused_at"]),
            late_files=told["late_files"],
            late_at=_time(told["late_at"]),
            is_behind=told["is_behind"],
            columns=None if columns is None else tuple((name, kind) for name, kind in columns),
        ),
        pending=tuple(_pending(each) for each in known["pending"]),
    )


def _pending(known: dict[str, Any]) -> Pending:
    event = JobEvent(
        number=known["number"],
        kind=EventKind(known["kind"]),
        text=known["text"],
        value=known["value"],
        at=datetime.fromisoformat(known["at"]),
    )
    return Pending(event=event, waiting=tuple(known["waiting"]))


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
