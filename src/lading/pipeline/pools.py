"""Pools of Spark's fair scheduler: one for each job, so that none takes the share of another."""

from __future__ import annotations

from lading.ids import JobId

_PREFIX = "job-"


def pool_of(job_id: JobId) -> str:
    """Where the batches of a job run."""
    return f"{_PREFIX}{job_id}"


def is_of_a_job(pool: str) -> bool:
    """Whether it is a job's; everything else is a query's."""
    return pool.startswith(_PREFIX)
