"""`lading.connect`: a home that is opened here, one that a service has, or a service at a URL."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lading.cli.remote import RemoteLading, RemoteVerdict, remote_at
from lading.cli.waiting import names_to_watch, wait_until_rest
from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import JobState
from lading.model.codec import decode
from lading.model.tally import Tally
from lading.service.home import require_home
from lading.service.result import Result
from lading.service.runtime.address_file import find_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lading.service.facade import Lading


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob:
    """How a job of a service is. What it has is called as in `JobRecord`."""

    full_name: str
    state: JobState
    reason: Reason | None
    """Why it is paused or was cancelled."""
    totals: Tally | None
    """What it has loaded in its life."""
    runtime_message: str


class RemoteHome:
    """A home that a running service has. What it answers is what the home itself would."""

    def __init__(self, remote: RemoteLading) -> None:
        self._remote = remote

    def sql(self, text: str) -> list[Result]:
        """Run statements, one after the other; the first that fails ends it.

        An answer of more than 100,000 rows or 32 MB is an error: read such tables with an engine.
        """
        return self._remote.sql(text)

    def run(
        self,
        jobs: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        stop: threading.Event | None = None,
    ) -> dict[str, RemoteJob]:
        """Wait until the service has loaded what is there now, or until each job has stopped; how each is now.

        The service runs its jobs by itself, and goes on afterwards.
        """
        names = names_to_watch(self._remote.jobs(), list(jobs) if jobs else None)
        waited = wait_until_rest(self._remote, names, SystemClock(), timeout, stop or threading.Event())
        return {str(job["name"]): _read(job) for job in waited.jobs}

    def verify(self, job: str) -> RemoteVerdict:
        """Compare a job's bills with its table."""
        return self._remote.verify(job)

    def close(self) -> None:
        """Nothing is kept open. The service goes on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _read(job: dict[str, Any]) -> RemoteJob:
    reason = job["reason"]
    return RemoteJob(
        full_name=job["name"],
        state=JobState(job["state"]),
        reason=Reason(code=ReasonCode[reason["code"]], message=reason["message"]) if reason else None,
        totals=decode(Tally, job["totals"], where=f"job {job['name']}"),
        runtime_message=job["message"],
    )


def connect(
    home: str | Path,
    *,
    token: str = "",
    ca_file: str = "",
    create: bool = False,
    store_url: str | None = None,
    spark: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
    user: str = "",
    allow_private_endpoints: str | None = None,
) -> Lading | RemoteHome:
    """Open a home, or reach the service that has it. `home` may be the URL of a service, with a `token` for it.

    One process at a time can have a home open; when that is a service of this machine, it is asked. A home that is not
    there is made with `create`; without it, that is an error. `ca_file` has the certificate of a service at a URL that
    this machine does not know.

    The rest is for a home that is opened here: `store_url` names a metadata store elsewhere, `spark` has settings of
    the Spark that is started, `session` is one of yours to use instead. `user` is who the audit names.
    `allow_private_endpoints` lists private hosts that jobs may reach.
    """
    own = {"spark": spark, "session": session, "user": user, "allow_private_endpoints": allow_private_endpoints}
    given = [name for name, value in own.items() if value]
    if isinstance(home, str) and "://" in home:
        remote = remote_at(home, token, ca_file=ca_file)
        _refuse([*given, *(["create"] if create else []), *(["store_url"] if store_url else [])], home)
        return RemoteHome(remote)
    if token or ca_file:
        msg = "token and ca_file are for the URL of a service"
        raise ConfigError(msg, left="Nothing was opened.", todo="Write https://host:8030, or leave them out.")
    address = find_address(Path(home)) if Path(home).is_dir() else None
    if address is not None:
        _refuse(given, f"{home} (pid {address.pid})")
        return RemoteHome(RemoteLading(address))
    from lading.service.facade import Lading

    if not create:
        todo = f"Make it with lading.connect({str(home)!r}, create=True) or lading init, or correct the path."
        require_home(Path(home), todo)
    return Lading(
        home,
        store_url=store_url,
        spark=spark,
        session=session,
        user=user,
        allow_private_endpoints=allow_private_endpoints,
    )


def _refuse(given: Sequence[str], which: str) -> None:
    if given:
        msg = f"The service of {which} was started with settings of its own: {', '.join(given)} cannot be given"
        raise ConfigError(msg, left="Nothing was asked.", todo="Leave them out, or give them to lading serve.")
