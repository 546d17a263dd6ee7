"""The log entry of one commit: files, head, and what the features of the table ask of everybody who appends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lading import __version__
from lading.model.batch import StagedFile
from lading.model.bill import Bill
from lading.tables.bills import bill_key
from lading.tables.delta.actions import TAG_JOB, TAG_ORDER, Metadata, TableProtocol, log_path, seq_app, token_app
from lading.tables.delta.columns import physical_names
from lading.tables.delta.domains import assigns_row_ids, row_id_mark, with_row_id_mark
from lading.tables.delta.staged import parse_staged

TXN_RETENTION = "delta.setTransactionRetentionDuration"
_NEVER_MS = 253402300799000
"""The last second of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What an entry is put on: the table as of the version before it."""

    version: int
    metadata: Metadata
    protocol: TableProtocol
    in_commit_ms: int | None = None
    """What the entry before says of its own time."""
    domains: Mapping[str, str] = field(default_factory=dict)


def render_entry(bill: Bill, staged: Sequence[StagedFile], ground: Ground) -> bytes:
    """The log entry that adds the files and moves the head, both or neither."""
    at_ms = int(bill.billed_at.timestamp() * 1000)
    # A table that forgets old transactions would forget where an idle job stands: Spark and delta-rs leave those out
    # whose lastUpdated is older than the retention.
    updated_ms = _NEVER_MS if TXN_RETENTION in ground.metadata.configuration else at_ms
    actions: list[dict[str, Any]] = [
        {"commitInfo": _commit_info(bill, ground, at_ms)},
        {"txn": {"appId": seq_app(bill.job_id), "version": bill.seq, "lastUpdated": updated_ms}},
        {"txn": {"appId": token_app(bill.job_id), "version": bill.token, "lastUpdated": updated_ms}},
        *render_adds(bill, staged, ground, at_ms),
    ]
    return render_lines(actions)


def render_lines(actions: Sequence[Mapping[str, Any]]) -> bytes:
    """One JSON action per line."""
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode() + b"\n"


def render_adds(bill: Bill, staged: Sequence[StagedFile], ground: Ground, at_ms: int) -> Iterator[dict[str, Any]]:
    """The files, with the ids of their rows where the table keeps those, and the mark that says which are taken."""
    names = physical_names(ground.metadata)
    numbered = assigns_row_ids(ground.protocol, ground.metadata)
    mark = row_id_mark(ground.domains)
    for place, file in enumerate(staged):
        tags = {TAG_JOB: bill.job_id, TAG_ORDER: f"{bill.seq}.{place}.0"}
        add = {**_add(file, names, at_ms), "tags": tags}
        if numbered:
            add |= {"baseRowId": mark + 1, "defaultRowCommitVersion": ground.version + 1}
            mark += file.rows
        yield {"add": add}
    if numbered and staged:
        yield with_row_id_mark(mark)


def commit_times(ground: Ground, at_ms: int) -> dict[str, int]:
    """The times of commitInfo. With in-commit timestamps the one that readers travel by: it never goes back."""
    is_on = ground.metadata.configuration.get("delta.enableInCommitTimestamps", "false").strip().lower() == "true"
    if "inCommitTimestamp" not in ground.protocol.features or not is_on:
        return {"timestamp": at_ms}
    made_ms = max(at_ms, (ground.in_commit_ms or 0) + 1)
    return {"inCommitTimestamp": made_ms, "timestamp": made_ms}


def _commit_info(bill: Bill, ground: Ground, at_ms: int) -> dict[str, Any]:
    keeps_ids = assigns_row_ids(ground.protocol, ground.metadata)
    return {
        **commit_times(ground, at_ms),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": json.dumps(list(ground.metadata.partition_columns))},
        "engineInfo": f"lading/{__version__}",
        "isBlindAppend": True,
        "operationMetrics": {
            "numFiles": str(len(bill.files)),
            "numOutputRows": str(bill.tally.written),
            "numOutputBytes": str(bill.tally.data_bytes),
        },
        # No row was updated or copied.
        **({"tags": {"delta.rowTracking.preserved": "true"}} if keeps_ids else {}),
        "lading.job": bill.job_id,
        "lading.jobName": bill.job_name,
        "lading.kind": bill.kind.value,
        "lading.seq": bill.seq,
        "lading.token": bill.token,
        "lading.bill": bill_key(bill.job_id, bill.head),
    }


def _add(file: StagedFile, names: Mapping[str, str], at_ms: int) -> dict[str, Any]:
    return {
        "path": log_path(file.path),
        "partitionValues": {names[column]: value for column, value in file.partition.items()},
        "size": file.size_bytes,
        "modificationTime": at_ms,
        "dataChange": True,
        "stats": parse_staged(file).stats,
    }
