"""What a store says when it did not do what was asked.

All of it is StorageError, with the kind of fault as a fact. What the library or the disk said is the cause. Sources say
the same again in the words of their jobs.
"""

from __future__ import annotations

from lading.errors import StorageError

GONE, CHANGED, MISSING, UNSORTED = "gone", "changed", "missing", "unsorted"
"""The object is not there, or has another content than it was listed with; the folder is not there; a listing came in
another order than that of keys, and the next one is sorted."""
DENIED, ROLE = "denied", "role"
"""The keys are wrong or may not; the role could not be had."""


def store_failed(place: str, why: object, *, fault: str = "", unknown: bool = False, **facts: str) -> StorageError:
    """A place could not be read or written. `unknown`: it may have been written all the same."""
    is_remote = "://" in place
    maybe = "It may or may not have been written." if is_remote else "It may or may not be on the disk."
    check = "endpoint, the credentials and the bucket" if is_remote else "disk, its free space and the permissions"
    return StorageError(
        f"{place} could not be read or written: {why}",
        left=maybe if unknown else "Nothing was written.",
        todo=f"Check the {check}.",
        unknown=unknown,
        fault=fault,
        place=place,
        **facts,
    )


def fault_of(error: StorageError) -> str:
    """The kind of fault; empty when it is none of those above."""
    return str(error.facts.get("fault", ""))


def cause_of(error: StorageError) -> str:
    """What the library or the disk said."""
    cause = error.__cause__
    return str(getattr(cause, "strerror", None) or cause or error.what)
