"""The head of a job in a Delta table: two application transactions, and whether the content still ends with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lading.commit.rollback import ADVICE
from lading.errors import HeadLostError, RecordError, RolledBackError, StorageError
from lading.ids import JobId, Token
from lading.model.bill import Bill, Head
from lading.tables.delta.actions import Restore, seq_app, token_app
from lading.tables.delta.log import LogTail


def head_of(tail: LogTail, job_id: JobId) -> Head | None:
    """The head at the version the tail stands at."""
    seq, token = tail.txn(seq_app(job_id)), tail.txn(token_app(job_id))
    if seq is None and token is None:
        return None
    if seq is None or token is None:
        msg = f"The head of job {job_id} is torn: the table has its {'token' if seq is None else 'seq'} alone"
        raise RecordError(
            msg,
            left="Nothing was changed.",
            todo="Somebody wrote or removed an application transaction of Lading; restore the table's log.",
            job_id=job_id,
        )
    return Head(seq=seq.value, token=Token(token.value))


def check_not_restored(tail: LogTail, job_id: JobId, head: Head) -> None:
    """Refuse a head whose rows somebody took away by restoring an older version.

    RESTORE brings the files of an older version back and leaves application transactions alone, so the head stands
    while its rows are gone. Not seen is a RESTORE whose own log entry was already removed by log cleanup when the
    table was opened: nothing in the table tells of it any more.
    """
    landed_at = _landed_at(tail, job_id)
    if not still_holds(landed_at, tail.version, tail.restores):
        raise _rolled_back(job_id, head, f"To restore it, use version {landed_at} or later.")


def check_not_expired(bills: Sequence[Head], job_id: JobId, retention: str) -> None:
    """A table without a head, though the job has committed to it: application transactions expire in it.

    Lading's own do not, when they were made while the table had the property.
    """
    newest = max(bills, default=None)
    if newest is None or newest.seq == 0:
        return
    msg = (
        f"The table has forgotten the head of job {job_id}: delta.setTransactionRetentionDuration is {retention!r}, "
        "and was set after its last commit"
    )
    raise RolledBackError(msg, left="Nothing was read or written.", todo=ADVICE, job_id=job_id, seq=newest.seq)


def check_accepted(tail: LogTail, bill: Bill, head: Head) -> None:
    """An operator accepted the table as it was at the bill's version: refuse when somebody put it back since."""
    seen = -1 if bill.table_version is None else bill.table_version
    for version, entry in tail.entries_back(tail.loaded_version, limit=tail.loaded_version - seen):
        if entry.restore:
            tail.restores[version] = entry.restore
    if any(version > seen for version in tail.restores):
        raise _rolled_back(bill.job_id, head, "It was rolled back once more since it was looked at.")


def end_of(tail: LogTail, job_id: JobId) -> Head | None:
    """The newest commit of a job whose rows the table has: behind a RESTORE the way goes on at the version it names."""
    seq, token, version = seq_app(job_id), token_app(job_id), tail.version
    entries = tail.entries_back(version, limit=version + 1)
    while (found := next(entries, None)) is not None:
        at, entry = found
        if token in entry.txns and seq in entry.txns:
            return Head(seq=entry.txns[seq], token=Token(entry.txns[token]))
        if entry.restore and entry.restore.to is None:
            raise _untold(job_id)
        version = entry.restore.to if entry.restore and entry.restore.to is not None else at - 1
        if entry.restore:
            entries = tail.entries_back(version, limit=version + 1)
    if version < 0:
        return None
    # Log cleanup took the older entries. What they brought is in the checkpoint that the oldest one left stands on.
    try:
        values = tail.txns_at(version + 1, (seq, token))
    except StorageError as error:
        raise _untold(job_id) from error
    if values is None:
        return None
    return Head(seq=values[0], token=Token(values[1]))


def still_holds(landed_at: int, version: int, restores: Mapping[int, Restore]) -> bool:
    """Whether the content of `version` goes back to a version at or after `landed_at`.

    The content of a restored version is that of the version it names, which may itself be a restored one.
    """
    while version >= landed_at:
        newest = max((at for at in restores if landed_at < at <= version), default=None)
        if newest is None:
            return True
        target = restores[newest].to
        if target is None:
            return False
        version = target
    return False


def _landed_at(tail: LogTail, job_id: JobId) -> int:
    app_id = token_app(job_id)
    known = tail.txn(app_id)
    if known is None or known.at is not None:
        return known.at if known is not None and known.at is not None else tail.version
    oldest = tail.loaded_version + 1
    for version, entry in tail.entries_back(tail.loaded_version, limit=tail.loaded_version + 1):
        oldest = version
        if entry.txns.get(app_id) == known.value:
            break
        if entry.restore:
            tail.restores[version] = entry.restore
    else:
        # The entry is gone: the commit landed before the oldest entry that is kept.
        oldest -= 1
    tail.locate(app_id, oldest)
    return oldest


def _untold(job_id: JobId) -> HeadLostError:
    msg = f"The log of the table no longer tells which commit of job {job_id} it was rolled back to"
    return HeadLostError(msg, left="Nothing was changed.", todo="Keep the position, and move it with ALTER if need be.")


def _rolled_back(job_id: JobId, head: Head, more: str) -> RolledBackError:
    msg = f"The table was rolled back: a RESTORE took away the rows of seq {head.seq} of job {job_id}"
    return RolledBackError(
        msg,
        left="Nothing was read or written.",
        todo=f"{ADVICE} {more}",
        job_id=job_id,
        seq=head.seq,
    )
