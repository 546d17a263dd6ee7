"""A PostgreSQL that takes what it is sent and never answers: its machine is there, and the server hangs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from lading.clock import SystemClock
from lading.net.heard_postgres import HeardConnection
from lading.net.postgres import end_silence
from lading.tables.iceberg.postgres import with_limits
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import FaultProxy, Weather, serve_faults

LIMIT_S = 1.0


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[FaultProxy]:
    with serve_faults(postgres.socket, "tcp") as made:
        yield made


@pytest.fixture
def engine(proxy: FaultProxy) -> Iterator[Engine]:
    made = create_engine(f"postgresql+psycopg://lading@127.0.0.1:{proxy.port}/postgres", pool_pre_ping=True)
    end_silence(made, LIMIT_S)
    yield made
    proxy.calm()
    made.dispose()


def test_a_statement_without_an_answer_is_an_error_and_the_next_one_has_a_new_connection(
    engine: Engine, proxy: FaultProxy
) -> None:
    clock = SystemClock()
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        proxy.set(Weather(rate=1.0, faults=["silent"]))
        began_s = clock.monotonic_s()
        with pytest.raises(OperationalError, match="no answer for 1 second"):
            connection.execute(text("SELECT 2"))
        assert clock.monotonic_s() - began_s < 20 * LIMIT_S
    proxy.calm()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT 3")).scalar() == 3


def test_an_answer_that_takes_long_and_comes_in_time_is_an_answer(engine: Engine) -> None:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT n, pg_sleep(0.4) FROM generate_series(1, 2) AS n")).all()
        assert [row[0] for row in rows] == [1, 2]


def test_engines_that_a_library_makes_of_such_a_url_end_it_too(proxy: FaultProxy) -> None:
    url = with_limits(f"postgresql+psycopg://lading@127.0.0.1:{proxy.port}/postgres")
    engine = create_engine(url)
    with engine.connect() as connection:
        assert isinstance(connection.connection.driver_connection, HeardConnection)
        assert connection.execute(text("SHOW statement_timeout")).scalar() == "30s"
    engine.dispose()
