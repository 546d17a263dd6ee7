"""One façade: everything else is a thin view over it."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lading.clock import Clock
from lading.deferred import deferred
from lading.jobs.pausing import is_stuck
from lading.jobs.record import JobRecord
from lading.net.resolve import Resolver
from lading.service.catalog.lost_home import Opening
from lading.service.installation import Installation
from lading.service.result import Result
from lading.service.runtime.interrupted import BEGUN_PREFIX
from lading.service.security.origin import LOCAL, Origin
from lading.service.security.privileges import ROOT, Identity
from lading.service.session import Session
from lading.service.spark_queries.limits import QueryLimits
from lading.service.statements.quick import execute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lading.service.edits.begun import finish_all
    from lading.service.runtime.draining import Progress, Until, drain
    from lading.service.views.verify import Verdict, verify_job
else:
    finish_all = deferred("lading.service.edits.begun", "finish_all")
    Until = deferred("lading.service.runtime.draining", "Until")
    drain = deferred("lading.service.runtime.draining", "drain")
    verify_job = deferred("lading.service.views.verify", "verify_job")


class Lading(Installation):
    """One installation, opened by one process at a time."""

    def __init__(
        self,
        home: str | Path,
        *,
        store_url: str | None = None,
        spark: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
        clock: Clock | None = None,
        user: str = "",
        allow_private_endpoints: str | None = None,
        resolver: Resolver | None = None,
        opening: Opening = Opening.WORK,
        query_limits: QueryLimits | None = None,
    ) -> None:
        super().__init__(
            home,
            store_url=store_url,
            spark=spark,
            session=session,
            clock=clock,
            allow_private_endpoints=allow_private_endpoints,
            resolver=resolver,
            opening=opening,
            query_limits=query_limits,
        )
        self._own = Session(self, execute, user=user or getpass.getuser())
        if any(name.startswith(BEGUN_PREFIX) for name in self.store.list_settings()):
            finish_all(self)

    def sql(self, text: str) -> list[Result]:
        """Run statements, one after the other; the first that fails ends it."""
        return self._own.sql(text)

    def session(
        self, user: str, database: str = "default", *, is_trusted: bool = False, origin: Origin = LOCAL
    ) -> Session:
        """A connection of somebody whose name was proven, with its own current database.

        A trusted one may do everything: the service was started without users.
        """
        identity = ROOT if is_trusted else self.access.identity_for(user)
        return Session(self, execute, user=user, database=database, identity=replace(identity, origin=origin))

    def session_of(self, identity: Identity, database: str = "default") -> Session:
        """A connection of somebody who was proven. It ends with their account, and with the password they used."""
        return Session(self, execute, user=identity.user, database=database, identity=identity)

    def run(
        self,
        jobs: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        stop: threading.Event | None = None,
    ) -> dict[str, JobRecord]:
        """Run jobs until all that is there now is loaded, or until each has stopped; by name, how each is now.

        What comes into a stream after this began is not waited for. Once `stop` is set, each job ends after its batch.
        """
        chosen = [self.any_job(name) for name in jobs] if jobs else self.live_jobs()
        with self.leases.held(record.job_id for record in chosen) as is_lent:
            ended = self._drain_all(chosen, timeout, on_progress, stop)
            if is_lent:
                for record in chosen:
                    self.give_back(record.job_id)
        return {str(record.full_name): record for record in ended}

    def stuck_jobs(self) -> list[JobRecord]:
        """Jobs that an error has paused until a person does something."""
        return [stored.record for stored in self.store.list_jobs() if is_stuck(stored.record)]

    def _drain_all(
        self,
        chosen: Sequence[JobRecord],
        timeout: float | None,
        on_progress: Progress | None,
        stop: threading.Event | None,
    ) -> list[JobRecord]:
        deadline = None if timeout is None else self.clock.monotonic_s() + timeout
        with ThreadPoolExecutor(max_workers=max(1, min(16, len(chosen)))) as pool:
            until = Until(clock=self.clock, deadline_s=deadline, stop=stop or threading.Event())
            futures = [pool.submit(drain, self.runner(record.job_id), until, on_progress) for record in chosen]
            return [future.result() for future in futures]

    def get_ready(self) -> None:
        """Have ready what batches need, before somebody waits for it: Spark only where something needs it."""
        self.engine.get_ready()

    def verify(self, job: str) -> Verdict:
        """Compare a job's bills with its table."""
        record = self.any_job(job, include_final=True)
        return verify_job(record, self.open_target(record))
