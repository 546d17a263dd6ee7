"""A service on Spark is killed in the middle of a batch: another one, which is warm, has its job within 20 seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.support.other_readers import read_elsewhere
from tests.support.takeover import NAMES, Pair, wait_until

COMMITTED_WITHIN_S = 20.0


@pytest.mark.slow
@pytest.mark.java
def test_a_warm_service_commits_within_twenty_seconds_of_a_kill(tmp_path: Path, postgres: PostgresServer) -> None:
    with Pair(tmp_path, postgres.fresh_url()) as pair:
        for job in NAMES:
            pair.send(job, files=40, rows=5_000)
        pair.wait_until_warm()
        for job in NAMES:
            pair.send(job, files=20, rows=5_000)
        name, taken = pair.kill_holder("a")
        print(f"taken over after {taken.leased_s:.1f} s, committed after {taken.committed_s:.1f} s")
        assert taken.committed_s < COMMITTED_WITHIN_S
        pair.start(name)
        for job in NAMES:
            done = f"everything of {job} is loaded"
            wait_until(lambda job=job: len(ids(pair, job)) >= pair.sent(job), done)  # type: ignore[misc]
            assert ids(pair, job) == [*range(pair.sent(job))]


def ids(pair: Pair, job: str) -> list[int]:
    """As Polars reads the table."""
    return sorted(read_elsewhere("delta", pair.table(job))["id"].to_pylist())
