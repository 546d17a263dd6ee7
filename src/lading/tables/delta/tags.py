"""What a Delta table says of complete partitions: its property `lading.done.<job>`, because Delta has no tags.

The value is JSON: partition → the job and the seq of the commit, the version of the table as of which the partition is
complete, and when it was done. Only the newest are kept: every version of the metadata has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from deltalake import PostCommitHookProperties

from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.base import DoneTag
from lading.tables.delta.library import load_table, translated

MOST = 100


def property_name(job_name: str) -> str:
    """Where the complete partitions of a job are told."""
    return f"lading.done.{job_name}"


def set_property(storage: ObjectStore, options: S3Access, done: DoneTag) -> None:
    """One commit of the metadata. It has no files and no transaction of a job: heads and positions stay.

    Dies in here: the property is set or not. The same again changes nothing.
    """
    table, name = load_table(storage, options), property_name(done.job_name)
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
    newest = dict(list(known.items())[-MOST:])
    with translated(storage):
        table.alter.set_table_properties(
            {name: json.dumps(newest)},
            raise_if_not_exists=False,
            # Checkpoints and the history of the log are looked after elsewhere, by rules of Lading's own.
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )


def _is_said(known: Mapping[str, object] | None, done: DoneTag) -> bool:
    """Whether this job said it already, or that of a later commit: jobs of one name count from 0 each."""
    if known is None or known.get("job_id") != done.job_id:
        return False
    seq = known.get("seq")
    return isinstance(seq, int) and seq >= done.seq
