"""Files of Lading beside a table that nothing needs: what attempts left that failed or were killed.

Only files that Lading named are looked at, and only those that are older than a limit: a batch that is being staged, by
this service or by another one, has files that nothing names yet. Were one taken all the same, its commit would be
refused, because a commit looks whether its files are there. What bills and notes of compactions promise is looked at
last, so delete what was found at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from lading.errors import HeadLostError, StorageError, TableError
from lading.ids import JobId, new_token
from lading.model.bill import Head
from lading.storage.errors import DENIED, fault_of
from lading.storage.store import ObjectInfo, ObjectStore, Upload
from lading.tables.base import LakeTable
from lading.tables.bills import FOLDER, StoredBills, bill_key, job_of_bill
from lading.tables.compaction.model import OWN_NAME
from lading.tables.compaction.notes import promised_files
from lading.tables.registry import all_kinds

DATA, BILL, STATE, UPLOAD = "data file", "bill", "state", "unfinished upload"
_log = logging.getLogger("lading.clean")
_MOST_BILLS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file that can go."""

    path: str
    """Relative to the table."""
    what: str
    """For people: data file, bill, state, unfinished upload."""
    size: int = 0
    """In bytes; 0: not known."""
    upload: Upload | None = None
    """No file yet: somebody died while it was sent to a bucket."""


def find_orphans(table: LakeTable, *, older_than: datetime) -> list[Orphan]:
    """What can go. Changes nothing.

    Raises RolledBackError while somebody has to say what a rollback means, and every error of a table that cannot be
    read: what is not known to be unneeded stays.
    """
    heads = {job_id: head for job_id in sorted(table.job_ids()) if (head := table.read_head(job_id)) is not None}
    # The files first: what is committed after that is among what the table keeps.
    listed = list(table.bills.storage.list(""))
    _check_alone(table, listed)
    others = roots_of_others(info.key for info in listed)
    files = [info for info in listed if info.modified < older_than and _is_own_file(info.key, others)]
    found, ended = list[Orphan](), table.ended_jobs()
    for job_id, head in heads.items():
        found += [Orphan(path=path, what=BILL) for path in _unlanded(table.bills, job_id, head, older_than)]
        # A job that was dropped is never started again: nobody reads what it kept.
        newest = None if job_id in ended else head
        state = table.bills.unneeded_state(job_id, newest, older_than)
        found += [Orphan(path=path, what=STATE) for path in state]
    # When nothing else can go either, it is enough to know whether the files are kept.
    asked = None if found else [info.key for info in files]
    kept = table.kept_files(asked) if files else set[str]()
    # Last, and by the heads from before: what is promised or committed meanwhile, by whatever store, has a bill by now.
    promised = _promised(table.bills, heads, older_than) if files else set[str]()
    # By their names, which no two files share: a place can be written in several ways.
    needed = {_name(path) for paths in (kept, promised) for path in paths}
    return [
        *(Orphan(path=info.key, what=DATA, size=info.size) for info in files if _name(info.key) not in needed),
        *found,
        *_unfinished(table, older_than, others),
    ]


def bills_written(storage: ObjectStore) -> dict[JobId, datetime]:
    """The jobs that have bills beside the table, also those of other branches and catalogs; when the newest of each was
    written, by the clock of the storage."""
    written = dict[JobId, datetime]()
    if next(iter(storage.keys(f"{FOLDER}/")), None) is None:
        return written  # There may be no such folder.
    for info in storage.list(f"{FOLDER}/"):
        if (job_id := job_of_bill(info.key)) is not None:
            written[job_id] = max(info.modified, written.get(job_id, info.modified))
    return written


def storage_now(storage: ObjectStore) -> datetime:
    """What time it is where the files are. Dies in here: an empty object stays."""
    key = f"{FOLDER}/now-{new_token():016x}"
    storage.put(key, b"")
    (found,) = storage.list(key)
    storage.delete([key])
    return found.modified


