"""The audit log: what was done or refused, and by which user.

It is not the audit of jobs (`store.audit`): that one is written in the transaction of a change and says what the change
was. This one also has what changed nothing: logins, refusals, queries. It fails open: a disk that is full stops no
statement. What was not written is counted, and the log of the service says so.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lading.clock import Clock
from lading.service.security.audit_event import AuditEvent, EventKind, EventResult, parse_event_or_none, render_event
from lading.service.security.audit_file import AuditFile
from lading.service.security.origin import Face, Origin
from lading.settings import AuditSettings

_log = logging.getLogger("lading.audit")
SAME_LOGIN_S = 600.0
"""HTTP proves itself with every request: in this time one login of the same user from the same address is written."""
REFUSED_S, MOST_REFUSED, MOST_REFUSED_OF_ONE = 60.0, 600, 60
"""In this time so many refused logins are written, of all and of one address: guessing does not fill the log."""
MOST_ORIGINS = 10_000
COMPLAIN_S = 60.0


@dataclass(slots=True)
class _Window:
    """Events that are alike."""

    ends_s: float
    written: int = 0
    left_out: int = 0


class AuditLog:
    """Used by many threads. Nothing here raises because of the disk."""

    def __init__(self, folder: Path, clock: Clock, settings: AuditSettings) -> None:
        self._clock = clock
        self.settings = settings
        self._file = AuditFile(folder, most_bytes=settings.audit_file_mb * 1024 * 1024, files=settings.audit_files)
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, ...], _Window] = {}
        self._refused = _Window(ends_s=0.0)
        self._complained_s = float("-inf")
        self.events = Counter({(kind, result): 0 for kind in EventKind for result in EventResult})
        """All events since the start, also those that were left out or lost."""
        self.failed_logins = Counter(dict.fromkeys(Face, 0))
        self.denials = Counter(dict.fromkeys(Face, 0))
        self.lost = 0
        """Events that could not be written."""

    def record(self, event: AuditEvent) -> None:
        """Count an event and write it."""
        with self._lock:
            self._count(event)
            repeats = self._repeats_or_none(event)
        if repeats is None:
            return
        try:
            self._file.append(render_event(replace(event, repeats=repeats)))
        except OSError as error:
            self._complain(error)

    def login(
        self, user: str, origin: Origin, by: str, *, result: EventResult = EventResult.OK, error: str = ""
    ) -> None:
        """Record a login that was let in or refused."""
        self.record(
            AuditEvent(
                at=self._clock.now(),
                kind=EventKind.LOGIN,
                result=result,
                user=user,
                origin=origin,
                what=by,
                error=error,
            )
        )

    def newest_first(self) -> Iterator[AuditEvent]:
        """Events that are kept, newest first."""
        return self.parsed(self.lines())

    def lines(self) -> Iterator[bytes]:
        """Their lines, newest first."""
        return self._file.newest_first()

    @staticmethod
    def parsed(lines: Iterable[bytes], users: Collection[str] = ()) -> Iterator[AuditEvent]:
        """The events of lines. With users, lines without their names are left out, and some others may stay."""
        # To parse a line takes far longer than to see that it is somebody else's.
        marks = [f'"user": {json.dumps(user)}'.encode() for user in users]
        for line in lines:
            event = parse_event_or_none(line) if all(mark in line for mark in marks) else None
            if event is not None:
                yield event

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _count(self, event: AuditEvent) -> None:
        self.events[event.kind, event.result] += 1
        if event.result is EventResult.DENIED:
            denied = self.failed_logins if event.kind is EventKind.LOGIN else self.denials
            denied[event.origin.face] += 1

    def _repeats_or_none(self, event: AuditEvent) -> int | None:
        """How many events like this one were left out before it; None: this one is left out, too."""
        if event.kind is not EventKind.LOGIN:
            return 0
        face, peer = event.origin.face.value, event.origin.peer
        if event.result is not EventResult.OK:
            of_one = self._window("refused", face, peer, length_s=REFUSED_S)
            of_all = _moved_on(self._refused, self._clock.monotonic_s(), REFUSED_S)
            if of_one.written >= MOST_REFUSED_OF_ONE or of_all.written >= MOST_REFUSED:
                of_one.left_out += 1
                return None
            of_all.written += 1
            return self._written(of_one)
        if event.origin.face is not Face.HTTP:
            return 0
        same = self._window("login", event.user, peer, event.what, length_s=SAME_LOGIN_S)
        if same.written:
            same.left_out += 1
            return None
        return self._written(same)

    def _written(self, window: _Window) -> int:
        repeats, window.left_out = window.left_out, 0
        window.written += 1
        return repeats

    def _window(self, *key: str, length_s: float) -> _Window:
        now = self._clock.monotonic_s()
        window = self._windows.get(key)
        if window is None:
            self._make_room(now)
            window = self._windows[key] = _Window(ends_s=now + length_s)
        return _moved_on(window, now, length_s)

    def _make_room(self, now: float) -> None:
        if len(self._windows) < MOST_ORIGINS:
            return
        ended = [key for key, window in self._windows.items() if window.ends_s <= now]
        for key in ended or [next(iter(self._windows))]:
            del self._windows[key]

    def _complain(self, error: OSError) -> None:
        now = self._clock.monotonic_s()
        with self._lock:
            self.lost += 1
            if now - self._complained_s < COMPLAIN_S:
                return
            self._complained_s = now
            lost = self.lost
        _log.error("The audit log cannot be written: %s. %d events are lost; the service goes on", error.strerror, lost)


def _moved_on(window: _Window, now: float, length_s: float) -> _Window:
    """The window; when its time is over, the next one begins, and keeps what was left out."""
    if window.ends_s <= now:
        window.ends_s, window.written = now + length_s, 0
    return window
