"""A table in memory whose answers get lost, come late, or are old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from lading.errors import StorageError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import NotLanded, Outcome, Unknown
from lading.tables.memory import MemoryTable

MOST_OLD_ANSWERS = 3
"""In a row: a store that never tells the truth cannot be lived with."""


class FaultyTable(MemoryTable):
    """Every commit may fail for certain, land without an answer, never arrive, or arrive later."""

    def __init__(self, rng: Random, *, faults: float) -> None:
        super().__init__()
        self.faults = faults
        self._rng = rng
        self._old_answers = 0
        self._pending: list[tuple[Head | None, tuple[StagedFile, ...], Bill]] = []

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        draw = self._rng.random() / self.faults if self.faults else 2.0
        if draw < 0.2:
            return NotLanded(why="the disk is full")
        if draw < 0.45:
            return Unknown(why="the request was lost")
        if draw < 0.65:
            self._pending.append((expected, tuple(staged), bill))
            return Unknown(why="the answer did not come in time; the request is still on its way")
        outcome = super().commit(expected, staged, bill)
        if draw < 1.0:
            return Unknown(why="the answer was lost")
        return outcome

    def find(self, job_id: JobId, token: Token) -> bool:
        self._maybe_away()
        return super().find(job_id, token)

    def _maybe_away(self) -> None:
        if self._rng.random() < self.faults / 6:
            msg = "The store is away"
            raise StorageError(msg, left="Nothing was read.", todo="It is asked again.")

    def read_head(self, job_id: JobId) -> Head | None:
        self._maybe_away()
        self._old_answers += 1
        if self._old_answers <= MOST_OLD_ANSWERS and self._rng.random() < self.faults / 8:
            # An old answer from somewhere on the way.
            return self.versions[self._rng.randrange(max(0, len(self.versions) - 4), len(self.versions))].heads.get(
                job_id
            )
        self._old_answers = 0
        return super().read_head(job_id)

    def deliver_pending(self) -> None:
        """A request that everybody had given up on arrives."""
        if self._pending:
            expected, staged, bill = self._pending.pop(self._rng.randrange(len(self._pending)))
            # A server compares heads, and refuses what was prepared before a restore; it does not look whether the
            # files are still there.
            head = self.read_head_unchecked(bill.job_id)
            if self._matches(expected, head) and not self.is_behind(bill.job_id):
                self._append(staged, bill)

    def drop_or_deliver_pending(self) -> None:
        """Every request still on its way arrives or is lost for good."""
        while self._pending:
            if self._rng.random() < 0.5:
                self._pending.pop()
            else:
                self.deliver_pending()

    def restore_random(self, oldest: Mapping[JobId, int], rng: Random) -> None:
        """Somebody restores one of the last versions, with or without the heads. Bills are kept from `oldest` on."""
        recent = range(max(0, len(self.versions) - 6), len(self.versions) - 1)
        known = {job_id: seq for job_id, seq in oldest.items() if self.read_head_unchecked(job_id) is not None}
        able = [at for at in recent if known and all(self._is_whole(job_id, at, seq) for job_id, seq in known.items())]
        if not able:
            return
        at = rng.choice(able)
        if rng.random() < 0.5:
            self.restore(at)
        else:
            # Restoring a copied folder takes longer than a request lives; one that outlived it could meet its old
            # head again, and no compare-and-set can tell.
            self._pending.clear()
            self.restore_with_heads(at)

    def _is_whole(self, job_id: JobId, at: int, oldest: int) -> bool:
        """Whether a version has a head whose bill is kept and whose rows are all there."""
        head = self.versions[at].heads.get(job_id)
        return head is not None and head.seq >= oldest and not self.is_behind(job_id, at=at)
