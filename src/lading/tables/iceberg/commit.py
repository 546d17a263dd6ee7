"""Step 5 for Iceberg: compare the head, append, and try again only after another look at the head."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    OAuthError,
    UnauthorizedError,
)
from pyiceberg.table import Table

from lading.errors import LadingError
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.tables.iceberg.append import PreparedCommit, prepare_append
from lading.tables.iceberg.errors import is_before_commit, is_locked, said_by, translated
from lading.tables.iceberg.handle import Handle, version_of
from lading.tables.iceberg.heads import Anchor, find_anchor, rolled_back
from lading.tables.iceberg.moved import Place, check_not_moved
from lading.tables.staged_files import check_present

MAX_ATTEMPTS = 100
_REFUSALS = (BadRequestError, ForbiddenError, UnauthorizedError, OAuthError, NoSuchTableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Certain for this attempt: it did not land, because somebody else's commit did. The next one may."""

    why: str


def commit_append(
    handle: Handle, place: Place, expected: Head | None, staged: Sequence[StagedFile], bill: Bill
) -> Outcome:
    """Add files and move the head from exactly `expected` to the bill's, both or neither.

    Every attempt loads the table, compares the head, and sends one commit that requires the current snapshot to be
    still the one that was loaded. A refusal because of an unrelated writer is certain for that attempt, and the next
    one looks at the head again first.
    """
    lost: PreparedCommit | None = None
    why = ""
    for number in range(MAX_ATTEMPTS):
        if lost is not None:
            handle.clock.sleep(wait_s(number))
        try:
            table = handle.load()
        except LadingError as error:
            if lost is None:
                raise
            return Unknown(why=f"{why}; and the table could not be loaded again: {error}")
        if lost is not None and not lost.has_landed(table):
            # The catalog refused this attempt and the table does not have its snapshot: its manifests are nobody's.
            lost.delete_files()
        verdict = judge(handle, table, expected, bill)
        if verdict is not None:
            return verdict
        check_not_moved(table, place, handle.what)
        with translated(handle.what):
            if lost is None:
                check_present(place.storage, staged)
            prepared = prepare_append(table, place.location, staged, bill)
        answer = send(table, prepared)
        if not isinstance(answer, Conflict):
            return answer
        lost, why = prepared, answer.why
    return last_look(handle, bill, lost, why)


def judge(handle: Handle, table: Table, expected: Head | None, bill: Bill) -> Outcome | None:
    """What the loaded table says about this commit; None when it may be tried."""
    anchor = find_anchor(table.metadata, bill.job_id)
    head = anchor.head if anchor else None
    if anchor is not None and anchor.head == bill.head:
        return Landed(version=anchor.sequence_number)
    if head != expected:
        # Also when the commit did land in an earlier attempt and others went on since: `find` tells that.
        return NotLanded(why=f"the head is {head and head.bill_name}, not {expected and expected.bill_name}")
    if anchor is not None and not _stands(handle, table, anchor, bill):
        raise rolled_back(bill.job_id, anchor, handle.identifier)
    return None


def _stands(handle: Handle, table: Table, anchor: Anchor, bill: Bill) -> bool:
    """Whether the table's rows go with its head, or are the ones an operator saw when accepting a rollback."""
    if bill.accepts_rollback:
        return version_of(table.metadata) == bill.table_version
    return not handle.is_astray(table, anchor)


def send(table: Table, prepared: PreparedCommit) -> Outcome | Conflict:
    """One commit, one answer."""
    try:
        # Dies in here: the catalog has the commit, files and head, or has nothing of it. The manifests, and for
        # catalogs without a server a metadata file, may be left without a name; they harm nobody.
        # Not `Transaction.commit_transaction`: it retries without comparing heads, and deletes manifests before
        # anybody has looked whether an attempt had landed after all.
        table._do_commit(updates=prepared.updates, requirements=prepared.requirements)  # noqa: SLF001
    except CommitFailedException as error:
        return Conflict(why=f"another writer was faster: {error}")
    except (*_REFUSALS, ValueError) as error:
        if any(number in str(error).lower() for number in ("sequence number", "row id", "row-id")):
            # A commit to another branch took the numbers; `main` is where it was, so the requirement held.
            return Conflict(why=f"another branch's writer was faster: {error}")
        if isinstance(error, ValueError):
            return _unknown(error)
        # An answer of the catalog itself, and it would be the same again: not for another attempt.
        return NotLanded(why=f"the catalog refused it: {type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - once it is sent, whatever goes wrong leaves the outcome open
        if is_locked(error):
            return Conflict(why=f"the catalog's database was locked by another writer: {error}")
        if is_before_commit(error):
            return NotLanded(why=f"the catalog's database refused it: {said_by(error)}")
        return _unknown(error)
    return Landed(version=prepared.sequence_number)


def _unknown(error: Exception) -> Unknown:
    return Unknown(why=f"the commit was sent and its answer was lost: {type(error).__name__}: {error}")


def last_look(handle: Handle, bill: Bill, lost: PreparedCommit | None, why: str) -> Outcome:
    """All attempts are used up; the last one may still have landed without saying so."""
    try:
        table = handle.load()
    except LadingError as error:
        return Unknown(why=f"{why}; and the table could not be loaded again: {error}")
    anchor = find_anchor(table.metadata, bill.job_id)
    if anchor is not None and anchor.head == bill.head:
        return Landed(version=anchor.sequence_number)
    if lost is not None and not lost.has_landed(table):
        lost.delete_files()
    return NotLanded(why=f"{MAX_ATTEMPTS} attempts were refused; the last one: {why}")


def wait_s(number: int) -> float:
    """A short wait with jitter that grows up to a quarter of a second."""
    longest_ms = min(250, 2 * 2 ** min(number, 10))
    return (1 + secrets.randbelow(longest_ms)) / 1000
