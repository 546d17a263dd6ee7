"""Files of Lading beside a table that nothing needs: what attempts left that failed or were killed.

Only files that Lading named are looked at, and only those that are older than a limit: a batch that is being staged, by
this service or by another one, has files that nothing names yet. Were one taken all the same, its commit would be
refused, because a commit looks whether its files are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lading.errors import HeadLostError, TableError
from lading.ids import JobId
from lading.model.bill import Head
from lading.storage.store import ObjectInfo
from lading.tables.base import LakeTable
from lading.tables.bills import FOLDER, StoredBills, bill_key
from lading.tables.compaction.model import OWN_NAME
from lading.tables.registry import all_kinds

DATA, BILL, STATE = "data file", "bill", "state"
_MOST_BILLS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file that can go."""

    path: str
    """Relative to the table."""
    what: str
    """For people: data file, bill, state."""
    size: int = 0
    """In bytes; 0: not known."""


def find_orphans(table: LakeTable, *, older_than: datetime) -> list[Orphan]:
    """What can go. Changes nothing.

    Raises RolledBackError while somebody has to say what a rollback means, and every error of a table that cannot be
    read: what is not known to be unneeded stays.
    """
    heads = {job_id: head for job_id in sorted(table.job_ids()) if (head := table.read_head(job_id)) is not None}
    # The files first: what is committed after that is among what the table keeps.
    files = list(_own_files(table, older_than))
    kept = table.kept_files() if files else set[str]()
    promised = {path for job_id, head in heads.items() for path in _promised(table.bills, job_id, head)}
    # By their names, which no two files share: a place can be written in several ways.
    needed = {_name(path) for paths in (kept, promised) for path in paths}
    found = [Orphan(path=info.key, what=DATA, size=info.size) for info in files if _name(info.key) not in needed]
    ended = table.ended_jobs()
    for job_id, head in heads.items():
        found += [Orphan(path=path, what=BILL) for path in _unlanded(table.bills, job_id, head, older_than)]
        # A job that was dropped is never started again: nobody reads what it kept.
        newest = None if job_id in ended else head
        state = table.bills.unneeded_state(job_id, newest, older_than)
        found += [Orphan(path=path, what=STATE) for path in state]
    return found


def remove_orphans(table: LakeTable, orphans: Iterable[Orphan]) -> None:
    """Delete them. Dies in here: the rest is found the next time."""
    table.bills.storage.delete([orphan.path for orphan in orphans])


def _own_files(table: LakeTable, older_than: datetime) -> Iterator[ObjectInfo]:
    """Old files that Lading named, but for those of tables that lie inside the place of this one."""
    listed = list(table.bills.storage.list(""))
    _check_alone(table, listed)
    others = roots_of_others(info.key for info in listed)
    for info in listed:
        folder, _, name = info.key.rpartition("/")
        if info.modified >= older_than or not OWN_NAME.fullmatch(name):
            continue
        if folder.partition("/")[0] != FOLDER and not any(f"{folder}/".startswith(root) for root in others):
            yield info


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


def _promised(bills: StoredBills, job_id: JobId, head: Head) -> Iterator[str]:
    """Files of commits whose outcome may not be known yet."""
    for newer in bills.heads(job_id):
        if newer.seq > head.seq:
            yield from (file.path for file in bills.read(job_id, newer).files)


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
