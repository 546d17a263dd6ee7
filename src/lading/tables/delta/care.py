"""Looking after the log of a Delta table: checkpoints, and the table's own log cleanup."""

from __future__ import annotations

from lading.tables.delta.library import load_table, metadata_of, translated
from lading.tables.storage import Storage, StorageOptions


def look_after_log(storage: Storage, options: StorageOptions) -> bool:
    """Make a checkpoint, then remove log entries that the table itself says are expired.

    How long entries are kept is the table's setting (`delta.logRetentionDuration`), also for other writers' sake;
    nothing is removed when the table says that log cleanup is off.
    """
    table = load_table(storage, options)
    with translated(storage):
        # Dies after the checkpoint: it is complete, or nobody is pointed to it. Entries below it are still there.
        table.create_checkpoint()
        if metadata_of(table).configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "false":
            table.cleanup_metadata()
    return True
