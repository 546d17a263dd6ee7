"""Jobs that were dropped, as the table knows them: the property `lading.ended.<job id>`.

A property of its own beside the head, because a head that is written again could go back behind a commit that lands at
the same moment. In the table, because the store may be lost.
"""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertTableUUID, SetPropertiesUpdate

from lading.errors import StorageError
from lading.ids import JobId
from lading.tables.iceberg.errors import is_locked, translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.heads import Anchor, all_anchors, find_anchor

PREFIX = "lading.ended."
MAX_ATTEMPTS = 10


def end_job(handle: Handle, job_id: JobId) -> None:
    """Say that a job was dropped. Nothing for a job that never committed to this table, or was dropped before."""
    name = f"{PREFIX}{job_id}"
    update = SetPropertiesUpdate(updates={name: "true"})
    for _ in range(MAX_ATTEMPTS):
        table = handle.load()
        if name in table.metadata.properties or find_anchor(table.metadata, job_id) is None:
            return
        with translated(handle.what):
            try:
                # Dies in here: the property is there or not. Without it the head holds up the care of the table.
                table._do_commit(updates=(update,), requirements=(AssertTableUUID(uuid=table.metadata.table_uuid),))  # noqa: SLF001
            except CommitFailedException:
                continue  # Somebody was faster.
            except Exception as error:
                if is_locked(error):
                    continue
                raise
            return
    msg = f"Others kept committing to the Iceberg {handle.what}: it does not know that job {job_id} has ended"
    raise StorageError(msg, left="The job has ended all the same.", todo="Nothing: old snapshots may be kept longer.")


def ended_jobs(metadata: TableMetadata) -> set[JobId]:
    """The jobs that were dropped."""
    return {JobId(name.removeprefix(PREFIX)) for name in metadata.properties if name.startswith(PREFIX)}


def live_anchors(metadata: TableMetadata) -> dict[JobId, Anchor]:
    """The heads of all jobs that were not dropped."""
    ended = ended_jobs(metadata)
    return {job_id: anchor for job_id, anchor in all_anchors(metadata).items() if job_id not in ended}


def astray_jobs(handle: Handle, table: Table) -> list[JobId]:
    """Jobs behind whose head the table was rolled back, and nobody has accepted that yet."""
    live = live_anchors(table.metadata)
    return sorted(job_id for job_id, anchor in live.items() if handle.is_astray(table, anchor))
