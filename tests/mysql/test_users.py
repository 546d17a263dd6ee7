"""The users of a home, through the MySQL face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.mysql_users import MysqlUsers
from lading.testing.marked import secret
from tests.logins import ROOT_PASSWORD, with_root
from tests.mysql.conftest import Connect, rows

HORSE, BATTERY = secret("correct horse"), secret("battery")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with Lading(tmp_path / "home") as lading:
        options = MysqlOptions(port=0, close_grace_s=2)
        with MysqlServer(lading, authenticator=MysqlUsers(with_root(lading.access)), options=options) as server:
            yield server.port


def test_users_are_made_and_log_in_and_lose_their_way_in(port: int, connect: Connect) -> None:
    root = connect(port, password=ROOT_PASSWORD)
    rows(root, f"CREATE USER ann IDENTIFIED BY '{HORSE}'")
    ann = connect(port, user="ann", password=HORSE)
    assert rows(ann, "SELECT CURRENT_USER()") == [("ann@%",)]
    rows(root, f"ALTER USER root IDENTIFIED BY '{BATTERY}'")
    for user, password in (("root", ""), ("root", ROOT_PASSWORD), ("ann", "correct"), ("ann", ""), ("nobody", "")):
        with pytest.raises(pymysql.OperationalError) as caught:
            connect(port, user=user, password=password)
        assert caught.value.args[0] == 1045
    assert rows(connect(port, password=BATTERY), "SELECT 1") == [(1,)]


def test_who_lacks_a_privilege_is_told_with_a_number(port: int, connect: Connect) -> None:
    root = connect(port, password=ROOT_PASSWORD)
    for text in (
        "CREATE DATABASE sales",
        "CREATE TABLE sales.orders (id bigint) USING delta",
        f"CREATE USER bob IDENTIFIED BY '{HORSE}'",
    ):
        rows(root, text)
    bob = connect(port, user="bob", password=HORSE)
    for text, codes in (
        ("DROP TABLE sales.orders", (1142, 1044, 1146)),
        ("CREATE USER eve", (1227,)),
        ("DROP DATABASE sales", (1044, 1227, 1049)),
    ):
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(bob, text)
        assert caught.value.args[0] in codes, caught.value.args
    assert rows(bob, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sales'") == []
    rows(root, "GRANT SELECT ON sales.orders TO bob")
    assert rows(bob, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sales'") == [("orders",)]


def test_a_new_password_and_a_drop_end_the_connections_of_a_user(port: int, connect: Connect) -> None:
    root = connect(port, password=ROOT_PASSWORD)
    rows(root, f"CREATE USER ann IDENTIFIED BY '{HORSE}'")
    stolen, own = connect(port, user="ann", password=HORSE), connect(port, user="ann", password=HORSE)
    rows(own, f"ALTER USER ann IDENTIFIED BY '{BATTERY}'")
    assert rows(own, "SHOW DATABASES")  # Who set the new password goes on.
    with pytest.raises(pymysql.OperationalError, match="has ended") as caught:
        rows(stolen, "SHOW DATABASES")
    assert caught.value.args[0] == 1045
    rows(root, "DROP USER ann")
    rows(root, f"CREATE USER ann IDENTIFIED BY '{BATTERY}'")
    with pytest.raises(pymysql.OperationalError, match="has ended"):
        rows(own, "SHOW DATABASES")
    other = connect(port, password=ROOT_PASSWORD)
    rows(root, f"ALTER USER root IDENTIFIED BY '{BATTERY}'")
    with pytest.raises(pymysql.OperationalError, match="has ended"):
        rows(other, "SHOW USERS")
