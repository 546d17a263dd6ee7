"""Names of things that must never be confused or reused."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import NewType

JobId = NewType("JobId", str)
"""UUID of a job. Never reused, also not after DROP."""

Incarnation = NewType("Incarnation", str)
"""One run of a service process."""

Token = NewType("Token", int)
"""63-bit random number that tells one commit from another with the same seq."""

TOKEN_BITS = 63
_ERRORS = "-errors"

NewToken = Callable[[], Token]


def new_job_id() -> JobId:
    """Make an id for a new job."""
    return JobId(str(uuid.uuid4()))


def errors_id(job_id: JobId) -> JobId:
    """As whom the bad rows of a job are committed to its errors table, where it has a head and bills of its own."""
    return JobId(job_id + _ERRORS)


def is_errors_id(job_id: JobId) -> bool:
    """Whether this is no job: the bad rows of one."""
    return job_id.endswith(_ERRORS)


def new_incarnation() -> Incarnation:
    """Make an id for this run of the process."""
    return Incarnation(uuid.uuid4().hex)


def new_token() -> Token:
    """Make a token. Zero is left out so that it can never be taken for `absent`."""
    return Token(secrets.randbelow(2**TOKEN_BITS - 1) + 1)
