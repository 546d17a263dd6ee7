"""What copies the bad rows of a job, made from its record."""

from __future__ import annotations

from functools import partial

from lading.jobs.record import JobRecord
from lading.model.names import split_table
from lading.service.catalog.tables import TableCatalog
from lading.service.home import Home
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.context import RunnerContext
from lading.service.runtime.errors_copy import ErrorsCopy, ErrorsPlace
from lading.tables.base import LakeTable


def open_errors(
    catalog: TableCatalog, home: Home, tools: RunnerContext, record: JobRecord, table: LakeTable
) -> ErrorsCopy | None:
    """None: the job has no errors table. Asks nothing yet."""
    name = record.spec.errors_table if record.spec is not None else ""
    if not name:
        return None
    place = ErrorsPlace(
        job_id=record.job_id,
        job_name=str(record.full_name),
        bills=table.bills,
        folder=home.quarantine(record.job_id),
        name=name,
        open=partial(catalog.open_table, *split_table(name)),
    )
    caretaker = Caretaker(tools.care, tools.clock, tools.store)
    return ErrorsCopy(place, tools.clock, tools.incarnation, caretaker, record.errors_copied)
