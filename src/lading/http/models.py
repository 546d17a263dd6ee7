"""Bodies of requests and answers that are not sights themselves."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lading.service.views.records import (
    AuditView,
    BatchView,
    BillView,
    ErrorRow,
    GapView,
    HappenedView,
    JobView,
)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class JobList(BaseModel):
    """Jobs, oldest first."""

    jobs: list[JobView]
    next_after: str | None = Field(description="Give it as `after` for the next page; null on the last one.")


class BillPage(BaseModel):
    """Commits, newest first."""

    bills: list[BillView]
    next_before: int | None = Field(description="Give it as `before` for the next page; null on the last one.")


class BatchPage(BaseModel):
    """Batches, newest first."""

    batches: list[BatchView]
    next_before: int | None = Field(description="Give it as `before` for the next page; null on the last one.")


class ErrorList(BaseModel):
    """Bad rows: those of a batch that was refused, without a seq, then those of commits, of the newest first."""

    errors: list[ErrorRow]


class GapList(BaseModel):
    """Rows that the source no longer had."""

    gaps: list[GapView]


class AuditList(BaseModel):
    """What people changed, newest first."""

    audit: list[AuditView]


class Timeline(BaseModel):
    """What happened to a job, newest first."""

    events: list[HappenedView]


class Definition(BaseModel):
    """The statement that makes a job."""

    definition: str


class VerdictBody(BaseModel):
    """What comparing the bills of a job with its table found."""

    job: str
    bills: int
    rows: int
    is_clean: bool
    findings: list[str]
    removed: dict[str, int] = Field(description="Rows that others took out on purpose, by what they did.")
    rewritten: dict[str, int] = Field(description="Rows that others wrote into other files, which were not looked at.")
    told: str = Field(description="The verdict in words, when there are no findings.")


def _check_keepable(text: str) -> str:
    """Refuse letters that the names of files and the texts of databases cannot have, also as escapes of JSON."""
    texts = [text]
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # What is no JSON is refused later, in its own words.
            texts += [value for value in json.loads(text).values() if isinstance(value, str)]
    if any("\x00" in found or any("\ud800" <= letter <= "\udfff" for letter in found) for found in texts):
        msg = "It has characters that no name has"
        raise ValueError(msg)
    return text


_Place = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=4096), AfterValidator(_check_keepable)]
"""A partition or a position."""


class PositionRequest(_Body):
    """Move a job to other positions. The job must be PAUSED."""

    positions: Annotated[dict[_Place, _Place | None], Field(min_length=1, max_length=10_000)] = Field(
        description="Next to read, by partition; null gives a partition up.", examples=[{"shard-0": "12345"}]
    )
    reason: Annotated[str, Field(max_length=1000)] = Field(default="", description="Why; it is kept in the audit.")
    dry_run: bool = Field(default=False, description="Only say what would be loaded again or skipped.")
    seen: Annotated[str, Field(max_length=200)] = Field(
        default="", description="`seen` of a dry run: refused with 409 when the job is not as it was shown then."
    )


class RollbackRequest(_Body):
    """Go on after the table was rolled back. The job must be PAUSED."""

    choice: Literal["keep", "again"] = Field(
        description="`keep` goes on behind what was taken away, `again` loads it again."
    )
    reason: Annotated[str, Field(max_length=1000)] = Field(default="", description="Why; it is kept in the audit.")
    seen: Annotated[str, Field(max_length=200)] = Field(
        default="", description="`seen` of a look: refused with 409 when table and job are not as they were then."
    )


class SqlRequest(_Body):
    """Statements to run, one after the other."""

    sql: Annotated[str, Field(min_length=1)] = Field(examples=["SHOW DATABASES"])
    database: Annotated[str, Field(min_length=1, max_length=256)] = "default"
    max_rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
    folder: Annotated[str, Field(pattern=r"^(/[^\x00]*)?$", max_length=4096)] = Field(
        default="", description="Where relative paths of files begin, on the machine of the service."
    )


class SqlResult(BaseModel):
    """What one statement answered."""

    columns: list[str]
    types: list[str] = Field(
        description="What the values of each column are: decimal, datetime, date, time, bytes (base64), integer or "
        "double, which may be texts in JSON; empty for all else."
    )
    rows: list[list[Any]]
    message: str
    is_cut: bool = Field(description="There were more rows than `max_rows`, or than 32 MB.")


class SqlAnswer(BaseModel):
    """What all statements answered."""

    results: list[SqlResult]
    database: str = Field(description="The current database after the last statement.")


class Health(BaseModel):
    """The process is there."""

    status: str
    version: str


class CheckBody(BaseModel):
    """One check of a home."""

    name: str
    state: Literal["ok", "warn", "fail"]
    said: str
    todo: str = Field(description="What to do; empty when there is nothing.")


class Checkup(BaseModel):
    """How a home is."""

    checks: list[CheckBody]


class Readiness(BaseModel):
    """The service can do its work."""

    status: str
    checks: dict[str, str]
