"""Telling a table that a job was dropped."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lading.errors import LadingError
from lading.jobs.record import JobRecord

if TYPE_CHECKING:
    from lading.service.facade import Lading


def tell_table(lading: Lading, record: JobRecord) -> None:
    """Say it in the table, so that the job's head holds nothing up, also when the store is lost. Best effort.

    The job has ended in the store already. A table that is gone or cannot be reached keeps a head that holds up the
    expiry of old snapshots when somebody rolls the table back behind it.
    """
    database, _, name = record.target.partition(".")
    try:
        lading.catalog.open_table(database, name).end_job(record.job_id)
    except LadingError as error:
        logging.getLogger("lading.jobs").warning("table %s was not told that a job ended: %s", record.target, error)
