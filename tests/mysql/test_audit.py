"""Who did what, as MySQL clients come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.mysql_users import MysqlUsers
from lading.testing.marked import MARK, secret
from tests.logins import ROOT_PASSWORD, with_root
from tests.mysql.conftest import Connect, rows

PASSWORD = secret("of a mysql client")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def port(home: Path) -> Iterator[int]:
    with Lading(home) as lading:
        options = MysqlOptions(port=0, close_grace_s=2)
        with MysqlServer(lading, authenticator=MysqlUsers(with_root(lading.access)), options=options) as server:
            yield server.port


def told(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "audit" / "audit.log").read_text().splitlines()]


def test_what_a_client_does_is_kept_and_the_chatter_of_drivers_is_not(home: Path, port: int, connect: Connect) -> None:
    root = connect(port, password=ROOT_PASSWORD)
    rows(root, f"CREATE USER ann IDENTIFIED BY '{PASSWORD}'")
    with pytest.raises(pymysql.OperationalError):
        connect(port, user="ann", password="wrong")
    ann = connect(port, user="ann", password=PASSWORD)
    for chatter in ("SELECT @@version", "SET NAMES utf8mb4", "SELECT 1"):
        rows(ann, chatter)
    rows(ann, "SELECT table_name FROM information_schema.tables WHERE table_name = 'x'")
    rows(ann, "PREPARE p FROM 'SHOW TABLES'")
    rows(ann, "EXECUTE p")
    for refused in ("CREATE DATABASE shop", "CREATE JOB j PROPERTIES ('password' 'swordfish')", "KILL 1"):
        with pytest.raises(pymysql.MySQLError):
            rows(ann, refused)
    with pytest.raises(pymysql.MySQLError):
        rows(root, "CREATE JOB j PROPERTIES ('password' 'swordfish')")
    assert [(one["user"], one["kind"], one["result"], one["what"], one.get("error", "")) for one in told(home)] == [
        ("root", "login", "ok", "password", ""),
        ("root", "account", "ok", "CREATE USER 'ann' IDENTIFIED BY '******'", ""),
        ("ann", "login", "denied", "password", "Auth"),
        ("ann", "login", "ok", "password", ""),
        (
            *("ann", "statement", "ok"),
            *("SELECT table_name FROM information_schema.tables WHERE table_name = '******'", ""),
        ),
        ("ann", "statement", "ok", "PREPARE p FROM '******'", ""),
        ("ann", "statement", "ok", "SHOW TABLES", ""),
        ("ann", "statement", "denied", "CREATE DATABASE shop", "Denied"),
        ("ann", "statement", "denied", "CREATE JOB j PROPERTIES ('******' '******')", "Denied"),
        ("ann", "statement", "denied", "KILL 1", "1095"),
        ("root", "statement", "error", "CREATE JOB j PROPERTIES ('******' '******')", "Sql"),
    ]
    assert {(one["face"], one["peer"]) for one in told(home)} == {("mysql", "127.0.0.1")}
    assert MARK not in (home / "audit" / "audit.log").read_text()


def test_show_audit_over_mysql(port: int, connect: Connect) -> None:
    root = connect(port, password=ROOT_PASSWORD)
    rows(root, "CREATE DATABASE shop")
    with root.cursor() as cursor:
        cursor.execute("SHOW AUDIT KIND 'statement' LIKE '%shop'")
        assert [column[0] for column in cursor.description][:3] == ["Time", "User", "Face"]
        assert [row[8] for row in cursor.fetchall()] == ["CREATE DATABASE shop"]
