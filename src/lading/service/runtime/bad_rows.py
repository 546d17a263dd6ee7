"""The bad rows of a commit, or of a batch that was refused, from the quarantine files that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from lading.errors import StorageError
from lading.ids import JobId
from lading.pipeline.quarantine import read_quarantine, read_quarantine_file, read_quarantine_object
from lading.storage.store import ObjectStore
from lading.tables.bills import quarantine_folder

Row = dict[str, object]


def bad_rows_at(
    places: Sequence[str], job_id: JobId, folder: str, objects: ObjectStore, *, is_strict: bool = False
) -> Iterator[Row]:
    """Bad rows at some places: file, row, reason and raw of each.

    A bill lies beside the table, where others may write; only what this job quarantined is opened: in `folder`, which
    is in the home, and beside the table. `is_strict`: raise StorageError for a file that cannot be read now; else it is
    told in the place of its rows, as one that is gone always is.
    """
    beside = f"{objects.uri}/{quarantine_folder(job_id)}"
    for path in places:
        if _is_inside(path, folder):
            yield from _read(path, is_strict=is_strict)
        elif not _is_inside(path, beside):
            yield {"file": path, "row": 0, "reason": "the quarantine file is not in this home", "raw": ""}
        elif "://" in objects.uri:
            yield from read_quarantine_object(objects, path.removeprefix(f"{objects.uri}/"))
        elif _leads_elsewhere(path, objects, job_id):
            # Who writes beside the table must not have the service read any file of its machine.
            yield {"file": path, "reason": "the quarantine file is a link that leads elsewhere"}
        else:
            # On a disk it is opened by its path: the table may be in a home.
            yield from _read(path, is_strict=is_strict)


def _read(path: str, *, is_strict: bool) -> Iterator[Row]:
    if not is_strict:
        yield from read_quarantine([path])
        return
    try:
        yield from read_quarantine_file(path)
    except OSError as error:
        msg = f"The quarantine file {path} cannot be read: {error.strerror or error}"
        raise StorageError(msg, left="Nothing was changed.", todo="It is tried again.", unknown=False) from error


def _leads_elsewhere(path: str, objects: ObjectStore, job_id: JobId) -> bool:
    return not _is_inside(os.path.realpath(path), f"{os.path.realpath(objects.uri)}/{quarantine_folder(job_id)}")


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/") and ".." not in path.split("/")
