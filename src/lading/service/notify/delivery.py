"""Handing events to receivers: each in order, and one that fails is left alone for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from urllib.parse import quote

from lading.clock import Clock
from lading.errors import LadingError, StoreError
from lading.ids import JobId
from lading.service.notify.books import Book, Pending
from lading.service.notify.receivers import Message, Receiver
from lading.service.security.redaction import redact

FIRST_DELAY_S = 10.0
LONGEST_DELAY_S = 600.0

Save = Callable[[JobId, Book], None]


class Delivery:
    """Used by one thread. What it knows of failures is lost with the process: then all are tried again."""

    def __init__(self, receivers: Mapping[str, Receiver], clock: Clock, console_url: str) -> None:
        self._receivers = receivers
        self._clock = clock
        self._console_url = console_url
        self._due_s: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._log = logging.getLogger("lading.notify")

    def deliver(self, job_id: JobId, book: Book, save: Save) -> Book:
        """Tell what is pending of one job. The book as it is then; `save` is called after each that was taken."""
        for each in book.pending:
            for name in each.waiting:
                if self._is_resting(name) or not self._tell(name, job_id, book, each):
                    continue
                # Dies before this: the receiver was told and is told again, with the same number.
                book = book.without(each.event.number, name)
                save(job_id, book)
        return book

    def _is_resting(self, name: str) -> bool:
        return self._clock.monotonic_s() < self._due_s.get(name, 0.0)

    def _tell(self, name: str, job_id: JobId, book: Book, each: Pending) -> bool:
        link = f"{self._console_url}/jobs/{quote(book.job, safe='')}"
        message = Message(event=each.event, job=book.job, job_id=job_id, table=book.table, link=link)
        try:
            self._receivers[name].tell(message)
        except StoreError:
            raise
        except LadingError as error:
            self._failed(name, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a receiver does, the others are told
            self._failed(name, f"{type(error).__name__}: {error}")
        else:
            self._failures.pop(name, None)
            return True
        return False

    def _failed(self, name: str, why: str) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        delay_s = min(FIRST_DELAY_S * 2 ** min(failures - 1, 10), LONGEST_DELAY_S)
        self._due_s[name] = self._clock.monotonic_s() + delay_s
        self._log.warning("%s could not be told, tried again in %g s: %s", name, delay_s, redact(why))
