"""Stores to test: every contract runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lading.store.store import Store, open_store
from lading.testing.clock import ManualClock
from tests.store.postgres import NoPostgresError, PostgresServer, serve_postgres

OpenStore = Callable[[], Store]

_not_tested: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for why in _not_tested:
        terminalreporter.write_line(f"The store was NOT tested on PostgreSQL: {why}", red=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run."""
    with ExitStack() as stack:
        yield _start(stack)


def _start(stack: ExitStack) -> PostgresServer:
    try:
        return stack.enter_context(serve_postgres())
    except NoPostgresError as error:
        _not_tested.append(str(error))
        pytest.skip(f"The store was NOT tested on PostgreSQL: {error}")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store may be made."""
    if request.param == "sqlite":
        return str(tmp_path / "metadata.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh_url()


@pytest.fixture
def open_another(url: str, clock: ManualClock) -> Iterator[OpenStore]:
    """Opens the same store as another process would."""
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(open_store(url, clock))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_another: OpenStore) -> Store:
    return open_another()
