"""The data files of a Delta table as its log has them, with what delta-rs does not tell: tags and deletion vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.compaction.model import LiveFile
from lading.tables.delta.actions import LOG, TAG_JOB, TAG_ORDER, entry_key
from lading.tables.delta.log import LogTail
from lading.tables.delta.partitions import NULL_FOLDER

_ADD = ("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector")
_BATCH = 1000
_ORDER = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAdd:
    """One file, as the log has it."""

    path: str
    """As it stands in the log, with its percent signs."""
    size: int
    modified_ms: int
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    stats: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    has_vector: bool = False

    @property
    def order(self) -> tuple[int, ...] | None:
        """Its place among the files of its job; None when no commit of Lading added it."""
        text = self.tags.get(TAG_ORDER) or ""
        if TAG_JOB not in self.tags or not _ORDER.fullmatch(text):
            return None
        return tuple(int(part) for part in text.split("."))

    @property
    def rows(self) -> int | None:
        """As the statistics say."""
        try:
            count = json.loads(self.stats or "{}").get("numRecords")
        except (ValueError, AttributeError):
            return None
        return count if type(count) is int else None

    def live_file(self) -> LiveFile:
        """As compaction wants it."""
        order, path = self.order, unquote(self.path)
        values = self.partition_values.items()
        shown = "/".join(f"{name}={NULL_FOLDER if value is None else value}" for name, value in sorted(values))
        line = json.dumps([self.tags.get(TAG_JOB), sorted(self.partition_values.items())])
        return LiveFile(
            path=path,
            partition=shown,
            line=line,
            order=order or (),
            rows=self.rows or 0,
            size_bytes=self.size,
            written_at=datetime.fromtimestamp(self.modified_ms / 1000, UTC),
            is_ours=order is not None and self.rows is not None and not _is_elsewhere(self.path),
            has_deletes=self.has_vector,
            extra=self.stats,
        )


def live_adds(storage: ObjectStore, tail: LogTail) -> dict[str, LiveAdd]:
    """Every file of the version at which the tail stands, by its path. Raises TableError when it cannot be told.

    Law of Delta: a path is in the table with one deletion vector or none; an entry that changes it removes and adds.
    """
    base = min(tail.checkpoint_version(), tail.version)
    files: dict[str, LiveAdd] = {}
    for add in _in_checkpoint(storage, base) if base >= 0 else ():
        files[unquote(add.path)] = add
    for version in range(base + 1, tail.version + 1):
        content = storage.get(entry_key(version))
        if content is None:
            raise _untold(storage, f"entry {version} of its log is missing")
        added, removed = changes_of(content)
        for path in removed - added.keys():
            files.pop(path, None)
        files.update(added)
    return files


def changes_of(content: bytes) -> tuple[dict[str, LiveAdd], set[str]]:
    """The files that one entry of the log adds, and those that it removes."""
    added: dict[str, LiveAdd] = {}
    removed: set[str] = set()
    for line in content.splitlines():
        if not line.startswith((b'{"add"', b'{"remove"')) and b'"add"' not in line and b'"remove"' not in line:
            continue
        action = json.loads(line)
        if isinstance(add := action.get("add"), dict):
            known = _live(add)
            added[unquote(known.path)] = known
        if isinstance(remove := action.get("remove"), dict):
            removed.add(unquote(str(remove["path"])))
    return added, removed


def _live(add: Mapping[str, Any]) -> LiveAdd:
    return LiveAdd(
        path=str(add["path"]),
        size=int(add["size"]),
        modified_ms=int(add.get("modificationTime") or 0),
        partition_values=dict(add.get("partitionValues") or {}),
        stats=str(add.get("stats") or ""),
        tags={key: str(value) for key, value in dict(add.get("tags") or {}).items() if value is not None},
        has_vector=add.get("deletionVector") is not None,
    )


def _in_checkpoint(storage: ObjectStore, version: int) -> Iterator[LiveAdd]:
    prefix = f"{LOG}/{version:020d}.checkpoint."
    keys = sorted(storage.keys(prefix))
    plain = re.compile(re.escape(prefix) + r"(?:\d{10}\.\d{10}\.)?parquet")
    if not keys or not all(plain.fullmatch(key) for key in keys):
        raise _untold(storage, f"its checkpoint of version {version} is of a form that Lading does not read")
    single = [key for key in keys if key == f"{prefix}parquet"]
    filesystem, root = storage.arrow()
    for key in single or keys:
        try:
            with filesystem.open_input_file(f"{root}/{key}") as opened:
                file = pq.ParquetFile(opened)
                there = file.schema_arrow.field("add").type
                wanted = [f"add.{name}" for name in _ADD if there.get_field_index(name) >= 0]
                for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                    yield from (_live(add) for add in batch.column("add").to_pylist() if add and add["path"])
        except (OSError, KeyError, pa.ArrowException) as error:
            raise _untold(storage, f"{key} cannot be read: {error}") from error


def _is_elsewhere(path: str) -> bool:
    """Whether a path does not lie in the table: one of a shallow clone, or one that leads out of it."""
    plain = unquote(path)
    return "://" in plain or plain.startswith(("/", "file:")) or ".." in plain.split("/")


def _untold(storage: ObjectStore, why: str) -> TableError:
    msg = f"Which files the Delta table {storage.uri} has cannot be told: {why}"
    return TableError(msg, left="Nothing was changed.", todo="Compact it with its own engine (OPTIMIZE).")
