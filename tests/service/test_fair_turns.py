"""One party that asks for everything leaves turns for the others."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.service.limits.fair_semaphore import FairTurns


class Office:
    """Parties that have a turn until they are told to go."""

    def __init__(self, most: int, each: int) -> None:
        self._turns = FairTurns(most, each)
        self.had: list[str] = []
        self.inside: Counter[str] = Counter()
        self._leave: dict[str, list[asyncio.Event]] = {}

    def come(self, whose: str) -> asyncio.Task[None]:
        return asyncio.create_task(self._stay(whose))

    async def go(self, whose: str) -> None:
        self._leave[whose].pop(0).set()
        await settle()

    async def _stay(self, whose: str) -> None:
        async with self._turns.turn(whose):
            self.had.append(whose)
            self.inside[whose] += 1
            leave = asyncio.Event()
            self._leave.setdefault(whose, []).append(leave)
            await leave.wait()
            self.inside[whose] -= 1

    @property
    def is_empty(self) -> bool:
        return not self._turns._taken and not self._turns._waiting


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[], Coroutine[None, None, None]]) -> None:
    """In a thread of its own: browsers of other tests leave a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(story())).result()


def test_one_party_cannot_take_all() -> None:
    async def story() -> None:
        office = Office(most=4, each=2)
        greedy = [office.come("greedy") for _ in range(10)]
        await settle()
        modest = office.come("modest")
        await settle()
        assert office.inside == {"greedy": 2, "modest": 1}
        for _ in greedy:
            await office.go("greedy")
        await office.go("modest")
        await asyncio.gather(*greedy, modest)
        assert office.is_empty

    run(story)


def test_who_has_least_goes_first_and_in_its_own_order() -> None:
    async def story() -> None:
        office = Office(most=2, each=2)
        tasks = [office.come("a") for _ in range(4)]
        await settle()
        tasks += [office.come("b"), office.come("c"), office.come("b")]
        await settle()
        assert office.had == ["a", "a"]
        for whose in ("a", "a", "b", "c"):
            await office.go(whose)
        assert office.had == ["a", "a", "b", "a", "c", "b"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert office.is_empty

    run(story)


@given(seed=st.integers(0, 2**32), most=st.integers(1, 5), each=st.integers(1, 5))
def test_no_turn_is_lost_or_given_twice_whoever_is_cancelled_when(seed: int, most: int, each: int) -> None:
    chance = random.Random(seed)

    async def story() -> None:
        turns, inside = FairTurns(most, each), Counter[str]()

        async def stay(whose: str) -> None:
            async with turns.turn(whose):
                inside[whose] += 1
                assert inside[whose] <= each
                assert inside.total() <= most
                try:
                    for _ in range(chance.randrange(4)):
                        await asyncio.sleep(0)
                finally:
                    inside[whose] -= 1

        tasks: list[asyncio.Task[None]] = []
        for _ in range(30):
            tasks.append(asyncio.create_task(stay(chance.choice("abc"))))
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
            if chance.random() < 0.5:
                await asyncio.sleep(0)
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert not [error for error in done if error and not isinstance(error, asyncio.CancelledError)]
        assert not inside.total()
        assert not turns._taken
        assert not turns._waiting

    run(story)


def test_a_turn_lasts_until_the_work_is_done_also_when_nobody_waits_for_it() -> None:
    async def story() -> None:
        turns = FairTurns(1, 1)
        working: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        first = asyncio.create_task(turns.run("a", lambda: working))
        await settle()
        first.cancel()
        await settle()
        other: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        other.set_result("done")
        second = asyncio.create_task(turns.run("b", lambda: other))
        await settle()
        assert (first.cancelled(), second.done()) == (True, False)
        working.set_result("late")
        assert await second == "done"
        await settle()
        assert not turns._taken

        def refuse() -> asyncio.Future[str]:
            raise RuntimeError

        for _ in range(2):
            with pytest.raises(RuntimeError):
                await turns.run("c", refuse)

    run(story)
