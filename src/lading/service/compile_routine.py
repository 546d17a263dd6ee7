"""From the text of a routine load to everything that runs it."""

from __future__ import annotations

from lading.clock import Clock
from lading.errors import NotSupportedError
from lading.jobs.record import JobRecord
from lading.service.compiled import Compiled
from lading.sql.statements import CreateRoutineLoad
from lading.store.records import TableEntry
from lading.tables.base import LakeTable


def compile_routine(
    record: JobRecord,
    statement: CreateRoutineLoad,
    table: LakeTable,
    entry: TableEntry,
    quarantine: str,
    clock: Clock,
) -> Compiled:
    """Check a routine load against its table and its stream, and put its parts together."""
    msg = f"Routine loads such as {record.name} are not supported yet"
    raise NotSupportedError(msg, todo="Streaming jobs from files are.")
