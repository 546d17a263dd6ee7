"""One log entry of a Delta table that puts new files with the same rows in the place of old ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lading import __version__
from lading.errors import LadingError, StorageError
from lading.model.batch import StagedFile
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.storage.store import ObjectStore
from lading.tables.compaction.model import MARK, LiveFile
from lading.tables.delta.actions import TAG_JOB, TAG_ORDER, Metadata, TableProtocol, entry_key, log_path, parse_entry
from lading.tables.delta.live import LiveAdd, changes_of, live_adds
from lading.tables.delta.log import LogTail
from lading.tables.delta.stats import render_stats
from lading.tables.parquet import FileNotes

MAX_REBASES = 100
KEEPS_ROWS = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "vacuumProtocolCheck",
    }
)
"""Features that ask nothing of one who copies rows as they stand. Not among them: rowTracking, whose row ids would have
to be kept, inCommitTimestamp, which every entry would have to have, and columnMapping."""


def why_not(protocol: TableProtocol, metadata: Metadata) -> str:
    """Why the files of a table are left alone; empty when they may be compacted."""
    unknown = sorted(protocol.features - KEEPS_ROWS)
    if unknown:
        return f"the table has the feature {unknown[0]}; compact it with its own engine (OPTIMIZE)"
    if metadata.configuration.get("delta.enableRowTracking", "").lower() == "true":
        return "the table tracks its rows; compact it with its own engine (OPTIMIZE)"
    if metadata.configuration.get("delta.columnMapping.mode", "none").lower() != "none":
        return "the table maps its columns; compact it with its own engine (OPTIMIZE)"
    return ""


def rewrite_stats(stats: str, schema: pa.Schema) -> Callable[[pq.FileMetaData, FileNotes], str]:
    """Statistics of the columns that the old file has statistics of: the settings of the table chose them."""
    try:
        counted = json.loads(stats or "{}").get("nullCount") or {}
    except (ValueError, AttributeError):
        counted = {}
    columns = [name for name, count in counted.items() if type(count) is int]
    return lambda footer, notes: render_stats(footer, schema, notes, columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """One attempt to replace files."""

    storage: ObjectStore
    tail: LogTail
    old: Sequence[LiveFile]
    new: Sequence[StagedFile]
    compaction_id: str
    at: datetime
    check: Callable[[], None]
    """Right before every attempt."""

    def commit(self) -> Outcome:
        """Put the entry. The second writer of a version reads what was put there: appends are stepped behind."""
        self.tail.refresh()
        before = (self.tail.metadata, self.tail.protocol)
        if refused := why_not(self.tail.protocol, self.tail.metadata):
            return NotLanded(why=refused)
        live = live_adds(self.storage, self.tail)
        if lost := _lost(self.old, live):
            return NotLanded(why=lost)
        for _ in range(MAX_REBASES):
            content = self._entry(live)
            self.check()
            try:
                # Dies before the put: the log is as it was. Dies after it: old files are out, new ones in, both.
                won = self.storage.put_if_absent(entry_key(self.tail.version + 1), content)
            except StorageError as error:
                return Unknown(why=error.what) if error.facts.get("unknown") else NotLanded(why=error.what)
            if won:
                return self._confirmed(content)
            if overtaken := self._overtaken(before):
                return overtaken
        return NotLanded(why=f"other writers were faster {MAX_REBASES} times")

    def _overtaken(self, before: tuple[Metadata, TableProtocol]) -> Outcome | None:
        """Somebody's entry is there. None: it left the old files alone, and the compaction may be put behind it."""
        seen = self.tail.version
        try:
            self.tail.refresh()
            for version in range(seen + 1, self.tail.version + 1):
                content = self.storage.get(entry_key(version))
                if content is None:
                    return NotLanded(why=f"entry {version} of the log is gone again")
                if MARK.encode() in content and self.compaction_id.encode() in content:
                    return Landed(version=version)  # An attempt whose answer was lost.
                if why := self._conflict(content):
                    return NotLanded(why=why)
        except LadingError as error:
            return Unknown(why=error.what)
        if (self.tail.metadata, self.tail.protocol) != before or self.tail.version < seen:
            return NotLanded(why="the table was changed meanwhile")
        return None

    def _conflict(self, content: bytes) -> str:
        entry = parse_entry(content, where=self.storage.uri)
        if entry.metadata or entry.protocol or entry.restore:
            return "the table was changed or restored meanwhile"
        added, removed = changes_of(content)
        paths = {file.path for file in self.old}
        if paths & (removed | added.keys()):
            return "another writer took one of the files out, or rows of it, meanwhile"
        return ""

    def _confirmed(self, content: bytes) -> Outcome:
        """As for loads: an entry that was put below a checkpoint counts for nobody."""
        try:
            if self.tail.checkpoint_version() <= self.tail.version:
                self.tail.advance(content)
                return Landed(version=self.tail.version)
        except LadingError as error:
            return Unknown(why=error.what)
        return Unknown(why="the log had gone on past a checkpoint when the entry was put")

    def _entry(self, live: Mapping[str, LiveAdd]) -> bytes:
        at_ms = int(self.at.timestamp() * 1000)
        last = live[self.old[-1].path]
        actions: list[dict[str, Any]] = [{"commitInfo": self._commit_info(at_ms)}]
        actions += [{"remove": _remove(live[file.path], at_ms)} for file in self.old]
        actions += [{"add": _add(file, last, part)} for part, file in enumerate(self.new)]
        return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode() + b"\n"

    def _commit_info(self, at_ms: int) -> dict[str, Any]:
        return {
            "timestamp": at_ms,
            "operation": "OPTIMIZE",
            "operationParameters": {"predicate": "[]", "zOrderBy": "[]"},
            "readVersion": self.tail.version,
            "isolationLevel": "SnapshotIsolation",
            "isBlindAppend": False,
            "engineInfo": f"lading/{__version__}",
            "operationMetrics": {
                "numRemovedFiles": str(len(self.old)),
                "numRemovedBytes": str(sum(file.size_bytes for file in self.old)),
                "numAddedFiles": str(len(self.new)),
                "numAddedBytes": str(sum(file.size_bytes for file in self.new)),
            },
            MARK: self.compaction_id,
        }


def _lost(old: Sequence[LiveFile], live: Mapping[str, LiveAdd]) -> str:
    for file in old:
        found = live.get(file.path)
        if found is None:
            return f"another writer took {file.path} out meanwhile"
        if found.has_vector or found.size != file.size_bytes:
            return f"another writer took rows of {file.path} out meanwhile"
    return ""


def _remove(add: LiveAdd, at_ms: int) -> dict[str, Any]:
    return {
        "path": add.path,
        "deletionTimestamp": at_ms,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": dict(add.partition_values),
        "size": add.size,
        "tags": dict(add.tags),
    }


def _add(file: StagedFile, last: LiveAdd, part: int) -> dict[str, Any]:
    """The new file stands where the last of the old ones stood, and is as old as that."""
    order = last.order or ()
    return {
        "path": log_path(file.path),
        "partitionValues": dict(last.partition_values),
        "size": file.size_bytes,
        "modificationTime": last.modified_ms,
        "dataChange": False,
        "stats": file.stats,
        "tags": {TAG_JOB: last.tags[TAG_JOB], TAG_ORDER: ".".join(str(number) for number in (*order[:2], part))},
    }
