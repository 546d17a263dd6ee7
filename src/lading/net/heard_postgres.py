"""A connection of psycopg that does not wait without end. A module of its own: psycopg may not be installed."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.waiting import Ready

from lading.clock import SystemClock

Answer = TypeVar("Answer")


class HeardConnection(psycopg.Connection[Any]):
    """Ends when nothing comes from the server for so long. Whether it has done what it was asked for is not known then,
    as of a connection that is cut."""

    limit_s = 0.0
    """0: waits without end."""

    def wait(self, gen: Any, *words: Any, **options: Any) -> Any:
        """As of the class below; it comes back every tenth of a second to hear whether to go on."""
        return super().wait(self._listened(gen) if self.limit_s else gen, *words, **options)

    def _listened(self, asking: Generator[Any, Any, Answer]) -> Generator[Any, Any, Answer]:
        now_s = SystemClock().monotonic_s
        until_s = now_s() + self.limit_s
        try:
            wanted = next(asking)
            while True:
                ready = yield wanted
                if ready != Ready.NONE:
                    until_s = now_s() + self.limit_s
                elif now_s() > until_s:
                    self.close()
                    msg = f"the server gave no answer for {self.limit_s:g} seconds"
                    raise psycopg.OperationalError(msg)
                wanted = asking.send(ready)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
