"""What a coordinator is given."""

from __future__ import annotations

from dataclasses import dataclass

from lading.clock import Clock
from lading.commit.protocols import Bills, Follower, Joins, Listeners, Merger, Planner, Stager, Table
from lading.ids import NewToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorPorts:
    """Everything outside the coordinator that it may touch."""

    table: Table
    bills: Bills
    planner: Planner
    stager: Stager
    merger: Merger | None = None
    """For jobs with state, and those that join."""
    joins: Joins | None = None
    """For jobs that join their rows with tables."""
    clock: Clock
    new_token: NewToken
    followers: tuple[Follower, ...] = ()
    listeners: Listeners | None = None
