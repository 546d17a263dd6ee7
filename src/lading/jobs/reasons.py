"""Why a job stands still: codes, their text, and what an error means for the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lading.errors import (
    CUT_METADATA,
    FILE_UNREADABLE,
    WORKER_LOST,
    BudgetError,
    JobChangedError,
    LadingError,
    ListingError,
    SchemaMismatchError,
    SourceError,
    StageError,
    StorageError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from lading.model.batch import RecordPlace


class ReasonCode(Enum):
    """The codes of Doris, with its numbers."""

    INTERNAL_ERR = 2
    PARTITIONS_ERR = 4
    DB_ERR = 5
    TABLE_ERR = 6
    META_NOT_FOUND_ERR = 7
    MANUAL_PAUSE_ERR = 100
    MANUAL_STOP_ERR = 101
    TOO_MANY_FAILURE_ROWS_ERR = 102
    CREATE_TASKS_ERR = 103
    TASKS_ABORT_ERR = 104
    CANNOT_RESUME_ERR = 105
    GET_REMOTE_DATA_ERROR = 202


NEEDS_A_PERSON = frozenset(
    {ReasonCode.MANUAL_PAUSE_ERR, ReasonCode.TOO_MANY_FAILURE_ROWS_ERR, ReasonCode.CANNOT_RESUME_ERR}
)
"""A job that was paused for one of these is never resumed without a person."""

RECOVERED = "Recovered from "
"""How the reason of a pause begins that no user asked for: the store was made again from the tables."""

_BAD_ROWS = (
    "Insert has filtered data in strict mode",
    "too many filtered",
    "Encountered unqualified data",
    "parse number fail",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a job was paused or cancelled."""

    code: ReasonCode
    message: str

    @property
    def needs_attention(self) -> bool:
        return self.code in NEEDS_A_PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong with a batch, as far as the job has to know."""

    reason: Reason
    retry: bool = True
    """Whether trying the same again, without a person, can help."""
    while_staging: bool = False
    """It died while rows were read and written: a smaller batch may live."""
    is_worker_lost: bool = False
    """It ended the process that read and wrote them."""
    found: RecordPlace | None = None
    """Where in what it read the row stands that ended it, when that was looked for and found."""
    is_unreadable: bool = False
    """A file of it cannot be read, for what is in it."""
    is_unsure: bool = False
    """What the incarnation believes of the table may not be so: only a new start can tell what the table has, and
    writes for the table as it is."""


def render_reason(reason: Reason | None) -> str:
    """The form of SHOW ROUTINE LOAD; empty when there is nothing to say."""
    if reason is None:
        return ""
    return f"ErrorReason{{code=errCode = {reason.code.value}, msg='{reason.message}'}}"


def failure_of(error: Exception, hide: Callable[[str], str] = str) -> Failure:
    """What an error means for the job it happened to. An error that is not Lading's own may pass by itself.

    `hide` takes the secrets out of its text: a record is shown to everybody who may see the job.
    """
    message = hide(str(error)) or type(error).__name__
    return Failure(
        reason=Reason(code=_code_of(error, message), message=message),
        retry=_can_pass(error),
        while_staging=isinstance(error, StageError) or not isinstance(error, LadingError),
        is_worker_lost=isinstance(error, StageError) and error.code == WORKER_LOST,
        found=error.facts.get("found") if isinstance(error, StageError) else None,
        is_unreadable=isinstance(error, SourceError) and error.code == FILE_UNREADABLE,
        # Errors of others are among it: nothing that is known in memory is believed then. After one of the store a
        # commit may have landed that the record does not know: opening the job again tells it.
        is_unsure=isinstance(error, UnknownOutcomeError | SchemaMismatchError | StoreError)
        or not isinstance(error, LadingError),
    )


def _can_pass(error: Exception) -> bool:
    return error.retry or error.code == CUT_METADATA if isinstance(error, LadingError) else True


def _code_of(error: Exception, message: str) -> ReasonCode:
    match error:
        case BudgetError():
            return ReasonCode.TOO_MANY_FAILURE_ROWS_ERR
        case TableNotFoundError():
            return ReasonCode.TABLE_ERR
        case ListingError():
            return ReasonCode.GET_REMOTE_DATA_ERROR
        case StorageError() | StoreError() | JobChangedError():
            return ReasonCode.INTERNAL_ERR
    if any(fragment in message for fragment in _BAD_ROWS):
        return ReasonCode.TOO_MANY_FAILURE_ROWS_ERR
    if not _can_pass(error):
        return ReasonCode.CANNOT_RESUME_ERR
    return ReasonCode.TASKS_ABORT_ERR if isinstance(error, SourceError) else ReasonCode.INTERNAL_ERR