def remove_orphans(table: LakeTable, orphans: Iterable[Orphan]) -> None:
    """Delete them. Dies in here: the rest is found the next time."""
    known = list(orphans)
    table.bills.storage.delete([orphan.path for orphan in known if orphan.upload is None])
    for orphan in known:
        if orphan.upload is not None:
            table.bills.storage.abort(orphan.upload)


def _unfinished(table: LakeTable, older_than: datetime, others: Set[str]) -> Iterator[Orphan]:
    """What was killed while it sent a file in parts. A batch that still sends one fails, and is staged again."""
    try:
        for upload in table.bills.storage.uploads():
            is_own = _is_own_file(upload.key, others) or upload.key.startswith(f"{FOLDER}/")
            if upload.begun < older_than and is_own:
                yield Orphan(path=upload.key, what=UPLOAD, upload=upload)
    except StorageError as error:
        if fault_of(error) != DENIED:
            raise
        # A right that many do not give. Everything else can be cleaned without it.
        _log.warning("unfinished uploads to %s may not be listed, and stay: %s", table.location, error)


def _is_own_file(key: str, others: Set[str]) -> bool:
    """Whether Lading named it, and it is not of a table that lies inside the place of this one."""
    folder, _, name = key.rpartition("/")
    if not OWN_NAME.fullmatch(name) or folder.partition("/")[0] == FOLDER:
        return False
    return not any(f"{folder}/".startswith(root) for root in others)


def _check_alone(table: LakeTable, listed: Iterable[ObjectInfo]) -> None:
    """Refuse a place that has more than one table: files of the other one would look like orphans."""
    folders = {kind.folder for kind in all_kinds()}
    kinds = {folder for info in listed if (folder := info.key.partition("/")[0]) in folders and "/" in info.key}
    if len(kinds) > 1:
        msg = f"At {table.location} are tables of several formats ({', '.join(sorted(kinds))})"
        todo = "Give each a place of its own; until then nothing is removed there."
        raise TableError(msg, left="Nothing was deleted.", todo=todo)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def roots_of_others(keys: Iterable[str]) -> set[str]:
    """The folders, each with its slash, in which there are other tables."""
    return {root for key in keys if (root := _root_of_another(key)) is not None}


def _root_of_another(key: str) -> str | None:
    """`sub/` when the key says that there is a table in the folder `sub`."""
    for marker in (FOLDER, *(kind.folder for kind in all_kinds())):
        root, found, _ = key.partition(f"/{marker}/")
        if found and not root.startswith(FOLDER):
            return f"{root}/"
    return None


def _promised(bills: StoredBills, heads: Mapping[JobId, Head], older_than: datetime) -> set[str]:
    """Files of commits whose outcome may not be known yet: of loads, and of compactions."""
    paths = promised_files(bills.storage, older_than=older_than)
    for job_id in {*heads, *bills_written(bills.storage)}:
        there = bills.heads(job_id)
        # Of a job that another branch of the table has, the head is not known: what can land still has the highest seq.
        landed = heads[job_id].seq if job_id in heads else max((bill.seq for bill in there), default=0) - 1
        for bill in there:
            if bill.seq > landed:
                paths |= {file.path for file in bills.read(job_id, bill).files}
    return paths


def _unlanded(bills: StoredBills, job_id: JobId, head: Head, older_than: datetime) -> Iterator[str]:
    """Bills that the head does not go back to. None of them can land any more: the head they expect is gone.

    Not all bills are read, which may be very many: retention takes the others.
    """
    landed, at = set[Head](), head
    for _ in range(_MOST_BILLS):
        landed.add(at)
        try:
            before = bills.read(job_id, at).replaces
        except HeadLostError:
            break  # Older than the retention.
        if before is None:
            break
        at = before
    lowest = min(each.seq for each in landed)
    for other in bills.heads(job_id):
        is_passed = lowest <= other.seq <= head.seq and other not in landed
        if is_passed and bills.read(job_id, other).billed_at < older_than:
            yield bill_key(job_id, other)
