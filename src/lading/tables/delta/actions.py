"""Log entries of a Delta table, read and written: one JSON action per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from lading.errors import TableError
from lading.ids import JobId

LOG = "_delta_log"
TAG_JOB = "lading.job"
TAG_ORDER = "lading.order"
"""The place of a file among those of its job: seq, place in the commit, and part, with points between them. Compaction
keeps it, so that rows can be told in the order in which they were loaded."""
_SKIPPED = (b'{"add":', b'{"remove":', b'{"cdc":')


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What the table says about itself."""

    table_id: str
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProtocol:
    """What a reader and a writer must be able to do."""

    reader: int
    writer: int
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Somebody put the content back."""

    to: int | None
    """The version; None when only a time was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What Lading wants to know of one log entry."""

    txns: Mapping[str, int] = field(default_factory=dict)
    metadata: Metadata | None = None
    protocol: TableProtocol | None = None
    restore: Restore | None = None
    domains: Mapping[str, str | None] = field(default_factory=dict)
    """Domain metadata → its configuration; None: it was removed."""
    in_commit_ms: int | None = None
    """When the commit says it was made, in tables with in-commit timestamps."""
    operation: str = ""
    made_ms: int | None = None
    """When the commit says it was made, in any table; only for people."""


def entry_key(version: int) -> str:
    """Where the log entry of a version is, relative to the table."""
    return f"{LOG}/{version:020d}.json"


def seq_app(job_id: JobId) -> str:
    """The application id whose transaction version is the seq of the head."""
    return f"lading/{job_id}"


def token_app(job_id: JobId) -> str:
    """The application id whose transaction version is the token of the head."""
    return f"lading/{job_id}/token"


def parse_entry(content: bytes, *, where: str) -> Entry:
    """Read a log entry. Files that were added and removed are passed over."""
    found: dict[str, Any] = {}
    txns: dict[str, int] = {}
    domains: dict[str, str | None] = {}
    for line in content.splitlines():
        if not line.strip() or line.startswith(_SKIPPED):
            continue
        action = _load(line, where)
        if txn := action.get("txn"):
            txns[str(txn["appId"])] = int(txn["version"])
        if domain := action.get("domainMetadata"):
            domains[str(domain["domain"])] = None if domain.get("removed") else str(domain["configuration"])
        found.update(action)
    told = found.get("commitInfo") or {}
    made_ms, told_ms = told.get("inCommitTimestamp"), told.get("timestamp")
    return Entry(
        txns=txns,
        metadata=_metadata(found["metaData"]) if "metaData" in found else None,
        protocol=_protocol(found["protocol"]) if "protocol" in found else None,
        restore=_restore(told),
        domains=domains,
        in_commit_ms=None if made_ms is None else int(made_ms),
        operation=str(told.get("operation") or ""),
        made_ms=told_ms if isinstance(told_ms, int) else None,
    )


def log_path(path: str) -> str:
    """A path as an entry writes it."""
    return quote(path, safe="/=:@!$&'()*+,;~")


def _load(line: bytes, where: str) -> dict[str, Any]:
    try:
        action = json.loads(line)
    except ValueError as error:
        raise _unreadable(where, str(error)) from error
    if not isinstance(action, dict):
        raise _unreadable(where, "a line is not an action")
    return action


def _metadata(action: Mapping[str, Any]) -> Metadata:
    return Metadata(
        table_id=str(action["id"]),
        schema_string=str(action["schemaString"]),
        partition_columns=tuple(action.get("partitionColumns") or ()),
        configuration=dict(action.get("configuration") or {}),
    )


def _protocol(action: Mapping[str, Any]) -> TableProtocol:
    features = [*(action.get("readerFeatures") or ()), *(action.get("writerFeatures") or ())]
    return TableProtocol(
        reader=int(action["minReaderVersion"]), writer=int(action["minWriterVersion"]), features=frozenset(features)
    )


def _restore(commit_info: Mapping[str, Any]) -> Restore | None:
    if commit_info.get("operation") != "RESTORE":
        return None
    version = str((commit_info.get("operationParameters") or {}).get("version"))
    return Restore(to=int(version) if version.isdigit() else None)


def _unreadable(where: str, why: str) -> TableError:
    msg = f"The log entry {where} of the Delta table cannot be read: {why}"
    return TableError(msg, left="Nothing was changed.", todo="Repair the table's log before the job goes on.")
