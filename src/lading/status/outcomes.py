"""How a batch can end."""

from __future__ import annotations

from typing import Literal

from lading.errors import CommitRefusedError, FencedError, UnknownOutcomeError

Outcome = Literal["committed", "empty", "failed", "cancelled", "refused", "unknown", "fenced"]
"""`refused`: the commit did certainly not land. `unknown`: nobody can say yet."""


def outcome_of(error: BaseException) -> Outcome:
    """How a batch ended that ended with this error."""
    match error:
        case FencedError():
            return "fenced"
        case UnknownOutcomeError():
            return "unknown"
        case CommitRefusedError():
            return "refused"
    return "failed"
