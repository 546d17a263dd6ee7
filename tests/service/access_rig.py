"""A home of users with a clock that is moved by hand, for tests of who they are and what they may do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from lading.service.result import Result
from lading.service.security.users import ROOT, Access, Identity
from lading.service.security.vault import Vault
from lading.service.statements.users import execute_user_statement
from lading.sql.statements.users import UserStatement
from lading.sql.syntax.parse import parse_statement
from lading.store.store import Store, open_store
from lading.testing.clock import ManualClock
from lading.testing.marked import secret

SESAME = secret("sesame")

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
VAULT = Vault([bytes(32)])
JACK, ANNA = Identity(user="jack"), Identity(user="anna")
NONCE = b"n" * 20


class Waits:
    """Remembers what was waited for, and moves the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.delays: list[float] = []

    def __call__(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        self.clock.sleep(delay_s)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def waits(clock: ManualClock) -> Waits:
    return Waits(clock)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    with open_store(str(tmp_path / "metadata.db"), clock) as opened:
        yield opened


@pytest.fixture
def access(store: Store, clock: ManualClock, waits: Waits) -> Access:
    return Access(store, clock, VAULT, wait=waits, hasher=CHEAP)


def run(access: Access, text: str, by: Identity = ROOT) -> Result:
    statement = parse_statement(text)
    assert isinstance(statement, UserStatement)
    return execute_user_statement(access, by, statement)
