"""Guessing passwords is slow, and ends."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lading.clock import Clock
from lading.errors import AuthError
from lading.service.security.bind_policy import is_loopback
from lading.settings import SecuritySettings

FIRST_DELAY_S = 0.25
MOST_DELAY_S = 5.0
FORGET_AFTER_S = 900.0
FORGET_NAME_AFTER_S = 86_400.0
KNOWN_FOR_S = 30 * 86_400.0
MOST_KEYS = 10_000
MOST_LETTERS = 256

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _Record:
    failures: int = 0
    not_before: float = 0.0
    last: float = 0.0
    locked_until: float = 0.0


class _Records(Generic[Key]):
    """Failures by key. The oldest make room."""

    def __init__(self, forget_after_s: float) -> None:
        self._forget_after_s = forget_after_s
        self._records: dict[Key, _Record] = {}

    def find(self, key: Key, now: float) -> _Record | None:
        record = self._records.get(key)
        if record is not None and now > max(record.last + self._forget_after_s, record.locked_until):
            del self._records[key]
            return None
        return record

    def count(self, key: Key, now: float) -> _Record:
        record = self.find(key, now)
        if record is None:
            if len(self._records) >= MOST_KEYS:
                del self._records[min(self._records, key=lambda each: self._records[each].last)]
            record = self._records[key] = _Record()
        record.failures += 1
        record.last = now
        return record

    def keys(self) -> tuple[Key, ...]:
        return tuple(self._records)

    def forget(self, key: Key) -> None:
        self._records.pop(key, None)


class Throttle:
    """Delays that grow with every wrong password of one user from one network, up to a limit, and a lock after many.

    A network is an IPv4 address, or the /64 of an IPv6 address: its owner has all of it.

    The answer to a wrong password comes late, and the next attempt is looked at no sooner, also when it comes over
    another connection: attempts that come together are looked at one after the other. When more than the limit would
    have to be waited for, the attempt is refused without a look at its password.

    Other users, and the same user from elsewhere, do not wait. Three things are counted apart:

    - one user from one network: delays at once, a lock after `lockout_failures`;
    - one network, whatever the names: delays after `address_failures`;
    - one user from anywhere, for a day: a lock after `name_failures`, except on this machine and for networks that this
      user has logged in from. Who only knows a name can therefore not keep its owner out.

    Attempts while something is locked are not counted, so that it ends. Nothing is durable: a new process starts over.
    """

    def __init__(self, clock: Clock, wait: Callable[[float], None], rules: SecuritySettings | None = None) -> None:
        self._clock = clock
        self._wait = wait
        self._rules = rules or SecuritySettings()
        self._lock = threading.Lock()
        self._pairs = _Records[tuple[str, str]](FORGET_AFTER_S)
        self._networks = _Records[str](FORGET_AFTER_S)
        self._names = _Records[str](FORGET_NAME_AFTER_S)
        self._known: dict[tuple[str, str], float] = {}

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Of which users, from which networks, wrong passwords are counted."""
        with self._lock:
            return self._pairs.keys()

    def admit(self, user: str, peer: str) -> None:
        """Wait until the next attempt may be looked at. Raises AuthError when too many are waiting, or locked."""
        delay = self.reserve(user, peer)
        if delay:
            self._wait(delay)

    def reserve(self, user: str, peer: str) -> float:
        """Take a turn. Says how many seconds to wait before the attempt may be looked at. Raises AuthError as above."""
        name, network = user[:MOST_LETTERS], network_of(peer)
        with self._lock:
            now = self._clock.monotonic_s()
            if (locked_s := self._locked_s(name, network, now)) > 0:
                raise _refused(user, locked_s)
            waiting = self._waiting(name, network, now)
            delay = max((max(0.0, record.not_before - now) for record, _ in waiting), default=0.0)
            if delay > MOST_DELAY_S:
                raise _refused(user, delay)
            for record, failures in waiting:
                record.not_before = now + delay + _delay_s(failures)
        return delay

    def punish(self, user: str, peer: str) -> None:
        """Note a wrong password, and wait before it is answered."""
        self.wait(self.note(user, peer))

    def wait(self, delay_s: float) -> None:
        """Keep the thread for so long."""
        self._wait(delay_s)

    def note(self, user: str, peer: str) -> float:
        """Note a wrong password. Says for how many seconds its answer is to wait."""
        name, network = user[:MOST_LETTERS], network_of(peer)
        with self._lock:
            now = self._clock.monotonic_s()
            if self._locked_s(name, network, now) > 0:
                return MOST_DELAY_S  # It was not looked at.
            pair = self._pairs.count((name, network), now)
            self._lock_after(pair, self._rules.lockout_failures, now)
            self._lock_after(self._names.count(name, now), self._rules.name_failures, now)
            self._networks.count(network, now)
            delay = _delay_s(pair.failures)
            for record, failures in self._waiting(name, network, now):
                delay = max(delay, _delay_s(failures))
                record.not_before = max(record.not_before, now + _delay_s(failures))
        return delay

    def forgive(self, user: str, peer: str) -> None:
        """Note a right password."""
        name, network = user[:MOST_LETTERS], network_of(peer)
        with self._lock:
            self._pairs.forget((name, network))
            if len(self._known) >= MOST_KEYS:
                del self._known[next(iter(self._known))]
            self._known.pop((name, network), None)
            self._known[name, network] = self._clock.monotonic_s() + KNOWN_FOR_S

    def _locked_s(self, name: str, network: str, now: float) -> float:
        """For how long nothing is looked at."""
        pair = self._pairs.find((name, network), now)
        until = pair.locked_until if pair is not None else 0.0
        if not (self._is_known(name, network, now) or is_loopback(network)):
            everywhere = self._names.find(name, now)
            until = max(until, everywhere.locked_until if everywhere is not None else 0.0)
        return until - now

    def _waiting(self, name: str, network: str, now: float) -> list[tuple[_Record, int]]:
        """What an attempt waits for, and how many failures count there."""
        found = []
        if (pair := self._pairs.find((name, network), now)) is not None:
            found.append((pair, pair.failures))
        limit = self._rules.address_failures
        strangers = self._networks.find(network, now)
        if limit and strangers is not None and not self._is_known(name, network, now) and strangers.failures > limit:
            found.append((strangers, strangers.failures - limit))
        return found

    def _is_known(self, name: str, network: str, now: float) -> bool:
        return self._known.get((name, network), 0.0) > now

    def _lock_after(self, record: _Record, limit: int, now: float) -> None:
        if limit and record.failures >= limit:
            record.locked_until = now + 60.0 * self._rules.lockout_minutes
            record.failures = 0  # What comes after the lock is counted from the beginning.


def network_of(peer: str) -> str:
    """What counts as one address."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address) if address.is_loopback else str(ipaddress.ip_network((address, 64), strict=False))


def _refused(user: str, delay_s: float) -> AuthError:
    msg = f"Access denied for user '{user}': too many wrong passwords"
    when = f"{delay_s:.0f} s" if delay_s < 120 else f"{delay_s / 60:.0f} minutes"
    return AuthError(msg, left="The password was not looked at.", todo=f"Try again in {when}.")


def _delay_s(failures: int) -> float:
    return min(MOST_DELAY_S, FIRST_DELAY_S * 2.0 ** max(0, min(failures - 1, 30)))
