"""Which data files a Paimon table may still need: those of every snapshot and tag that it keeps."""

from __future__ import annotations

from collections.abc import Iterator

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.paimon.manifests import Manifests
from lading.tables.paimon.snapshots import SNAPSHOT, Snapshot, SnapshotLine, parse_tagged

_TAGS = "tag/tag-"
_UNREAD = ("branch/", "changelog/")


def kept_files(storage: ObjectStore, line: SnapshotLine, manifests: Manifests) -> set[str]:
    """Every file that a manifest of a kept snapshot names, whether it adds or removes it.

    Raises TableError when the table has branches or a changelog of its own, which Lading does not read.
    """
    if holder := next((name for name in _UNREAD if next(iter(storage.keys(name)), None) is not None), None):
        msg = f"Which files the Paimon table {storage.uri} needs cannot be told: it has files in {holder}"
        raise TableError(msg, left="Nothing was deleted.", todo="Clean it with Paimon (remove_orphan_files).")
    kept, read = set[str](), set[str]()
    for snapshot in _snapshots(storage, line):
        kept |= manifests.named(snapshot, read)
    return kept


def _snapshots(storage: ObjectStore, line: SnapshotLine) -> Iterator[Snapshot]:
    for key in storage.keys(SNAPSHOT):
        number = key.removeprefix(SNAPSHOT)
        # One that somebody expires meanwhile needs nothing any more.
        if number.isdigit() and (snapshot := line.read(int(number))) is not None:
            yield snapshot
    for key in storage.keys(_TAGS):
        if (content := storage.get(key)) is not None:
            yield parse_tagged(content, where=f"{storage.uri}/{key}")
