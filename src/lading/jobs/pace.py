"""How large the next batch is planned, after batches that died and after those that were committed.

A batch can die in three ways. It fails while it is staged: twice in a row, and it is halved. Its worker is killed,
as by a machine that has no memory left: it is cut at once, down to one record. The service itself is killed: a
life that committed nothing halves it, so that no number of kills in a row keeps a backlog from getting shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lading.model.batch import PoisonRecord, RecordPlace

MIN_SCALE = 1 / 1024
"""What failures alone make of a batch. What kills workers or the service is cut until one record is left."""
LEAST_SCALE = 2.0**-30
CALM_COMMITS = 8
"""Commits in a row after which batches may be twice as large again, and eight times while they are tiny."""
POISON_DEATHS = 3
"""Workers that must have died of one record alone before it is called poison."""
SUSPECT_WAIT_S = 15.0
"""Before a record that is suspected is read again: what else may have killed its worker, such as another job that took
all memory, should be over by then."""
MOST_SUSPECTS = 16
MOST_INSIDE = 16
"""Rows of one file that are put aside. When one more kills, it is not the rows."""
MOST_PASSED = 3
"""Records in a row that are put aside with no row loaded between them. When one more kills, it is not the records."""
MOST_FILES = 16
"""Files in a row that cannot be read, with no row loaded between them. When one more cannot, it is not the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A record that was alone in its batch when a worker died."""

    place: RecordPlace
    deaths: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How large batches are planned, and what is known of those that died."""

    scale: float = 1.0
    """What the limits of a batch are multiplied with: 1, 1/2, 1/4, …"""
    deaths: int = 0
    """Batches that died in a row."""
    calm: int = 0
    """Commits in a row at this scale."""
    has_committed: bool = False
    """Something was committed since the job was opened."""
    fill: float = 1.0
    """Which part of its limits the batch has that was begun last. It is written before the batch is staged, so that a
    batch that kills the service is known to the next one."""
    least: RecordPlace | None = None
    """What the batch that was begun last reads, when it cannot be made smaller."""
    suspects: tuple[Suspect, ...] = ()
    poison: PoisonRecord | None = None
    """The record that the next batch puts into quarantine."""
    passed: int = 0
    """Records that were put aside since rows were loaded last."""

    @property
    def suspect_deaths(self) -> int:
        """How many workers have died of what the batch that was begun last reads alone."""
        return next((suspect.deaths for suspect in self.suspects if suspect.place == self.least), 0)

    @property
    def passes_over(self) -> bool:
        """Whether the batch that was begun last puts the poison record into quarantine."""
        return self.poison is not None and self.least == self.poison.place


def begun(pace: Pace, fill: float, least: RecordPlace | None) -> Pace:
    """A batch is about to be staged."""
    return replace(pace, fill=fill, least=least)


def after_death(pace: Pace) -> Pace:
    """It failed while it was staged. A file that was to be put aside is not judged by that: it is read as before."""
    deaths = pace.deaths + 1
    scale = min(pace.scale, max(pace.scale / 2, MIN_SCALE)) if deaths % 2 == 0 else pace.scale
    return replace(pace, scale=scale, deaths=deaths, calm=0, poison=_without_check(pace))


def after_unreadable(pace: Pace, reason: str) -> Pace | None:
    """It had a file that cannot be read. It is cut until that file is alone, and that is looked at once more, to be put
    aside. None: that does not help, or too many were put aside."""
    if pace.least is None:
        return after_worker_death(pace)
    is_judged = pace.passes_over and pace.poison is not None and pace.poison.is_checked
    if is_judged or not pace.least.is_record or pace.passed >= MOST_FILES:
        return None
    poison = PoisonRecord(place=replace(pace.least, inside=()), reason=reason, is_checked=True)
    return replace(pace, suspects=(), poison=poison)


def after_worker_death(pace: Pace) -> Pace:
    """A worker was killed by it, or had no memory left. What cannot be cut any more is suspected."""
    died = replace(pace, deaths=pace.deaths + 1, calm=0)
    if pace.least is None:
        # By 2, 4, 8, …: from twenty million rows to one in seven deaths, and what was cut too far grows again.
        return _cut(died, 2 ** min(died.deaths, 8))
    others = tuple(suspect for suspect in pace.suspects if suspect.place != pace.least)
    suspect = Suspect(place=pace.least, deaths=pace.suspect_deaths + 1)
    return replace(died, suspects=(*others, suspect)[-MOST_SUSPECTS:])


def after_lost_process(pace: Pace) -> Pace:
    """The service ended in the middle of it. Nobody knows whether the batch did that, so no record is suspected.

    What is the least that can be read is not cut: to grow again from nothing would take long."""
    died = replace(pace, deaths=pace.deaths + 1)
    if pace.has_committed:
        return died
    scale = pace.scale if pace.least is not None else max(pace.scale / 2, LEAST_SCALE)
    return replace(died, calm=0, scale=scale)


def after_opening(pace: Pace) -> Pace:
    """A new life of the job."""
    return replace(pace, has_committed=False)


def after_commit(pace: Pace, loaded: int) -> Pace:
    """Batches grow again after a while. A poison record that is out of the way was what they died of.

    `loaded`: rows of the batch that were loaded. What was alone in it has lived, and is suspected no longer.
    """
    if pace.passes_over:
        return Pace(has_committed=True, passed=0 if loaded else pace.passed + 1)
    calm = pace.calm + 1
    suspects = tuple(suspect for suspect in pace.suspects if suspect.place != pace.least)
    passed = 0 if loaded else pace.passed
    poison = _without_check(pace)
    lived = replace(pace, deaths=0, has_committed=True, suspects=suspects, passed=passed, poison=poison)
    if pace.scale < 1 and calm >= CALM_COMMITS:
        scale = min(pace.scale * (8 if pace.scale < MIN_SCALE else 2), 1.0)
        return replace(lived, scale=scale, calm=0, suspects=suspects if scale < 1 else ())
    return replace(lived, calm=calm if pace.scale < 1 else 0)


def acquitted(pace: Pace) -> Pace:
    """Nothing is suspected any longer."""
    return replace(pace, suspects=(), poison=None, passed=0)


def condemned(pace: Pace, place: RecordPlace, reason: str) -> Pace:
    """The record at this place is not parsed again."""
    return replace(pace, suspects=(), poison=PoisonRecord(place=place, reason=reason))


def _without_check(pace: Pace) -> PoisonRecord | None:
    return None if pace.poison is None or pace.poison.is_checked else pace.poison


def _cut(pace: Pace, by: int) -> Pace:
    """A part of what the batch really had: limits that it did not reach are not what it died of."""
    return replace(pace, scale=max(pace.scale * pace.fill / by, LEAST_SCALE))
