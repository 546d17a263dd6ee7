"""Paths that only read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from lading.errors import LadingError, RequestError
from lading.http.app_state import TheCaller, TheDesk, TheName
from lading.http.errors import ERRORS, describe
from lading.http.json_values import plain
from lading.http.models import (
    AuditList,
    BatchPage,
    BillPage,
    Definition,
    ErrorList,
    GapList,
    JobList,
    Timeline,
)
from lading.service.views.records import ErrorRow, Health, JobDetail, JobView, Series

router = APIRouter(prefix="/api/jobs", tags=["jobs"], responses=ERRORS)

MOST_SEQ = 2**63 - 1
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[
    str | None,
    Query(
        max_length=100,
        pattern=r"^[0-9]{1,18}-[0-9a-zA-Z-]{1,64}$",
        description="`next_after` of the page before: the next one begins behind it, also when that job has ended.",
    ),
]
Before = Annotated[int | None, Query(ge=0, le=MOST_SEQ)]


@router.get("")
def list_jobs(
    desk: TheDesk,
    caller: TheCaller,
    database: Annotated[str | None, Query(max_length=256)] = None,
    kind: Literal["streaming", "routine"] | None = None,
    state: Annotated[str | None, Query(max_length=20)] = None,
    health: Annotated[Health | None, Query(description="How the job is doing.")] = None,
    include_final: bool = False,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> JobList:
    """All jobs that the caller may see, oldest first."""
    found = desk.sights.list_jobs(caller.may_see, include_final=include_final)
    begin = _parse_place(after) if after is not None else None
    chosen = [
        job
        for job in found
        if (begin is None or _place(job) > begin)
        and database in (None, job.database)
        and kind in (None, job.kind)
        and state in (None, job.state)
        and health in (None, job.health.state)
    ]
    return JobList(jobs=chosen[:limit], next_after=_render_place(chosen[limit - 1]) if len(chosen) > limit else None)


@router.get("/{name}")
def one_job(desk: TheDesk, caller: TheCaller, name: TheName) -> JobDetail:
    """A job, with its positions as the head of its table has them."""
    return desk.sights.one_job(name, caller.may_see)


@router.get("/{name}/bills")
def bills(desk: TheDesk, caller: TheCaller, name: TheName, before: Before = None, limit: Limit = 100) -> BillPage:
    """Commits, newest first, in pages."""
    found = desk.sights.bills(name, before_seq=before, limit=limit, may_see=caller.may_see)
    return BillPage(bills=found, next_before=found[-1].seq if len(found) == limit else None)


@router.get("/{name}/bills/{seq}")
def bill(desk: TheDesk, caller: TheCaller, name: TheName, seq: int) -> dict[str, Any]:
    """One bill, whole: positions, ranges, files, gaps."""
    found = desk.sights.bill_or_none(name, seq, caller.may_see) if 0 <= seq < MOST_SEQ else None
    if found is None:
        msg = f"Job {name} has no bill {seq}"
        raise RequestError(msg, code="NoSuchPath", left="Nothing was changed.", todo="See the list of bills.", seq=seq)
    shown: dict[str, Any] = plain(found)
    return shown


@router.get("/{name}/batches")
def batches(desk: TheDesk, caller: TheCaller, name: TheName, before: Before = None, limit: Limit = 100) -> BatchPage:
    """Batches that are remembered, newest first, in pages."""
    found = desk.sights.batches(name, before_id=before, limit=limit, may_see=caller.may_see)
    return BatchPage(batches=found, next_before=found[-1].batch_id if len(found) == limit else None)


@router.get("/{name}/errors")
def errors(desk: TheDesk, caller: TheCaller, name: TheName, limit: Limit = 100) -> ErrorList:
    """Bad rows: those of a batch that was refused, without a seq, then those of commits, of the newest first."""
    found = desk.sights.errors(name, limit=limit, may_see=caller.may_see)
    return ErrorList(errors=found)


@router.get(
    "/{name}/quarantine",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}, "description": "Bad rows"}},
)
def quarantine(
    desk: TheDesk, caller: TheCaller, name: TheName, limit: Annotated[int, Query(ge=1, le=MOST_SEQ)] = 10_000_000
) -> StreamingResponse:
    """All bad rows that are kept, as lines of JSON. The last line is an error when not all could be read."""
    rows = desk.sights.read_errors(name, caller.may_see)
    first = next(rows, None)  # What goes wrong before the first row is still an error of its own.
    lines = _lines(islice(chain([first] if first else [], rows), limit))
    headers = {"content-disposition": 'attachment; filename="quarantine.ndjson"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


@router.get("/{name}/gaps")
def gaps(desk: TheDesk, caller: TheCaller, name: TheName, bills: Limit = 1000) -> GapList:
    """Rows that the source no longer had, as the newest bills tell."""
    return GapList(gaps=desk.sights.gaps(name, bills=bills, may_see=caller.may_see))


@router.get("/{name}/audit")
def audit(desk: TheDesk, caller: TheCaller, name: TheName, limit: Limit = 100) -> AuditList:
    """What people changed, newest first."""
    return AuditList(audit=desk.sights.audit(name, limit=limit, may_see=caller.may_see))


@router.get("/{name}/timeline")
def timeline(
    desk: TheDesk, caller: TheCaller, name: TheName, minutes: Annotated[int, Query(ge=1, le=10_080)] = 60
) -> Timeline:
    """Commits, failures, pauses and changes of the last minutes, newest first."""
    return Timeline(events=desk.sights.timeline(name, minutes=minutes, may_see=caller.may_see))


@router.get("/{name}/definition")
def definition(desk: TheDesk, caller: TheCaller, name: TheName) -> Definition:
    """The statement that makes the job, without its secrets."""
    return Definition(definition=desk.sights.definition(name, caller.may_see))


@router.get("/{name}/series")
def series(
    desk: TheDesk, caller: TheCaller, name: TheName, minutes: Annotated[int, Query(ge=1, le=10_080)] = 60
) -> Series:
    """Points for plots: rows and bytes in a second, time of batches, files, lag."""
    return desk.sights.series(name, minutes=minutes, may_see=caller.may_see)


def _lines(rows: Iterator[ErrorRow]) -> Iterator[bytes]:
    try:
        for row in rows:
            yield json.dumps(asdict(row)).encode() + b"\n"
    except LadingError as error:
        yield json.dumps(describe(error)).encode() + b"\n"


def _place(job: JobView) -> tuple[int, str]:
    """Where a job stands in lists, for ever: microseconds of its creation, then its id."""
    return (job.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), job.job_id


def _render_place(job: JobView) -> str:
    created, job_id = _place(job)
    return f"{created}-{job_id}"


def _parse_place(text: str) -> tuple[int, str]:
    created, _, job_id = text.partition("-")
    return int(created), job_id
