"""Jobs are shared out evenly, none twice, also when services come and go."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lading.ids import JobId
from lading.jobs.leases import share


def settle(services: set[str], leases: dict[JobId, str], jobs: list[JobId], rounds: int = 6) -> int:
    """Rounds of all services, each on what it sees then; how many leases changed hands."""
    moved = 0
    for _ in range(rounds):
        for me in sorted(services):
            moves = share(me, services, leases, jobs)
            for job in moves.give:
                assert leases.pop(job) == me
            for job in moves.take:
                assert leases.get(job) not in services
                leases[job] = me
                moved += 1
    return moved


@pytest.mark.parametrize("seed", range(20))
def test_after_a_few_rounds_everybody_has_an_even_share_and_nothing_moves(seed: int) -> None:
    chance = random.Random(seed)
    jobs = [JobId(f"job{number}") for number in range(chance.randrange(30))]
    services = {f"s{number}" for number in range(1, 1 + chance.randrange(1, 5))}
    leases: dict[JobId, str] = {}
    for _ in range(5):
        settle(services, leases, jobs)
        assert set(leases) >= set(jobs)
        counts = Counter(leases[job] for job in jobs)
        assert not jobs or max(counts.values()) - min(counts[service] for service in services) <= 1
        assert settle(services, leases, jobs) == 0
        if chance.random() < 0.5 and len(services) > 1:
            services.remove(chance.choice(sorted(services)))
        else:
            services.add(f"s{chance.randrange(100)}")
        if chance.random() < 0.3:
            jobs.append(JobId(f"job{len(jobs)}"))


def test_one_service_alone_takes_everything_at_once() -> None:
    jobs = [JobId("a"), JobId("b"), JobId("c")]
    moves = share("me", {"me"}, {JobId("a"): "dead"}, jobs)
    assert set(moves.take) == set(jobs)
    assert moves.give == ()
