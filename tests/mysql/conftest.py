"""One home and one server for the quick tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading

Connect = Callable[..., "pymysql.connections.Connection[Any]"]


@pytest.fixture(scope="module")
def lading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lading]:
    with Lading(tmp_path_factory.mktemp("mysql") / "home") as opened:
        opened.sql("CREATE DATABASE sales")
        opened.sql(
            "CREATE TABLE sales.orders (id bigint NOT NULL COMMENT 'the key', city varchar(20), amount decimal(10,2), "
            "at timestamp, open boolean) USING delta COMMENT 'what was sold'"
        )
        opened.sql("CREATE TABLE sales.clicks (at timestamp) USING iceberg")
        yield opened


@pytest.fixture(scope="module")
def server(lading: Lading) -> Iterator[MysqlServer]:
    with MysqlServer(lading, options=MysqlOptions(port=0, close_grace_s=2)) as started:
        yield started


@pytest.fixture
def connect(server: MysqlServer) -> Iterator[Connect]:
    opened: list[pymysql.connections.Connection[Any]] = []

    def connect_to(port: int = 0, **options: Any) -> pymysql.connections.Connection[Any]:
        opened.append(pymysql.connect(host="127.0.0.1", port=port or server.port, **{"user": "root", **options}))
        return opened[-1]

    yield connect_to
    for connection in opened:
        if connection.open:
            connection.close()


def rows(connection: pymysql.connections.Connection[Any], text: str) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        return [tuple(row) for row in cursor.fetchall()]
