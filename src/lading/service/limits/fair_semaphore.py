"""Taking turns, so that nobody who asks for much keeps the others waiting."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class FairTurns:
    """At most `most` turns at once, of which one party has at most `each`.

    Of those who wait, the party that has the fewest turns goes first, and each party goes in its own order. Belongs to
    one loop; a task that is cancelled while it waits gives nothing back and takes nothing.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait for a turn and have it within this."""
        await self._take(whose)
        try:
            yield
        finally:
            self._give_back(whose)

    async def run(self, whose: str, start: Callable[[], asyncio.Future[T]]) -> T:
        """Wait for a turn and start something. The turn lasts until that is done, also when nobody waits any more."""
        await self._take(whose)
        try:
            begun = start()
        except BaseException:
            self._give_back(whose)
            raise
        begun.add_done_callback(lambda _: self._give_back(whose))
        return await asyncio.shield(begun)

    async def _take(self, whose: str) -> None:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(given)
        self._hand_out()
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                self._give_back(whose)  # It was given and cancelled in the same moment.
            else:
                self._forget(whose, given)
            raise

    def _give_back(self, whose: str) -> None:
        self._taken[whose] -= 1
        if not self._taken[whose]:
            del self._taken[whose]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._taken.total() < self._most:
            able = [party for party in self._waiting if self._taken[party] < self._each]
            if not able:
                return
            next_one = min(able, key=lambda party: self._taken[party])
            given = self._waiting[next_one][0]
            self._forget(next_one, given)
            if not given.done():
                self._taken[next_one] += 1
                given.set_result(None)

    def _forget(self, whose: str, given: asyncio.Future[None]) -> None:
        """No longer waits. A party that waits for more waits behind the others."""
        line = self._waiting.pop(whose, deque())
        if given in line:
            line.remove(given)
        if line:
            self._waiting[whose] = line
