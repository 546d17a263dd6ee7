"""The thread that ends things while services work: services, their Java, Python workers, executors, the broker."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from random import Random

from lading.clock import SystemClock
from lading.commit.steps import STEP_NAMES
from tests.soak.counts import Counts
from tests.soak.processes import kill
from tests.soak.service import Service
from tests.support.kafka_broker import KafkaBroker
from tests.support.spark_cluster import SparkCluster

PLACES = tuple(name for name in STEP_NAMES if not name.startswith("settle.before"))
START_S, TAKEN_S = 240.0, 20.0
"""So long a service may take to start, and another one to take jobs over that nobody keeps it from."""
COMMITS = 3
"""Of all jobs, between two strikes that cost a start of Spark."""
Holders = Callable[[], Mapping[str, str]]
"""Job → service, as the store says."""


class Killer:
    """Ends one of the services at a time, mostly, so that another one is there."""

    def __init__(
        self,
        services: list[Service],
        rng: Random,
        holders: Holders,
        *,
        lease_s: float,
        cluster: SparkCluster | None = None,
        broker: KafkaBroker | None = None,
    ) -> None:
        self.services, self._rng, self._holders, self._lease_s = services, rng, holders, lease_s
        self._cluster, self._broker = cluster, broker
        self.counts = Counts()
        self.commits = 0
        """That were seen of all jobs so far. Most of what costs a start of Spark waits for some of them."""
        self._struck_at = self._seen = 0
        self._clock, self._ending = SystemClock(), threading.Event()
        self._armed: dict[Service, str] = {}
        self._due_s: dict[Service, float] = {}
        self._began_s: dict[Service, float] = {}
        self._thread = threading.Thread(target=self._run, name="killer")
        self._failures: list[BaseException] = []

    def start(self) -> None:
        for service in self.services:
            self._start(service, failpoints="")
        self._thread.start()

    def close(self) -> None:
        """No more kills. Both services go on, or start for the last time."""
        self._ending.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]
        for service in self.services:
            if service.is_stopped:
                service.go_on()
            if self._armed.get(service) and service.lives:
                service.kill(self._rng)
                self.counts.kill("services at any moment")
            if not service.lives:
                self._start(service, failpoints="")

    def _run(self) -> None:
        try:
            while not self._ending.wait(self._rng.uniform(0.3, 3.0)):
                self._look_after()
                if any(service.is_ready for service in self.services):
                    self._strike()
        except BaseException as error:  # noqa: BLE001 - the end of a thread; it is raised by `close`
            self._failures.append(error)

    def _look_after(self) -> None:
        """Start again what has ended; one that ended by itself, or never becomes ready, is a finding."""
        now_s = self._clock.monotonic_s()
        for service in self.services:
            if service.code is not None and service not in self._due_s:
                is_killed = service.code == -signal.SIGKILL and self._armed.get(service)
                if is_killed:
                    self.counts.kill("services at a step")
                else:
                    told = f"{service.home.name} ended by itself with status {service.code}: see {service.log}"
                    self.counts.blame("STUCK", told)
                self._due_s[service] = now_s
            elif service in self._due_s and now_s >= self._due_s[service]:
                is_armed = self._rng.random() < 0.4
                place = f"{self._rng.choice(PLACES)}=kill:{self._rng.randint(2, 30)}"
                self._start(service, failpoints=place if is_armed else "")
            elif service.lives and not service.is_stopped and service.address is not None:
                self._began_s[service] = now_s
            elif service.lives and now_s - self._began_s.get(service, now_s) > START_S:
                self.counts.blame("STUCK", f"{service.home.name} does not become ready: see {service.log}")
                self._end(service, "services that did not start")

    def _start(self, service: Service, *, failpoints: str) -> None:
        self._armed[service] = failpoints
        self._due_s.pop(service, None)
        self._began_s[service] = self._clock.monotonic_s()
        service.start(failpoints)
        self.counts.done["lives of services"] += 1

    def _end(self, service: Service, what: str) -> None:
        """SIGKILL. It comes back after a while; its code is looked at no more."""
        self._due_s[service] = self._clock.monotonic_s() + self._rng.choice((0.0, 2.0, 10.0))
        service.kill(self._rng)
        self.counts.kill(what)

    def _strike(self) -> None:
        if self.commits == self._seen and self._rng.random() < 0.9:
            return  # A machine that is busy needs a while for a batch.
        self._seen = self.commits
        ready = [service for service in self.services if service.is_ready]
        if not ready:
            return
        service = self._rng.choice(ready)
        has_moved = self.commits >= self._struck_at + COMMITS or self._rng.random() < 0.1
        # Mostly there is another one that is warm.
        may_end = has_moved and (sum(each.is_warm for each in ready) > 1 or self._rng.random() < 0.1)
        strikes: list[tuple[float, Callable[[Service], None]]] = [
            (3, self._kill_worker),
            (2 * has_moved, self._kill_java),
            (5 * may_end, self._kill_service),
            (3 * may_end, self._kill_after_takeover),
            (3 * may_end, self._stop_and_go),
            (1 * may_end, self._abort),
            (2 * (self._cluster is not None), self._kill_executor),
            (0.3 * (has_moved and self._broker is not None), self._kill_broker),
        ]
        strike = self._rng.choices([strike for _, strike in strikes], [weight for weight, _ in strikes])[0]
        if strike not in (self._kill_worker, self._kill_executor):
            self._struck_at = self.commits
        strike(service)

    def _kill_worker(self, service: Service) -> None:
        if service.kill_below(self._rng, is_java=False):
            self.counts.kill("Python workers")

    def _kill_java(self, service: Service) -> None:
        if service.kill_below(self._rng, is_java=True):
            self.counts.kill("Java of Spark")

    def _kill_service(self, service: Service) -> None:
        self._end(service, "services at any moment")

    def _kill_after_takeover(self, service: Service) -> None:
        """And the one that takes its jobs over as well, when it has just done so; or its Java."""
        before = self._holders()
        self._end(service, "services at any moment")
        self._due_s[service] += TAKEN_S  # Else it would take its jobs back itself.
        end_s = self._clock.monotonic_s() + TAKEN_S
        while self._clock.monotonic_s() < end_s and not self._ending.wait(0.1):
            taken = [job for job, holder in self._holders().items() if before.get(job) not in (None, holder)]
            if taken:
                self.counts.done["takeovers that were seen"] += 1
                break
        self._due_s[service] = self._clock.monotonic_s()
        self._look_after()
        for other in self.services:
            if other is not service and other.is_ready:
                self._ending.wait(self._rng.uniform(0, 2))
                if self._rng.random() < 0.5:
                    self._end(other, "services after they took over")
                elif other.kill_below(self._rng, is_java=True):
                    self.counts.kill("Java of Spark after a takeover")

    def _stop_and_go(self, service: Service) -> None:
        """For longer than its lease, so that another one has its jobs when it goes on."""
        if service.stop():
            self._ending.wait(self._lease_s + self._rng.uniform(0.5, 6.0))
            service.go_on()
            self.counts.done["services stopped and overtaken"] += 1
            self._began_s[service] = self._clock.monotonic_s()

    def _abort(self, service: Service) -> None:
        if service.abort():
            self.counts.kill("services by SIGABRT")

    def _kill_executor(self, service: Service) -> None:
        assert self._cluster is not None
        found = self._cluster.executors()
        if found and kill(self._rng.choice(found)):
            self.counts.kill("executors")

    def _kill_broker(self, service: Service) -> None:
        assert self._broker is not None
        self._broker.kill()
        self.counts.kill("brokers")
        self._broker.start()
