"""DROP TABLE … PURGE: the files of a Delta table, and none that it does not know."""

from __future__ import annotations

import re

from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER
from lading.tables.delta.actions import LOG
from lading.tables.delta.kept import kept_files
from lading.tables.orphans import roots_of_others

_VECTOR = re.compile(r"([^/]{2,}/)?deletion_vector_[0-9a-f-]{36}\.bin")
_CHANGES = "_change_data"


def purge_table(storage: ObjectStore) -> None:
    """Delete all that the log names, and what engines keep beside it; then bills; the log last.

    Files that nobody committed stay: who knows whose they are. Dies in here: the log still names what is left, and the
    statement may be run again. Raises TableError when the log cannot be read as a whole.
    """
    named = {key for key in kept_files(storage) if "://" not in key}  # A clone names files of another table.
    there = list(storage.keys(""))
    others = tuple(roots_of_others(there))
    own = [key for key in there if key in named or _VECTOR.fullmatch(key) or key.startswith(f"{_CHANGES}/")]
    # What lies in the folder of another table is its own, whatever this log says.
    storage.delete([key for key in own if not key.startswith(others)])
    storage.delete(list(storage.keys(f"{FOLDER}/")))
    # The newest entry last: without the older ones the table cannot be read, and a part of it is no table.
    log = list(storage.keys(f"{LOG}/"))
    storage.delete([key for key in log if not key.endswith(".json")])
    storage.delete([key for key in log if key.endswith(".json")])
