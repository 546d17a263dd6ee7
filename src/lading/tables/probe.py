"""Whether a store keeps the one promise that commits stand on: of two who put an object if absent, one wins.

Asked once per process and store, when a table is made or opened. A store that does not know `If-None-Match` answers
both with success, and one of two commits would be lost without a word.
"""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from lading.errors import StorageError, TableError
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER

_kept: set[tuple[str, str]] = set()
"""Endpoint and bucket of stores that kept the promise."""
_lock = threading.Lock()


def check_put_if_absent(storage: ObjectStore, options: S3Access) -> None:
    """Put a small object twice, and remove it. Raises TableError when both puts were told to have won.

    A local disk is not asked: `link` never replaces a file. Keys that may not write are let through; they commit
    nothing. Dies in here: one object of a few bytes is left under `_lading/probe/`, which nobody reads.
    """
    place = urlsplit(storage.uri)
    store = (options.endpoint, place.netloc)
    with _lock:
        if place.scheme != "s3" or store in _kept:
            return
    is_kept = _is_kept(storage)
    if is_kept is False:
        at = f"{options.endpoint or 'AWS'}, bucket {place.netloc}"
        msg = f"The store of {storage.uri} ({at}) does not keep `If-None-Match: *`: two writers can both win a commit"
        todo = "Use a store that does (AWS S3, MinIO, Ceph, Cloudflare R2), or update this one; see docs/tables.md."
        raise TableError(msg, left="Nothing was changed.", todo=todo)
    if is_kept:
        with _lock:
            _kept.add(store)


def _is_kept(storage: ObjectStore) -> bool | None:
    """None: the store refused to be asked."""
    key = f"{FOLDER}/probe/{secrets.token_hex(16)}"
    try:
        first, second = storage.put_if_absent(key, b"first"), storage.put_if_absent(key, b"second")
        return (first, second, storage.get(key)) == (True, False, b"first")
    except StorageError as error:
        # Some stores refuse the header by name. Any other refusal is met again by the first commit, which says it.
        return False if "NotImplemented" in str(error) else None
    finally:
        with suppress(StorageError):
            storage.delete([key])
