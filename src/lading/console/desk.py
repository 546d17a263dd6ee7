"""One service as its console sees it, and who is visiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from starlette.requests import Request

from lading.console.step_timings import StepMemory
from lading.console.visits import Visits
from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.service.facade import Lading
from lading.service.limits.cancellation import CancelToken
from lading.service.limits.fair_semaphore import FairTurns
from lading.service.security.authentication import Refusal
from lading.service.security.authorization import sees
from lading.service.security.origin import Face, Origin
from lading.service.security.privileges import ROOT, Identity, Rights
from lading.service.security.users import Access
from lading.service.session import Session
from lading.service.views.jobs import JobViews

if TYPE_CHECKING:  # Its libraries are an extra.
    from lading.service.security.oidc import OpenIdConnect

OPEN_USER = "anonymous"
READERS, PROVERS = 8, 8
PROVERS_OF_ONE_PEER = 4
STATEMENTS, STATEMENTS_OF_ONE = 4, 2
MOST_PROBLEMS = 1000

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Scheduler(Protocol):
    """What runs the jobs of this service."""

    @property
    def is_alive(self) -> bool: ...

    def snapshot(self) -> Mapping[JobId, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody at the console, and what they might do at that moment."""

    user: str
    peer: str = ""
    """The address that the browser is at."""
    rights: Rights | None = None
    """None: this service was started without users, and everybody may do everything."""
    has_logged_in: bool = False

    def may_see(self, record: JobRecord) -> bool:
        """Whether a job is there for this visitor, and may be changed. Without LOAD on its target it is not."""
        return sees(self.rights, record)

    def may_see_table(self, database: str, table: str) -> bool:
        """Whether a table is there for this visitor."""
        return self.rights is None or self.rights.see_table(database, table)


def peer_of(request: Request) -> str:
    """The address that a browser is at."""
    return request.client.host if request.client else ""


def _pool(size: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What all pages share."""

    lading: Lading
    sights: JobViews
    memory: StepMemory
    visits: Visits
    access: Access | None = None
    scheduler: Scheduler | None = None
    oidc: OpenIdConnect | None = None
    problems: dict[str, LadingError] = field(default_factory=dict)
    """Why a browser could not sign in, by its id, until its login page says it."""
    _readers: ThreadPoolExecutor = field(default_factory=lambda: _pool(READERS, "lading-console"))
    _provers: ThreadPoolExecutor = field(default_factory=lambda: _pool(PROVERS, "lading-login"))
    """Wrong passwords are answered late; who waits for that keeps no thread from the pages."""
    _askers: ThreadPoolExecutor = field(default_factory=lambda: _pool(STATEMENTS, "lading-console-sql"))
    """Statements of the SQL page: one that takes long keeps no thread from the pages."""
    _asking: FairTurns = field(default_factory=lambda: FairTurns(STATEMENTS, STATEMENTS_OF_ONE))
    _proving: FairTurns = field(default_factory=lambda: FairTurns(PROVERS, PROVERS_OF_ONE_PEER))

    async def ask(self, work: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Answer:
        """Run something that blocks, beside the loop that answers browsers."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, partial(work, *given, **named))

    async def run(self, visitor: Visitor, stop: CancelToken, work: Callable[[], Answer]) -> Answer:
        """Run statements of a visitor, in their turn, until `stop` is set."""
        loop = asyncio.get_running_loop()
        return await self._asking.run(visitor.user, lambda: loop.run_in_executor(self._askers, partial(stop.run, work)))

    async def prove(self, user: str, password: str, peer: str) -> Identity:
        """Who this is. Raises AuthError, late."""
        if self.access is None:
            return ROOT
        # A wait for a wrong password holds no thread meanwhile: nobody else waits with them.
        await asyncio.sleep(await self.ask(self.access.reserve, user, peer, face=Face.CONSOLE))
        look = partial(self.access.prove, user, password, peer=peer)
        loop = asyncio.get_running_loop()
        proven = await self._proving.run(peer, lambda: loop.run_in_executor(self._provers, look))
        settled = await self.ask(
            self.access.settle, user, peer, proven, used_password=bool(password), face=Face.CONSOLE
        )
        if isinstance(settled, Refusal):
            await asyncio.sleep(settled.delay_s)
            raise settled.error
        return settled

    async def ask_provider(self, work: Callable[[], Answer]) -> Answer:
        """Run something that waits for the identity provider. It keeps no thread from the pages."""
        return await asyncio.get_running_loop().run_in_executor(self._provers, work)

    def note_problem(self, visit_id: str, error: LadingError) -> None:
        """Keep why a browser could not sign in. Of very many, the oldest are forgotten."""
        while len(self.problems) >= MOST_PROBLEMS:
            del self.problems[next(iter(self.problems))]
        self.problems[visit_id] = error

    def visitor(self, request: Request) -> Visitor | None:
        """The visitor; None: they have to log in. Read again each time, so that a REVOKE, a DROP USER and a new
        password count at once. Blocks.
        """
        if self.access is None:
            return Visitor(user=OPEN_USER, peer=peer_of(request))
        origin = Origin(face=Face.CONSOLE, peer=peer_of(request))
        identity = self.visits.find(request.session.get("id", ""))
        if identity is not None:
            if self.access.is_current(identity):
                return Visitor(
                    user=identity.user, rights=self.access.rights(replace(identity, origin=origin)), has_logged_in=True
                )
            self.visits.end(request.session.get("id", ""))
            return None
        return None

    def session(self, visitor: Visitor, database: str = "default") -> Session:
        """Statements of a visitor run as that visitor."""
        if visitor.rights is None:
            origin = Origin(face=Face.CONSOLE, peer=visitor.peer)
            return self.lading.session(visitor.user, database or "default", is_trusted=True, origin=origin)
        return self.lading.session_of(visitor.rights.identity, database or "default")

    def close(self) -> None:
        """Let go of the threads."""
        for pool in (self._readers, self._provers, self._askers):
            pool.shutdown(wait=False, cancel_futures=True)
