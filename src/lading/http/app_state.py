"""What the paths share, and how they get at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends, Path, Request

from lading.http.callers import Caller
from lading.ids import JobId
from lading.service.facade import Lading
from lading.service.telemetry.metrics import Metrics
from lading.service.views.jobs import JobViews


class Scheduler(Protocol):
    """What runs the jobs of this service."""

    @property
    def is_alive(self) -> bool:
        """Whether it beats."""
        ...

    def snapshot(self) -> Mapping[JobId, Any]:
        """What it is doing, by job."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One service, as its paths see it."""

    lading: Lading
    sights: JobViews
    metrics: Metrics
    scheduler: Scheduler | None = None


def desk_of(request: Request) -> Desk:
    """The desk of the app."""
    desk: Desk = request.app.state.lading_desk
    return desk


def caller_of(request: Request) -> Caller:
    """The caller, authenticated by the middleware."""
    caller: Caller = request.state.caller
    return caller


TheDesk = Annotated[Desk, Depends(desk_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
TheName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=330,
        pattern=r"^[^\x00-\x1f\x7f/]+$",
        description="`name` of a streaming job, `database.name` of a routine load",
    ),
]
