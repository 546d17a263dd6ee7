"""Notes of compactions beside a table: `<table>/_lading/compactions/<time>-<id>.json`.

They are history, as bills are: other engines may remove them. Without them the table's own history tells that the
files of a bill were rewritten, as long as it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta

from lading.errors import HeadLostError, RecordError
from lading.ids import JobId
from lading.model.codec import decode, encode
from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER, StoredBills
from lading.tables.compaction.model import CompactionNote

PREFIX = f"{FOLDER}/compactions/"
VERSION = 1
_KIND = "compaction"
KEPT = timedelta(days=1)
"""So long a note stays, and keeps the files that it wants to put into the table."""


def note_key(note: CompactionNote) -> str:
    """Sorts by time."""
    return f"{PREFIX}{int(note.at.timestamp() * 1000):015d}-{note.compaction_id}.json"


def put_note(storage: ObjectStore, note: CompactionNote) -> None:
    """Dies after this: a note of a compaction that never was; its files are in no table, and clean-up takes them."""
    body = {"lading": _KIND, "version": VERSION, _KIND: encode(note)}
    storage.put_if_absent(note_key(note), json.dumps(body, separators=(",", ":")).encode())


def drop_note(storage: ObjectStore, note: CompactionNote) -> None:
    """Of a compaction that certainly did not land."""
    storage.delete([note_key(note)])


def read_notes(storage: ObjectStore, *, newest: int | None = None) -> list[CompactionNote]:
    """All notes that are there, oldest first; or only the newest few. Raises RecordError."""
    keys = sorted(key for key in storage.keys(PREFIX) if key.endswith(".json"))
    found = []
    for key in keys if newest is None else keys[-newest:]:
        content = storage.get(key)
        if content is not None:  # Another service may just have pruned it.
            found.append(_parse(content, where=f"{storage.uri}/{key}"))
    return found


def promised_files(storage: ObjectStore, *, older_than: datetime) -> set[str]:
    """Files of compactions that may still be committed. Raises RecordError.

    Clean-up takes what is older than a limit, and files of a compaction a day later than others: who wrote the note may
    have been stopped between its last look at the files and the commit. By the clock of the storage.
    """
    if next(iter(storage.keys(PREFIX)), None) is None:
        return set()  # There may be no such folder.
    young = [info.key for info in storage.list(PREFIX) if info.modified >= older_than - KEPT]
    contents = ((key, storage.get(key)) for key in young if key.endswith(".json"))
    notes = [_parse(content, where=f"{storage.uri}/{key}") for key, content in contents if content is not None]
    return {file.path for note in notes for file in note.added}


def prune_notes(bills: StoredBills, job_ids: Collection[JobId], *, older_than: datetime) -> int:
    """Delete notes that no kept bill needs: a file that was replaced is named by a bill that is older than the note."""
    storage = bills.storage
    keys = sorted(key for key in storage.keys(PREFIX) if key.endswith(".json"))
    old = [key for key in keys if _time_ms(key) < older_than.timestamp() * 1000]
    if not old:
        return 0
    oldest = _oldest_bill(bills, job_ids)
    doomed = [key for key in old if oldest is None or _time_ms(key) < oldest.timestamp() * 1000]
    storage.delete(doomed)
    return len(doomed)


def _oldest_bill(bills: StoredBills, job_ids: Collection[JobId]) -> datetime | None:
    found = []
    for job_id in job_ids:
        heads = bills.heads(job_id)
        try:
            found += [bills.read(job_id, heads[0]).billed_at] if heads else []
        except HeadLostError:
            continue  # Somebody removed it just now.
    return min(found, default=None)


def _time_ms(key: str) -> int:
    text = key.removeprefix(PREFIX).partition("-")[0]
    return int(text) if text.isdigit() else 2**62


def _parse(content: bytes, *, where: str) -> CompactionNote:
    try:
        envelope = json.loads(content)
        version, body = envelope["version"], envelope[_KIND]
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{where} cannot be read: it is no note of a compaction"
        raise RecordError(msg, left="Nothing was changed.", todo="Restore it from a copy, or remove it.") from error
    if version != VERSION:
        msg = f"{where} has form {version}; this Lading reads form {VERSION}"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.")
    note: CompactionNote = decode(CompactionNote, body, where=where)
    return note
