"""Whether an Iceberg table is Lading's own: a table has one catalog, and its owner cleans up what it does not know."""

from __future__ import annotations

from lading.errors import ConfigError
from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER

_METADATA = "metadata/"
_SUFFIX = ".metadata.json"
_HINT = f"{_METADATA}version-hint.text"
_MARK = b'"lading.head.'
_LOOKED_AT = 5


def check_own_table(storage: ObjectStore) -> None:
    """Refuse a table that no job of Lading ever committed to, and one that another catalog keeps by its folder.

    Taken into Lading's catalog it would have two owners. Each would write its own newest state, and the clean-up of
    the other one deletes files that it does not name.
    """
    if storage.get(_HINT) is not None:
        raise _owned(storage, f"{_HINT} says that a Hadoop catalog keeps it")
    if next(iter(storage.keys(f"{FOLDER}/")), None) is not None:
        return
    states = sorted(key for key in storage.keys(_METADATA) if key.endswith(_SUFFIX))
    if not any(_MARK in (storage.get(key) or b"") for key in states[-_LOOKED_AT:]):
        raise _owned(storage, "no job of Lading ever committed to it")


def _owned(storage: ObjectStore, why: str) -> ConfigError:
    msg = f"The Iceberg table at {storage.uri} belongs to another catalog: {why}"
    todo = (
        "Load into a table of Lading: CREATE TABLE makes one, and the other engine can read it by its metadata file. "
        "Two catalogs of one table delete each other's files."
    )
    return ConfigError(msg, left="Nothing was changed.", todo=todo)
