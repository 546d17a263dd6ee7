"""What this incarnation has seen of its jobs and nobody keeps: lags, and the commits of the last minutes.

Losing it loses nothing: commits are read again from the index of bills, and lags are looked up again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from lading.ids import JobId
from lading.service.installation import Installation
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Beat, LagPoint
from lading.tables.compaction.figures import TableFigures

KEPT_BEATS = 240
KEPT_LAGS = 120
LAG_DISTANCE = timedelta(seconds=30)
"""So much lies between two lags that are kept for plots: an hour in all."""
LAG_LIFE = timedelta(minutes=10)
"""A lag that is older is not shown: it would be taken for the present one."""


class RecentActivity:
    """Bounded memory of a service. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._beats: dict[JobId, deque[tuple[int, Beat]]] = {}
        self._lags: dict[JobId, Lag] = {}
        self._units: dict[JobId, LagUnit] = {}
        self._past: dict[JobId, deque[LagPoint]] = {}
        self._newest: dict[JobId, LagPoint] = {}
        self._left_out: dict[JobId, Mapping[str, int]] = {}
        self._tables: dict[str, TableFigures] = {}

    def saw_table(self, found: TableFigures) -> None:
        """How the files of a table stood at the last round of compaction."""
        with self._lock:
            self._tables[found.table] = found

    def table(self, name: str) -> TableFigures | None:
        """How the files of a table stood when somebody last looked; None when nobody did yet."""
        with self._lock:
            return self._tables.get(name)

    def saw_commit(self, job_id: JobId, seq: int, beat: Beat) -> None:
        """Take a commit in. One that is not newer than the last changes nothing."""
        with self._lock:
            beats = self._beats.setdefault(job_id, deque(maxlen=KEPT_BEATS))
            if not beats or beats[-1][0] < seq:
                beats.append((seq, beat))

    def saw_commits(self, job_id: JobId, found: Iterable[tuple[int, Beat]]) -> None:
        """Take in what the index says of a stretch, oldest first; of that stretch it knows no less than was seen."""
        listed = list(found)
        with self._lock:
            known = self._beats.get(job_id, deque[tuple[int, Beat]]())
            first, last = (listed[0][0], listed[-1][0]) if listed else (0, -1)
            older, later = [item for item in known if item[0] < first], [item for item in known if item[0] > last]
            self._beats[job_id] = deque([*older, *listed, *later], maxlen=KEPT_BEATS)

    def newest_seq(self, job_id: JobId) -> int | None:
        """The newest commit that is known; None when nothing was taken in yet."""
        with self._lock:
            beats = self._beats.get(job_id)
            if beats is None:
                return None
            return beats[-1][0] if beats else -1

    def beats(self, job_id: JobId) -> list[Beat]:
        """Commits, oldest first."""
        with self._lock:
            return [beat for _, beat in self._beats.get(job_id, ())]

    def saw_lag(self, job_id: JobId, lag: Lag) -> None:
        """Take in how far a job is behind now."""
        with self._lock:
            self._lags[job_id] = lag
            self._units[job_id] = lag.unit
            past = self._past.setdefault(job_id, deque(maxlen=KEPT_LAGS))
            if lag.behind is None:
                return
            point = self._newest[job_id] = LagPoint(at=lag.at, behind=lag.behind)
            if not past or lag.at - past[-1].at >= LAG_DISTANCE:
                past.append(point)

    def saw_left_out(self, job_id: JobId, files: Mapping[str, int]) -> None:
        """Take in how many files a job is not going to load, by the reason."""
        with self._lock:
            self._left_out[job_id] = dict(files)

    def left_out(self, job_id: JobId) -> Mapping[str, int]:
        """The files that a job is not going to load, as they were last counted."""
        with self._lock:
            return self._left_out.get(job_id, {})

    def lag(self, job_id: JobId, now: datetime) -> Lag | None:
        """How far a job is behind; None when nobody has looked for a while."""
        with self._lock:
            found = self._lags.get(job_id)
        return found if found is not None and now - found.at <= LAG_LIFE else None

    def unit(self, job_id: JobId) -> LagUnit | None:
        """What the lags of a job are counted in, also when the last of them is old."""
        with self._lock:
            return self._units.get(job_id)

    def forget_lag(self, job_id: JobId) -> None:
        """What was seen is not true any longer: nobody looks, or the position was moved. Plots keep it."""
        with self._lock:
            self._lags.pop(job_id, None)

    def past_lags(self, job_id: JobId) -> list[LagPoint]:
        """Lags for a plot, oldest first. The newest is the last, however near it is to the one before."""
        with self._lock:
            past, newest = list(self._past.get(job_id, ())), self._newest.get(job_id)
        return past if newest is None or past[-1:] == [newest] else [*past, newest]

    def forget_all_but(self, job_ids: Iterable[JobId]) -> None:
        """Let go of jobs that are gone."""
        kept = set(job_ids)
        with self._lock:
            for memory in (self._beats, self._lags, self._units, self._past, self._newest, self._left_out):
                for job_id in [known for known in memory if known not in kept]:
                    del memory[job_id]


_OWN: WeakKeyDictionary[Installation, RecentActivity] = WeakKeyDictionary()


def lookout_of(lading: Installation) -> RecentActivity:
    """What all faces of a process show: that of its metrics, or one of its own where nobody measures."""
    for watch in lading.watches:
        if isinstance(found := getattr(watch, "lookout", None), RecentActivity):
            return found
    return _OWN.setdefault(lading, RecentActivity())


def forget_lag(watches: Iterable[object], job_id: JobId) -> None:
    """A job was paused or moved: nobody shows how far it was behind before."""
    for watch in watches:
        lookout = getattr(watch, "lookout", None)
        if isinstance(lookout, RecentActivity):
            lookout.forget_lag(job_id)
