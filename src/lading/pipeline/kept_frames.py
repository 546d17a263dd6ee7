"""Frames of Spark that are run again and again: Spark analyses, optimises and compiles each of them once.

A batch differs from the one before in what its tasks are given, and in nothing that Spark plans: but for the time, and
for the seeds of what is random, which Spark writes into its plan (`checked.is_same_each_time`). So the functions of
its tasks are the same as well, and what they are to do travels beside them (`sealing.Beside`). For a table of 200
columns planning took longer than some batches.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 32
"""Frames that are kept: each has its plan in the JVM, which has no room for those of a thousand jobs."""


class KeptFrames:
    """Those that were used last, of all jobs. Safe to use from many threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._frames: OrderedDict[Hashable, DataFrame] = OrderedDict()

    def run(
        self, key: Hashable, make: Callable[[], DataFrame], can_keep: Callable[[DataFrame], bool] = lambda _: True
    ) -> list[Any]:
        """What the frame of a key gives now. It is made when there is none, and forgotten when it fails: Spark keeps an
        error of its planning as well as a plan."""
        frame = self._frame(key, make, can_keep)
        try:
            return frame.collect()
        except BaseException:
            with self._lock:
                self._frames.pop(key, None)
            raise

    def _frame(self, key: Hashable, make: Callable[[], DataFrame], can_keep: Callable[[DataFrame], bool]) -> DataFrame:
        with self._lock:
            if (found := self._frames.get(key)) is not None:
                self._frames.move_to_end(key)
                return found
        made = make()
        if not can_keep(made):
            return made
        with self._lock:
            self._frames[key] = made
            while len(self._frames) > self._most:
                self._frames.popitem(last=False)
        return made
