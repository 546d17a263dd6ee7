"""Which jobs may not take the vector path, whatever their mapping is: all, when it is off, or those that gave it up."""

from __future__ import annotations

from lading.ids import JobId
from lading.sql.expressions.vector_nodes import Refusal


class VectorChoices:
    """What this incarnation knows. After a restart a job tries the vector path again."""

    def __init__(self, *, is_on: bool) -> None:
        self._is_on = is_on
        self._given_up: dict[JobId, Refusal] = {}

    def refusal(self, job_id: JobId) -> Refusal | None:
        """Why a job has to take the general path; None: its mapping decides."""
        if not self._is_on:
            return Refusal(part="setting", why="LADING_VECTOR_PATH is no")
        return self._given_up.get(job_id)

    def give_up(self, job_id: JobId, refusal: Refusal) -> None:
        """A batch of the job had values of which the vector path was not sure."""
        self._given_up[job_id] = refusal
