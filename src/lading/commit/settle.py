"""Steps 5 and 6: commit, and decide what happened only after having looked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lading.commit.protocols import Table
from lading.commit.steps import Steps
from lading.errors import (
    CommitRefusedError,
    FencedError,
    LadingError,
    RolledBackError,
    TableError,
    UnknownOutcomeError,
)
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown

MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a look at the table after an attempt says."""

    ours: bool
    """Our token is part of the table."""
    moved: bool
    """The head went on without us, so that our commit can never land."""
    head: Head | None


def commit_and_settle(
    table: Table,
    expected: Head | None,
    staged: Sequence[StagedFile],
    bill: Bill,
    is_own: Callable[[Head], bool] = lambda head: False,
) -> Steps[None]:
    """Return when the commit has landed; raise when it certainly has not or when that cannot be found out.

    What is true if the process dies in here: the bill file exists. The table either has the commit, or has not, or
    gets it from a request that is still on its way. The next incarnation reads the head and then commits a takeover
    on it: after that the request can no longer land. Staged files that did not become part of the table are orphans.
    """
    was_unknown = False
    for _ in range(MAX_ATTEMPTS):
        yield "commit.before"
        try:
            outcome = table.commit(expected, staged, bill)
        except (TableError, RolledBackError):
            # This attempt was refused before anything was written; unless an earlier one may still land, that is
            # a certain NotLanded.
            if not was_unknown:
                table.discard(staged)
            raise
        yield "commit.after"
        if isinstance(outcome, Landed):
            return
        was_unknown = was_unknown or isinstance(outcome, Unknown)
        try:
            seen = look(table, expected, bill)
        except RolledBackError:
            raise
        except LadingError as error:
            if not was_unknown:
                raise
            # Nobody can tell yet whether it landed. A coordinator that believed it did not would take its own commit
            # for somebody else's at the next look.
            raise unknown(bill, f"{_why(outcome)}; and the table could not be looked at: {error.what}") from error
        yield "settle.before"
        if seen.ours:
            return
        if seen.moved:
            # The head moved without us, so compare-and-set refuses every attempt of ours from now on, also one
            # that is still on its way: this is the certain NotLanded that allows deleting.
            table.discard(staged)
            if seen.head is not None and is_own(seen.head):
                raise planned_on_old(bill, seen.head)
            raise fenced(bill, seen.head)
        if seen.head != expected:
            # Older than what this commit was planned on: a stale answer, or a table that is being put back. It
            # proves nothing, so nothing may be deleted.
            was_unknown = True
            break
        if not may_try_again(outcome):
            break
    raise give_up(table, staged, bill, was_unknown=was_unknown, outcome=outcome)


def look(table: Table, expected: Head | None, bill: Bill) -> Sighting:
    """Ask the table for our token and for the head."""
    head = table.read_head(bill.job_id)
    moved = head is not None and head != expected and (expected is None or head.seq >= expected.seq)
    ours = head == bill.head or (head != expected and table.find(bill.job_id, bill.token))
    return Sighting(ours=ours, moved=moved and not ours, head=head)


def may_try_again(outcome: Outcome) -> bool:
    """After Unknown with the head still standing the same commit may be sent again: same token, same expected head,
    so at most one of all attempts can land. After a certain refusal the reason would only repeat itself."""
    return isinstance(outcome, Unknown)


def give_up(
    table: Table, staged: Sequence[StagedFile], bill: Bill, *, was_unknown: bool, outcome: Outcome
) -> CommitRefusedError | UnknownOutcomeError:
    """The head is unchanged and no attempt is known to have landed."""
    if was_unknown:
        return unknown(bill, _why(outcome))
    table.discard(staged)
    msg = f"The commit of {_named(bill)} was refused: {_why(outcome)}"
    return CommitRefusedError(
        msg,
        left="Its files were removed and the head is unchanged.",
        todo="The batch is planned again.",
        token=bill.token,
    )


def unknown(bill: Bill, why: str) -> UnknownOutcomeError:
    """Whether the commit landed must be found out by the next start."""
    msg = f"It is not known whether the commit of {_named(bill)} landed: {why}"
    return UnknownOutcomeError(
        msg,
        left="Its files are kept and the table was not changed further.",
        todo="The next start of the job reads the table and decides.",
        token=bill.token,
    )


def _named(bill: Bill) -> str:
    return f"seq {bill.seq} of job {bill.job_name} ({bill.job_id})"


def _why(outcome: Outcome) -> str:
    return outcome.why if isinstance(outcome, NotLanded | Unknown) else ""


def planned_on_old(bill: Bill, head: Head) -> CommitRefusedError:
    """This incarnation itself moved the head: its answer or its follow-up was lost, and then came an old answer."""
    msg = f"The commit of {_named(bill)} was planned on an old head; seq {head.seq} is its own"
    left = "Nothing of this batch is in the table."
    return CommitRefusedError(msg, left=left, todo="The batch is planned again.", token=bill.token)


def fenced(bill: Bill, head: Head | None) -> FencedError:
    """Another incarnation has committed for this job."""
    now = f"seq {head.seq}" if head else "no head"
    msg = f"Another incarnation has committed for job {bill.job_name} ({bill.job_id}): the table has {now}"
    return FencedError(
        msg,
        left="Nothing of this incarnation's batch is in the table.",
        todo="Find the other service that runs this job and stop one of the two.",
        job_id=bill.job_id,
    )
