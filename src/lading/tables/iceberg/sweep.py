"""Deleting the manifest lists and manifests that only expired snapshots of Lading named.

A manifest that no snapshot names any more can be reached by nobody: a commit that is on its way builds on a snapshot
that is still there. Manifests that no expired snapshot of Lading named are left to their writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lading.storage.store import ObjectStore
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.place import relative_path

MAX_LISTS = 2000
"""More manifest lists than this are not read in one round; then manifests stay as orphans."""


class Sweeper:
    """Remembers which manifests a manifest list names: lists never change, so each is read once."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        self._named: dict[str, frozenset[str]] = {}
        """Manifest list → manifests."""

    def sweep(self, table: Table, gone: Sequence[Snapshot]) -> None:
        """Delete what only these expired snapshots named. Dies in here: some of it is left, as orphans."""
        left = {snapshot.manifest_list for snapshot in table.metadata.snapshots}
        doomed = {snapshot.manifest_list for snapshot in gone} - left
        if self._learn(table, gone) and self._learn(table, table.metadata.snapshots):
            once = {path for manifest_list in doomed for path in self._named[manifest_list]}
            doomed |= once - {path for manifest_list in left for path in self._named[manifest_list]}
        self._delete(table, sorted(doomed))
        self._named = {path: named for path, named in self._named.items() if path in left}

    def _learn(self, table: Table, snapshots: Sequence[Snapshot]) -> bool:
        """Read the manifest lists of these snapshots. False: there are too many."""
        unread = [snapshot for snapshot in snapshots if snapshot.manifest_list not in self._named]
        if len(unread) > MAX_LISTS:
            return False
        with translated(f"table {'.'.join(table.name())}"):
            for snapshot in unread:
                manifests = snapshot.manifests(table.io)
                self._named[snapshot.manifest_list] = frozenset(manifest.manifest_path for manifest in manifests)
        return True

    def _delete(self, table: Table, paths: Iterable[str]) -> None:
        location = table.metadata.location
        keys = {path: relative_path(location, path) for path in paths}
        self._storage.delete([key for path, key in keys.items() if key != path])
        with translated(f"table {'.'.join(table.name())}"):
            for path, key in keys.items():
                if key == path:
                    table.io.delete(path)
