"""Which jobs this service has, of those that it shares a store with other services for.

A round says that this service is alive, looks at the others, and takes or gives back jobs. Nobody compares clocks of
two machines: a service is taken for dead when the number in its entry has not changed for a while on the clock of the
one who looks. One that was only stopped finds out when it next changes a job: the store refuses that without the lease.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lading.clock import Clock, Moment
from lading.errors import JobStateError, LadingError
from lading.ids import Incarnation, JobId
from lading.jobs.leases import share
from lading.service.security.private_files import read_private, write_private
from lading.service.security.private_home import ID_FILE
from lading.store.home import home_fault
from lading.store.protocols import MetadataStore
from lading.store.records import ServiceEntry

_BEATS = 4
"""Signs of life within the time after which a service is taken for dead."""

GiveBack = Callable[[JobId], bool]
"""Ends the work on a job cleanly. False: a batch is running; it is asked again."""


_LOOK_S = 0.2


class LeaseKeeper:
    """For one service. It is not in use before its first round: then every job is this process's own."""

    def __init__(
        self, store: MetadataStore, clock: Clock, incarnation: Incarnation, home: Path, *, dead_after_s: float
    ) -> None:
        self._store = store
        self._dead_after_s = max(1.0, dead_after_s)
        self._clock = clock
        self._entry = ServiceEntry(
            service_id=str(incarnation),
            host=socket.gethostname(),
            pid=os.getpid(),
            home=str(home),
            home_id=_home_id(home),
            dead_after_s=self._dead_after_s,
            started_at=clock.now(),
        )
        self.opened = Moment.of(clock)
        """When this process began to look at the store."""
        self._mine = self._leaving = frozenset[JobId]()
        self._looked_s = self._beat_s = 0.0
        self._passing = frozenset[str]()
        self._is_used = self._has_looked = self._is_failing = False
        self._seen: dict[str, tuple[int, float]] = {}
        """Service → its beat, and when that was first seen."""
        self._forgotten, self._twins = set[str](), set[str]()
        """Services with the id of this home: those taken for its predecessors, and those that went on all the same."""
        self._versions: dict[JobId, int] = {}
        self._working = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = logging.getLogger("lading.leases")

    @property
    def service_id(self) -> str | None:
        """What changes of jobs are made as; None before the first round."""
        return self._entry.service_id if self._has_looked else None

    @property
    def own_id(self) -> str:
        """The same, also before that: the jobs that it makes are its own from the beginning."""
        return self._entry.service_id

    @property
    def home_id(self) -> str:
        """What tells this home from all others that share the store, through all starts."""
        return self._entry.home_id

    def holds(self, job_id: JobId) -> bool:
        """Whether this service may begin a batch of a job, as far as it knows."""
        # Before the first round nothing is known. While the store takes none, batches tell so.
        return not self._has_looked or job_id in self._mine

    def surely_holds(self, job_id: JobId) -> bool:
        """The same for what nothing refuses afterwards. Not when others may have taken the job meanwhile: this process
        was stopped, its machine slept, or the store took no sign of life."""
        is_old = self._clock.passed_s() - self._beat_s >= self._dead_after_s
        return not self._has_looked or (job_id in self._mine and not is_old)

    def is_leaving(self, job_id: JobId) -> bool:
        """Whether a job is to be given back when its batch has ended: no other begins."""
        return job_id in self._leaving

    @property
    def has_others(self) -> bool:
        """Whether other services were seen at the last round."""
        return len(self._seen) > 1

    def take_new(self, job_id: JobId) -> None:
        """Take a job before anybody can see it: until its CREATE is done, no other service opens it.

        Dies after this: a lease of a job that is not there, or of a service that is taken for dead.
        """
        if not self._is_used:
            # A command: it lives for as long as others wait for signs of life.
            self._passing_beat()
            self._is_used = True
        self._store.take_lease(job_id, self._entry.service_id, held_by=None)

    def check_new(self, job_id: JobId) -> None:
        """Raise FencedError, code LeaseLost, when another service has a job that this process took to make it."""
        self._store.check_lease(job_id, self._entry.service_id)

    @contextmanager
    def held(self, job_ids: Iterable[JobId]) -> Iterator[bool]:
        """Have jobs while a command runs them, so that no service takes them meanwhile. Whether they have to be closed
        before this ends, because others may take them then.

        Raises JobStateError when somebody alive has one. Dies in here: it is dead to the others soon, as a service is.
        """
        wanted = frozenset(job_ids)
        self.check_free(wanted)
        if self._thread is not None or not self._store.shared_url:
            yield False  # A service holds its jobs itself; a home with a store of its own belongs to one process.
            return
        self._passing_beat()
        self._is_used, ending = True, threading.Event()
        beating = threading.Thread(target=self._stay, args=(ending,), name="lading-leases", daemon=True)
        try:
            self._take_all(wanted)
            self._mine, self._has_looked = wanted, True
            beating.start()
            yield True
        finally:
            ending.set()
            if beating.ident is not None:
                beating.join()
            self._mine, self._has_looked = frozenset[JobId](), False
            self._give_all_back()

    def _take_all(self, wanted: Set[JobId]) -> None:
        leases, mine = self._store.list_leases(), self._entry.service_id
        for job_id in sorted(wanted):
            holder = leases.get(job_id)
            if holder != mine and not self._store.take_lease(job_id, mine, held_by=holder):
                msg = "Another process of this store took a job at the same moment"
                todo = "Leave it to that one, or try again. SHOW SERVICES tells which jobs each has."
                raise JobStateError(msg, left="Nothing was run.", todo=todo, job_id=job_id)

    def _passing_beat(self) -> None:
        self._entry = replace(self._entry, beat=self._entry.beat + 1)
        self._beat(replace(self._entry, is_passing=True))

    def _beat(self, entry: ServiceEntry) -> None:
        began_s = self._clock.passed_s()
        self._store.beat(entry)
        self._beat_s = began_s

    def _stay(self, ending: threading.Event) -> None:
        while not ending.wait(self._dead_after_s / _BEATS):
            try:
                self._passing_beat()
                self._is_failing = False
            except LadingError as error:
                self.tell_failing(error)
            except Exception:  # noqa: BLE001 - the door of a thread: it goes on
                self._log.exception("a sign of life could not be given")

    def start(self, on_change: Callable[[], None], give_back: GiveBack) -> None:
        """Have rounds in a thread. `on_change` is called when jobs changed hands, or were changed by others."""
        self._is_used = True
        self._thread = threading.Thread(
            target=self._run, args=(on_change, give_back), name="lading-leases", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Give everything back. The jobs have said goodbye."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        if self._is_used:
            self._give_all_back()

    def _give_all_back(self) -> None:
        try:
            self._store.forget_service(self._entry.service_id)
        except LadingError as error:
            self._log.warning("the jobs of this service could not be given back: %s", error)

    def look(self, give_back: GiveBack) -> bool:
        """One round. Whether anything is another than before.

        Dies in here: this service is dead to the others soon, and they take its jobs.
        """
        with self._working:
            began_s = self._clock.monotonic_s()
            self._entry = replace(self._entry, beat=self._entry.beat + 1)
            self._beat(self._entry)
            alive = self._alive(began_s)
            versions = self._store.list_versions()
            leases = self._store.list_leases()
            moves = share(self._entry.service_id, alive, leases, list(versions), self._passing)
            mine = {job for job, holder in leases.items() if holder == self._entry.service_id and job in versions}
            for job_id in moves.take:
                if self._store.take_lease(job_id, self._entry.service_id, held_by=leases.get(job_id)):
                    mine.add(job_id)
            before, self._leaving = self._mine, frozenset(moves.give)
            for job_id in moves.give:
                if give_back(job_id):  # It said goodbye: nobody is left to fence.
                    self._store.drop_lease(job_id, self._entry.service_id)
                    mine.discard(job_id)
            self._mine, self._has_looked, self._is_failing = frozenset(mine), True, False
            is_changed = self._mine != before or versions != self._versions
            self._versions = versions
            return is_changed

    def check_free(self, job_ids: Iterable[JobId]) -> None:
        """Raise JobStateError when a living service has one of these jobs. Waits for a sign of life when one may."""
        wanted = set(job_ids) & self.held_by_others()
        holders = {holder for job_id, holder in self._store.list_leases().items() if job_id in wanted}
        beats = {each.service_id: each.beat for each in self._store.list_services() if each.service_id in holders}
        longest_s = max((each.dead_after_s for each in self._store.list_services()), default=0.0)
        until_s = self._clock.monotonic_s() + max(self._dead_after_s, longest_s)
        while beats and self._clock.monotonic_s() < until_s:
            for entry in self._store.list_services():
                if entry.beat != beats.get(entry.service_id, entry.beat):
                    raise _has_them(entry)
            self._clock.sleep(_LOOK_S)
        for service_id in beats:
            self._store.forget_service(service_id)

    def held_by_others(self) -> set[JobId]:
        """Jobs of services with other homes, whether they live or not."""
        mine = self._entry.home_id
        others = {each.service_id for each in self._store.list_services() if each.home_id != mine}
        return {job_id for job_id, holder in self._store.list_leases().items() if holder in others}

    def _alive(self, now_s: float) -> set[str]:
        """Services that show signs of life; the entries of dead ones are removed, with their leases."""
        alive = {self._entry.service_id}
        entries = self._store.list_services()
        if now_s - self._looked_s > self._dead_after_s / 2:
            # This one could not look for a while, so nothing is known of the others: their time begins again.
            self._seen = {service: (beat, now_s) for service, (beat, _) in self._seen.items()}
        self._looked_s = now_s
        for entry in entries:
            beat, since_s = self._seen.get(entry.service_id, (-1, 0.0))
            if entry.beat != beat:
                self._seen[entry.service_id] = (entry.beat, now_s)
                since_s = now_s
            if entry.service_id == self._entry.service_id:
                continue
            if self._is_predecessor(entry) or now_s - since_s >= max(self._dead_after_s, entry.dead_after_s):
                self._log.warning("service %s on %s (pid %d) is gone", entry.service_id, entry.host, entry.pid)
                self._store.forget_service(entry.service_id)
            else:
                alive.add(entry.service_id)
        self._passing = frozenset(entry.service_id for entry in entries if entry.is_passing) - {self._entry.service_id}
        known = {entry.service_id for entry in entries}
        self._seen = {service: seen for service, seen in self._seen.items() if service in known}
        return alive

    def _is_predecessor(self, entry: ServiceEntry) -> bool:
        """A process has its home for itself: one before it in the same home has died.

        One that was forgotten and says again that it is alive is none: it has a copy of the home, with its id.
        """
        if entry.home_id != self._entry.home_id:
            return False
        if entry.service_id not in self._forgotten:
            self._forgotten.add(entry.service_id)
            return True
        if entry.service_id not in self._twins:
            self._twins.add(entry.service_id)
            self._log.error(
                "service %s on %s (pid %d, home %s) lives and has the id of this home: one is a copy of the other. "
                "End one of them, and remove %s from its home",
                *(entry.service_id, entry.host, entry.pid, entry.home, ID_FILE),
            )
        return False

    def tell_failing(self, error: LadingError) -> None:
        """Say once that rounds fail, until one does not."""
        if not self._is_failing:
            self._log.warning("the leases could not be looked at: %s", error)
        self._is_failing = True

    def _run(self, on_change: Callable[[], None], give_back: GiveBack) -> None:
        while not self._ending.wait(self._dead_after_s / _BEATS):
            try:
                if self.look(give_back):
                    on_change()
            except LadingError as error:
                self.tell_failing(error)
            except Exception:  # noqa: BLE001 - the door of a thread: the rounds go on
                self._log.exception("the leases could not be looked at")


def _home_id(home: Path) -> str:
    """What tells a home from others: made once, and kept in it."""
    place = home / ID_FILE
    try:
        if (found := read_private(place)) is None:
            write_private(place, secrets.token_hex(16))
            found = read_private(place)
        return found or str(home)
    except OSError as error:
        raise home_fault(home, error) from error


def _has_them(entry: ServiceEntry) -> JobStateError:
    msg = f"Jobs of this store are run by a service on {entry.host} (pid {entry.pid}, home {entry.home})"
    todo = "Leave them to it, or end that service and try again. SHOW SERVICES tells which jobs it has."
    return JobStateError(msg, left="Nothing was run.", todo=todo)
