"""What a Delta table says of complete partitions: its property `lading.done.<job>`, because Delta has no tags.

The value is JSON: partition → the job and the seq of the commit, the version of the table as of which the partition is
complete, and when it was done. Only the newest are kept: every version of the metadata has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from deltalake import DeltaTable

from lading import __version__
from lading.clock import SystemClock
from lading.errors import TableError
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.base import DoneTag
from lading.tables.delta.actions import entry_key, parse_entry
from lading.tables.delta.entry import Ground, commit_times
from lading.tables.delta.library import load_table, metadata_of, protocol_of

MOST = 100
MAX_REBASES = 20


def property_name(job_name: str) -> str:
    """Where the complete partitions of a job are told."""
    return f"lading.done.{job_name}"


def set_property(storage: ObjectStore, options: S3Access, done: DoneTag) -> None:
    """One commit of the metadata. It has no files and no transaction of a job: heads and positions stay.

    Dies in here: the property is set or not. The same again changes nothing.
    """
    name = property_name(done.job_name)
    for _ in range(MAX_REBASES):
        table = load_table(storage, options)
        known: dict[str, Mapping[str, object]] = json.loads(table.metadata().configuration.get(name) or "{}")
        if _is_said(known.get(done.partition), done):
            return
        known.pop(done.partition, None)
        known[done.partition] = {
            "job_id": done.job_id,
            "seq": done.seq,
            "version": table.version(),
            "done_at": done.at.isoformat(),
        }
        value = json.dumps(dict(list(known.items())[-MOST:]))
        # delta-rs would also ask for features that the table does not use, and nobody could append to it any more.
        if storage.put_if_absent(entry_key(table.version() + 1), _entry(table, _ground(storage, table), name, value)):
            return
    msg = f"The property {name} of {storage.uri} was not set: other writers were faster {MAX_REBASES} times"
    raise TableError(msg, left="The table is as it was.", todo="It is tried again.")


def _ground(storage: ObjectStore, table: DeltaTable) -> Ground:
    key = entry_key(table.version())
    newest = storage.get(key)
    made_ms = None if newest is None else parse_entry(newest, where=f"{storage.uri}/{key}").in_commit_ms
    return Ground(
        version=table.version(), metadata=metadata_of(table), protocol=protocol_of(table), in_commit_ms=made_ms
    )


def _entry(table: DeltaTable, ground: Ground, name: str, value: str) -> bytes:
    """The log entry that sets one property and leaves everything else as it is."""
    known = table.metadata()
    told = {
        **commit_times(ground, int(SystemClock().now().timestamp() * 1000)),
        "operation": "SET TBLPROPERTIES",
        "operationParameters": {"properties": json.dumps({name: value})},
        "engineInfo": f"lading/{__version__}",
    }
    metadata = {
        "id": str(known.id),
        "name": known.name,
        "description": known.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(known.partition_columns),
        "createdTime": known.created_time,
        "configuration": {**known.configuration, name: value},
    }
    return "".join(json.dumps(each) + "\n" for each in ({"commitInfo": told}, {"metaData": metadata})).encode()


def _is_said(known: Mapping[str, object] | None, done: DoneTag) -> bool:
    """Whether this job said it already, or that of a later commit: jobs of one name count from 0 each."""
    if known is None or known.get("job_id") != done.job_id:
        return False
    seq = known.get("seq")
    return isinstance(seq, int) and seq >= done.seq
