"""Who is logged in at this console. In memory: a new start asks everybody again."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass

from lading.clock import Clock
from lading.service.security.privileges import Identity

LIFE_S = 12 * 3600.0
TICKET_LIFE_S = 60.0
MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    identity: Identity
    ends_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticket:
    identity: Identity
    visit_id: str
    ends_s: float
    life_s: float


class Visits:
    """Logins by the id in the browser's signed cookie.

    A login is proven over the websocket, which cannot set a cookie. It gets a ticket; handing that in once, from the
    same browser, gives the browser a new id. An id that somebody planted there before the login is worth nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._visits: dict[str, _Visit] = {}
        self._tickets: dict[str, _Ticket] = {}

    def find(self, visit_id: str) -> Identity | None:
        """Who this is; None when nobody logged in, or too long ago."""
        with self._lock:
            found = self._visits.get(visit_id)
            if found is None or found.ends_s < self._clock.monotonic_s():
                self._visits.pop(visit_id, None)
                return None
            return found.identity

    def issue_ticket(self, identity: Identity, visit_id: str, *, life_s: float = LIFE_S) -> str:
        """For somebody who has proven who they are, in the browser that has this id. The login lasts for `life_s`."""
        with self._lock:
            self._sweep()
            ticket = secrets.token_urlsafe(32)
            ends_s = self._clock.monotonic_s() + TICKET_LIFE_S
            self._tickets[ticket] = _Ticket(identity=identity, visit_id=visit_id, ends_s=ends_s, life_s=life_s)
            return ticket

    def redeem(self, ticket: str, visit_id: str) -> str | None:
        """The new id of the browser; None when the ticket is not of this browser, or was used, or is too old."""
        with self._lock:
            found = self._tickets.pop(ticket, None)
            now = self._clock.monotonic_s()
            if found is None or found.visit_id != visit_id or found.ends_s < now:
                return None
            fresh = secrets.token_urlsafe(32)
            self._visits[fresh] = _Visit(identity=found.identity, ends_s=now + found.life_s)
            return fresh

    def end(self, visit_id: str) -> None:
        """Log out, in all tabs of that browser."""
        with self._lock:
            self._visits.pop(visit_id, None)

    def _sweep(self) -> None:
        now = self._clock.monotonic_s()
        self._tickets = {key: kept for key, kept in self._tickets.items() if kept.ends_s >= now}
        self._visits = {key: kept for key, kept in self._visits.items() if kept.ends_s >= now}
        for memory in (self._tickets, self._visits):
            while len(memory) >= MOST:
                del memory[next(iter(memory))]
