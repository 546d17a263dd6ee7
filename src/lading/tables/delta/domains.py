"""Domain metadata of a Delta table: what features keep in its log beside the properties.

delta-rs does not tell it. It is in the entries since the newest checkpoint, and in that checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG, Metadata, TableProtocol, entry_key, parse_entry

ROW_TRACKING, CLUSTERING = "delta.rowTracking", "delta.clustering"
_CHECKPOINT = re.compile(LOG + r"/(\d{20})\.checkpoint(?:\.[^/]+)?\.(parquet|json)")
_MARK = "rowIdHighWaterMark"


def wanted_domains(protocol: TableProtocol) -> frozenset[str]:
    """Those that an appender must know."""
    by_feature = {"rowTracking": ROW_TRACKING, "clustering": CLUSTERING}
    return frozenset(domain for feature, domain in by_feature.items() if feature in protocol.features)


def read_domains(storage: ObjectStore, version: int, wanted: Collection[str]) -> dict[str, str]:
    """Their configuration as of a version, those that were removed left out. Raises TableError."""
    if not wanted:
        return {}
    found: dict[str, str | None] = {}
    at = version
    while at >= 0 and not set(wanted) <= found.keys():
        content = storage.get(entry_key(at))
        if content is None:
            break
        told = parse_entry(content, where=f"{storage.uri}/{entry_key(at)}").domains
        found = {**told, **found}
        at -= 1
    if at >= 0 and not set(wanted) <= found.keys():
        found = {**_in_checkpoint(storage, at + 1), **found}
    return {name: said for name, said in found.items() if said is not None and name in wanted}


def row_id_mark(domains: Mapping[str, str]) -> int:
    """The highest row id that was ever given; -1: none."""
    return int(json.loads(domains.get(ROW_TRACKING, "{}")).get(_MARK, -1))


def with_row_id_mark(mark: int) -> dict[str, Any]:
    """The action that says which row ids are taken."""
    return {"domainMetadata": {"domain": ROW_TRACKING, "configuration": json.dumps({_MARK: mark}), "removed": False}}


def assigns_row_ids(protocol: TableProtocol, metadata: Metadata) -> bool:
    """Whether everybody who adds rows must number them."""
    suspended = metadata.configuration.get("delta.rowTrackingSuspended", "false").strip().lower() == "true"
    return "rowTracking" in protocol.features and not suspended


def clustering_columns(domains: Mapping[str, str]) -> list[list[str]]:
    """Paths of the columns that the table is clustered by, as files call them."""
    said = json.loads(domains.get(CLUSTERING, "{}")).get("clusteringColumns") or []
    return [[path] if isinstance(path, str) else list(path) for path in said]


def _in_checkpoint(storage: ObjectStore, oldest: int) -> dict[str, str | None]:
    """What the checkpoint says that the oldest entry left stands on: at its version, or the one before."""
    parts = [(int(match[1]), key) for key in storage.keys(f"{LOG}/") if (match := _CHECKPOINT.fullmatch(key))]
    newest = max((version for version, _ in parts if version >= oldest - 1), default=None)
    if newest is None:
        msg = f"The log of the Delta table {storage.uri} does not go back to a checkpoint"
        raise TableError(msg, left="Nothing was written.", todo="Repair the table's log, with its own engine.")
    return {
        action["domain"]: None if action.get("removed") else action["configuration"]
        for version, key in parts
        if version == newest
        for action in _actions(storage, key)
    }


def _actions(storage: ObjectStore, key: str) -> Iterator[Mapping[str, Any]]:
    if key.endswith(".json"):
        for line in (storage.get(key) or b"").splitlines():
            if action := json.loads(line).get("domainMetadata"):
                yield action
        return
    filesystem, root = storage.arrow()
    with filesystem.open_input_file(f"{root}/{key}") as opened:
        file = pq.ParquetFile(opened)
        if "domainMetadata" in file.schema_arrow.names:
            yield from (row for row in file.read(["domainMetadata"]).column(0).to_pylist() if row)
