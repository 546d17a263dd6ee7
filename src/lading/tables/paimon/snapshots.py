"""The snapshots of a Paimon table, followed one by one: `snapshot/snapshot-<number>`, each put once.

What is trusted must have been seen: a look also checks that the newest snapshot that was seen is still the same. When
somebody has rolled the table back, or expired it, everything is read again. The files LATEST and EARLIEST are hints of
other engines; a hint that is wrong makes them list the folder. Lading reads none, and writes LATEST to spare them that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lading.errors import StorageError, TableError
from lading.storage.store import ObjectStore

SNAPSHOT = "snapshot/snapshot-"
LATEST = "snapshot/LATEST"
_MOST_LISTINGS = 5
_TEXTS = ("baseManifestList", "deltaManifestList", "commitUser", "commitKind")
_NUMBERS = ("id", "schemaId", "timeMillis", "commitIdentifier")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot file."""

    id: int
    content: bytes = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)

    @property
    def user(self) -> str:
        return str(self.body["commitUser"])

    @property
    def kind(self) -> str:
        return str(self.body["commitKind"])

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(int(self.body["timeMillis"]) / 1000, UTC)

    @property
    def properties(self) -> Mapping[str, str]:
        return self.body.get("properties") or {}

    @property
    def base_list(self) -> tuple[str, int | None]:
        """Name and size of the list of manifests that were there before."""
        return str(self.body["baseManifestList"]), self.body.get("baseManifestListSize")

    @property
    def delta_list(self) -> tuple[str, int | None]:
        """The same of the manifests that this snapshot brought."""
        return str(self.body["deltaManifestList"]), self.body.get("deltaManifestListSize")


def snapshot_key(number: int) -> str:
    """Where a snapshot is kept, relative to the table."""
    return f"{SNAPSHOT}{number}"


def parse_snapshot(content: bytes, *, number: int, where: str) -> Snapshot:
    """Read a snapshot file."""
    try:
        body = json.loads(content)
        if not all(isinstance(body[name], str) for name in _TEXTS):
            raise TypeError(_TEXTS)
        if not all(type(body[name]) is int for name in _NUMBERS) or body["id"] != number:
            raise TypeError(_NUMBERS)
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{where}/{snapshot_key(number)} is not a snapshot of a Paimon table: {error}"
        raise TableError(msg, left="Nothing was changed.", todo="Restore it from a copy of the table.") from error
    return Snapshot(id=number, content=content, body=body)


def parse_tagged(content: bytes, *, where: str) -> Snapshot:
    """Read a tag: a snapshot under another name."""
    try:
        number = int(json.loads(content)["id"])
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{where} is not a tag of a Paimon table: {error}"
        raise TableError(msg, left="Nothing was changed.", todo="Delete the tag.") from error
    return parse_snapshot(content, number=number, where=where)


class SnapshotLine:
    """All snapshots there are, up to the newest."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        self.newest: Snapshot | None = None
        self.earliest = 1
        """The lowest number that was there at the last full look."""
        self.loads = 0
        """How often everything was read again."""
        self._load()

    @property
    def version(self) -> int:
        """The number of the newest snapshot; 0 when there is none."""
        return self.newest.id if self.newest else 0

    def refresh(self) -> list[Snapshot]:
        """Take in what was committed since the last look, lowest first."""
        known = self.loads
        new = list(self._follow())
        if not self._is_unchanged():
            self._load()
            new = []
        return new if self.loads == known else []

    def read(self, number: int) -> Snapshot | None:
        """A snapshot; None when it is not there."""
        content = self._storage.get(snapshot_key(number))
        return None if content is None else parse_snapshot(content, number=number, where=self._storage.uri)

    def back(self, newest: int, *, down_to: int) -> Iterator[Snapshot]:
        """Snapshots from `newest` downwards, as far as they are kept."""
        for number in range(newest, down_to - 1, -1):
            snapshot = self.read(number)
            if snapshot is None:
                return
            yield snapshot

    def advance(self, snapshot: Snapshot) -> None:
        """Take in the snapshot that this process has put."""
        self.newest = snapshot

    def hint(self) -> None:
        """Tell other engines which one is the newest. It is only a hint: that it could not be written harms nobody."""
        with suppress(StorageError):
            self._storage.put(LATEST, str(self.version).encode())

    def _follow(self) -> Iterator[Snapshot]:
        while (found := self.read(self.version + 1)) is not None:
            self.newest = found
            yield found

    def _is_unchanged(self) -> bool:
        if self.newest is None:
            return True
        return self._storage.get(snapshot_key(self.newest.id)) == self.newest.content

    def _load(self) -> None:
        self.loads += 1
        for _ in range(_MOST_LISTINGS):
            names = [key.removeprefix(SNAPSHOT) for key in self._storage.keys(SNAPSHOT)]
            numbers = sorted(int(name) for name in names if name.isdigit())
            self.newest = self.read(numbers[-1]) if numbers else None
            if self.newest is not None or not numbers:
                break  # Else it expired between the two: an empty table is something else.
        else:
            msg = f"The newest snapshot of {self._storage.uri} is removed each time before it is read"
            raise StorageError(msg, left="Nothing was changed.", todo="It is tried again.", unknown=False)
        self.earliest = numbers[0] if numbers else 1
