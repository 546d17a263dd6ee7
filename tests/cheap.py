"""What tests do a thousand times, and what need not cost each time what it costs a user once."""

from __future__ import annotations

import os
import ssl
from functools import cache, partial
from typing import Any

from argon2 import PasswordHasher
from httpx._config import create_ssl_context as _http_context
from httpx._transports import default as httpx_transport
from pymysql.connections import Connection
from sqlalchemy import URL, Engine, create_engine

from lading.service.security import passwords
from lading.store import database

_ENGINES: dict[str, Engine] = {}
_mysql_context = Connection._create_ssl_ctx


def _open_quickly(url: URL, **words: Any) -> Engine:
    """Each test has a store of its own, and SQLAlchemy would compile every statement again for each of them."""
    engine = create_engine(url, **words)
    if url.drivername == "sqlite":
        first = _ENGINES.setdefault(url.drivername, engine)
        engine.dialect = engine.pool._dialect = first.dialect
        engine._compiled_cache = first._compiled_cache
    return engine


@cache
def _http_certificates(*_named: str | None) -> ssl.SSLContext:
    return _http_context()


def _for_http(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    """`httpx.get` reads all certificates of the machine for each question, most of which go without TLS."""
    if verify is not True or cert is not None or not trust_env:
        return _http_context(verify=verify, cert=cert, trust_env=trust_env)
    return _http_certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))


@cache
def _mysql_certificates(connection: type[Connection[Any]]) -> ssl.SSLContext:
    made: ssl.SSLContext = _mysql_context(connection, {})
    return made


def _for_mysql(connection: Connection[Any], given: Any) -> ssl.SSLContext:
    """So does each connection of pymysql that was told nothing of TLS."""
    made: ssl.SSLContext = _mysql_certificates(Connection) if given == {} else _mysql_context(connection, given)
    return made


def make_cheap() -> None:
    """In this process. Those that tests start are as users have them."""
    database.create_engine = _open_quickly  # type: ignore[attr-defined, assignment]  # it is imported there
    # Tests make thousands of users and log in as them, and each hash of a password is meant to cost a fifth of a
    # second. tests/service/test_access.py looks at one of the processes that tests start.
    cheap = partial(PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
    passwords.PasswordHasher = cheap  # type: ignore[attr-defined, assignment]  # it is imported there
    httpx_transport.create_ssl_context = _for_http  # type: ignore[attr-defined]  # it is imported there
    Connection._create_ssl_ctx = _for_mysql
