"""Following the log of a Delta table, entry by entry.

Loading a table with delta-rs costs in proportion to its files, also when one entry is new. Here only the first load
does; from then on each look reads the entries that were added since. What is trusted must have been seen: a look also
checks that the entry it stands on is still the same, so that a table that was replaced or put back by copying files
is noticed, and that no checkpoint is ahead, so that entries removed by log cleanup are not taken for "nothing new".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import deltalake

from lading.errors import StorageError
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG, Entry, Metadata, Restore, TableProtocol, entry_key, parse_entry
from lading.tables.delta.domains import read_domains, wanted_domains
from lading.tables.delta.entry import Ground
from lading.tables.delta.library import load_table, metadata_of, protocol_of, translated

_HINT = f"{LOG}/_last_checkpoint"
_UNREADABLE_HINT = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The newest transaction of an application id."""

    value: int
    at: int | None
    """The version that brought it; None when it was loaded and nobody has looked for it yet."""


class LogTail:
    """What is known of a table at `version`, and how to learn more."""

    def __init__(self, storage: ObjectStore, options: S3Access) -> None:
        self._storage = storage
        self._options = options
        self._txns: dict[str, Applied | None] = {}
        self._loaded: deltalake.DeltaTable | None = None
        self._load()

    version: int
    loaded_version: int
    """The version of the last full load: older entries were not read one by one."""
    metadata: Metadata
    protocol: TableProtocol
    restores: dict[int, Restore]
    """Who put the content back, by version, as far as entries were read."""
    in_commit_ms: int | None
    """What the entry of `version` says of its own time, where the table has in-commit timestamps."""
    domains: dict[str, str]
    """Domain metadata that an appender must know."""
    _digest: bytes | None
    """Of the entry of `version`; None when log cleanup took it before it was read."""

    def refresh(self) -> None:
        """Take in everything that was committed since the last look.

        The entry it stands on is looked at first: entries that were put since may stand on another one.
        """
        if self._is_same():
            self._follow()
            if self.checkpoint_version() <= self.version:
                return
        self._load()
        self._follow()

    def txn(self, app_id: str) -> Applied | None:
        """The newest transaction of an application id at `version`."""
        if app_id not in self._txns:
            self._watch(app_id)
        return self._txns[app_id]

    def locate(self, app_id: str, at: int) -> None:
        """Remember which version brought the newest transaction of an application id."""
        known = self._txns[app_id]
        if known is not None:
            self._txns[app_id] = Applied(value=known.value, at=at)

    def advance(self, content: bytes) -> None:
        """Take in the entry after `version`: read from the log, or put there by this process."""
        version = self.version + 1
        entry = parse_entry(content, where=f"{self._storage.uri}/{entry_key(version)}")
        for app_id, value in entry.txns.items():
            self._txns[app_id] = Applied(value=value, at=version)
        self.metadata = entry.metadata or self.metadata
        self.protocol = entry.protocol or self.protocol
        if entry.restore:
            self.restores[version] = entry.restore
        self.version = version
        self._digest = digest(content)
        self._take_in(entry)

    def ground(self) -> Ground:
        """What the next entry is put on."""
        return Ground(
            version=self.version,
            metadata=self.metadata,
            protocol=self.protocol,
            in_commit_ms=self.in_commit_ms,
            domains=self.domains,
        )

    def _take_in(self, entry: Entry) -> None:
        """What features keep in the log."""
        self.in_commit_ms = entry.in_commit_ms
        missing = wanted_domains(self.protocol) - self.domains.keys() - entry.domains.keys() if entry.protocol else ()
        if missing:  # The feature is new, and what it keeps may be older.
            self.domains |= read_domains(self._storage, self.version, missing)
        for name, said in entry.domains.items():
            self.domains.pop(name, None)
            if said is not None:
                self.domains[name] = said

    def entries_back(self, newest: int, *, limit: int) -> Iterator[tuple[int, Entry]]:
        """Entries from `newest` downwards, as far back as the log is kept."""
        for version in range(newest, max(newest - limit, -1), -1):
            content = self._storage.get(entry_key(version))
            if content is None:
                return
            yield version, parse_entry(content, where=f"{self._storage.uri}/{entry_key(version)}")

    def txns_at(self, version: int, app_ids: tuple[str, str]) -> tuple[int, int] | None:
        """The transactions of two application ids as they were at an older version; None when either was not there."""
        table = load_table(self._storage, self._options, version=version)
        with translated(self._storage):
            one, other = (table.transaction_version(app_id) for app_id in app_ids)
        return None if one is None or other is None else (one, other)

    def checkpoint_version(self) -> int:
        """The version of the newest checkpoint that the log points to; -1 when there is none."""
        content = self._storage.get(_HINT)
        if content is None:
            return -1
        try:
            return int(json.loads(content)["version"])
        except (ValueError, KeyError, TypeError):
            return _UNREADABLE_HINT  # Somebody is writing it: a full load tells.

    def _follow(self) -> None:
        while (content := self._storage.get(entry_key(self.version + 1))) is not None:
            self.advance(content)

    def reload(self) -> None:
        """Take nothing for granted: an older entry may be another one by now."""
        self._load()
        self._follow()

    def _is_same(self) -> bool:
        own = self._storage.get(entry_key(self.version))
        return (None if own is None else digest(own)) == self._digest

    def _load(self) -> None:
        table = load_table(self._storage, self._options)
        self.version = self.loaded_version = table.version()
        self.metadata, self.protocol = metadata_of(table), protocol_of(table)
        self.restores = {}
        own = self._storage.get(entry_key(self.version))
        self._digest = None if own is None else digest(own)
        told = None if own is None else parse_entry(own, where=f"{self._storage.uri}/{entry_key(self.version)}")
        self.in_commit_ms = None if told is None else told.in_commit_ms
        self.domains = read_domains(self._storage, self.version, wanted_domains(self.protocol))
        self._loaded = table
        watched = list(self._txns)
        self._txns = {}
        for app_id in watched:
            self._ask_loaded(app_id)

    def _watch(self, app_id: str) -> None:
        try:
            self._ask_loaded(app_id)
        except StorageError:
            # The loaded table reads the log only now, and log cleanup may have been faster.
            self._txns[app_id] = None
            self._load()

    def _ask_loaded(self, app_id: str) -> None:
        if self._loaded is None:
            self._txns[app_id] = None
            self._load()
            return
        with translated(self._storage):
            value = self._loaded.transaction_version(app_id)
        self._txns[app_id] = None if value is None else Applied(value=value, at=None)

    def forget_loaded(self) -> None:
        """Let go of the loaded table, which holds every file of it in memory."""
        self._loaded = None


def digest(content: bytes) -> bytes:
    """Tells one content from another."""
    return hashlib.sha256(content).digest()
