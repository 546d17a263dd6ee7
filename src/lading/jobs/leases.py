"""Which service runs which job, when several share one store.

Leases spare services from working against each other. They keep nothing safe: a service that does not know yet that it
lost a job is stopped by the table, whose head has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from lading.ids import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What a service changes."""

    take: tuple[JobId, ...] = ()
    """In the order in which to try."""
    give: tuple[JobId, ...] = ()


def share(
    me: str, alive: Set[str], leases: Mapping[JobId, str], jobs: Sequence[JobId], passing: Set[str] = frozenset()
) -> Moves:
    """Take jobs that nobody alive has, up to this service's share; give away what is more than that.

    `alive` has `me` in it. Those that are only `passing` keep what they have and get no share. All who see the same
    come to the same shares. Those who look at the same moment begin at different jobs.
    """
    held = Counter(leases.get(job) for job in jobs)
    # Those who have more keep one more, so that nothing moves without need.
    services = sorted(alive - passing, key=lambda service: (-held[service], service))
    place, (least, more) = services.index(me), divmod(len(jobs), len(services))
    quota = least + (place < more)
    mine = [job for job in jobs if leases.get(job) == me]
    free = [job for job in jobs if leases.get(job) not in alive]
    first = place * len(free) // len(services)
    take = (free[first:] + free[:first])[: max(0, quota - len(mine))]
    return Moves(take=tuple(take), give=tuple(mine[quota:]))
