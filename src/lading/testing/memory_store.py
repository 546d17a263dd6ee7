"""The part of a metadata store that running jobs need, in memory. It refuses calls now and then, and can be lost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from random import Random

from lading.errors import JobChangedError, JobNotFoundError, StoreError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.store.records import AuditEntry, StoredJob


class MemoryStore:
    """Records, small values, and the views of bills. A call that is refused has changed nothing."""

    def __init__(self, rng: Random, *, faults: float) -> None:
        self.faults = faults
        self._rng = rng
        self._jobs: dict[JobId, StoredJob] = {}
        self._settings: dict[str, str] = {}
        self.followed: dict[JobId, list[int]] = {}
        """The bills that reached the views, in order."""
        self.totals: dict[JobId, Tally] = {}

    # Records.

    def create_job(self, record: JobRecord) -> None:
        """Also again, when the store was lost."""
        old = self._jobs.get(record.job_id)
        self._jobs[record.job_id] = StoredJob(record=record, version=old.version + 1 if old else 0)

    def load_job_by_id(self, job_id: JobId) -> StoredJob:
        self._maybe_away()
        return self._stored(job_id)

    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
    ) -> StoredJob:
        self._maybe_away()
        if self._stored(record.job_id).version != expected_version:
            msg = "Somebody else has saved the job"
            raise JobChangedError(msg, left="Nothing was saved.", todo="It is tried again.")
        self._jobs[record.job_id] = StoredJob(record=record, version=expected_version + 1)
        return self._jobs[record.job_id]

    def peek(self, job_id: JobId) -> JobRecord:
        """The record, for those who only look on."""
        return self._stored(job_id).record

    def forget_jobs_ended_before(self, at: datetime) -> list[JobId]:
        return []

    # Small values.

    def read_setting(self, key: str) -> str | None:
        self._maybe_away()
        return self._settings.get(key)

    def write_setting(self, key: str, value: str) -> None:
        self._maybe_away()
        self._settings[key] = value

    def drop_setting(self, key: str) -> None:
        self._maybe_away()
        self._settings.pop(key, None)

    # Views.

    def followed_seq(self, job_id: JobId) -> int | None:
        self._maybe_away()
        seqs = self.followed.get(job_id)
        return seqs[-1] if seqs else None

    def follow(self, bill: Bill) -> None:
        self._maybe_away()
        self.followed.setdefault(bill.job_id, []).append(bill.seq)
        self.totals[bill.job_id] = bill.totals

    def trim_bills(self, job_id: JobId, keep: int) -> int:
        self._maybe_away()
        return 0

    # What happens to it.

    def lose(self, job_id: JobId) -> None:
        """All that it knew of a job is gone, but for its name."""
        self.followed.pop(job_id, None)
        self.totals.pop(job_id, None)
        self._settings = {key: value for key, value in self._settings.items() if not key.endswith(job_id)}

    def _stored(self, job_id: JobId) -> StoredJob:
        if job_id not in self._jobs:
            msg = f"There is no job {job_id}"
            raise JobNotFoundError(msg, left="Nothing was changed.", todo="See the list of jobs.")
        return self._jobs[job_id]

    def _maybe_away(self) -> None:
        if self.faults and self._rng.random() < self.faults / 40:
            msg = "The metadata store is away"
            raise StoreError(msg, left="Nothing was changed.", todo="It is tried again.")
