"""Telling a table that a job was dropped."""

from __future__ import annotations

import logging

from lading.errors import LadingError
from lading.ids import errors_id
from lading.jobs.record import JobRecord
from lading.model.names import split_table
from lading.service.catalog.tables import TableCatalog


def tell_table(catalog: TableCatalog, record: JobRecord) -> None:
    """Say it in the table, so that the job's head holds nothing up, also when the store is lost. Best effort.

    The job has ended in the store already. A table that is gone or cannot be reached keeps a head that holds up the
    expiry of old snapshots when somebody rolls the table back behind it.
    """
    ends = [(record.target, record.job_id)]
    if record.spec is not None and record.spec.errors_table:
        ends.append((record.spec.errors_table, errors_id(record.job_id)))
    for table, job_id in ends:
        try:
            catalog.open_table(*split_table(table)).end_job(job_id)
        except LadingError as error:
            logging.getLogger("lading.jobs").warning("table %s was not told that a job ended: %s", table, error)
