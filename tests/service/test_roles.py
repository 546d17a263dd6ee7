"""Roles: privileges that users are given as a whole."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest

from lading.errors import ConfigError, ConflictError, DeniedError, NotFoundError
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.mysql_users import MysqlUsers
from lading.service.security.users import ROOT, Access
from lading.sql.statements.users import Privilege
from lading.store.store import Store
from lading.testing.marked import secret
from tests.service.access_rig import ANNA, JACK, access, clock, run, store, waits

__all__ = ["access", "clock", "store", "waits"]

PASSWORD = secret("horse")


@pytest.fixture
def people(access: Access) -> Access:
    for text in (
        "CREATE USER jack",
        "CREATE USER anna",
        "CREATE ROLE loader",
        "CREATE ROLE reader",
        "GRANT LOAD ON shop.orders TO ROLE loader",
        "GRANT SELECT ON shop.* TO ROLE reader",
        "GRANT SELECT ON hr.staff TO jack",
        "GRANT 'loader', 'reader' TO 'jack'@'%'",
        "GRANT reader TO anna",
    ):
        run(access, text)
    return access


def test_a_user_may_what_is_granted_to_them_and_to_their_roles(people: Access) -> None:
    assert people.may(JACK, Privilege.LOAD, "shop", "orders")
    assert people.may(JACK, Privilege.SELECT, "shop", "clicks")
    assert people.may(JACK, Privilege.SELECT, "hr", "staff")
    assert not people.may(JACK, Privilege.LOAD, "shop", "clicks")
    assert not people.may(ANNA, Privilege.LOAD, "shop", "orders")
    assert people.may(ANNA, Privilege.SELECT, "shop", "orders")
    run(people, "REVOKE loader FROM jack")
    assert not people.may(JACK, Privilege.LOAD, "shop", "orders")
    run(people, "REVOKE SELECT ON shop.* FROM ROLE reader")
    assert not people.may(JACK, Privilege.SELECT, "shop", "orders")
    run(people, "GRANT ADMIN ON *.* TO ROLE reader")
    assert people.may(ANNA, Privilege.ADMIN)
    run(people, "DROP ROLE reader")
    assert not people.may(ANNA, Privilege.ADMIN)
    assert run(people, "SHOW GRANTS", ANNA).rows == ()


def test_lists_say_what_comes_through_roles_and_can_be_run_again(people: Access) -> None:
    shown = run(people, "SHOW GRANTS", JACK)
    assert [row[0] for row in shown.rows] == [
        "GRANT SELECT ON hr.staff TO 'jack'",
        "GRANT 'loader' TO 'jack'",
        "GRANT LOAD ON shop.orders TO ROLE 'loader'",
        "GRANT 'reader' TO 'jack'",
        "GRANT SELECT ON shop.* TO ROLE 'reader'",
    ]
    for (text,) in shown.rows:
        run(people, str(text))
    assert run(people, "SHOW GRANTS FOR jack") == shown
    assert run(people, "SHOW ROLES").dicts() == [
        {"Name": "loader", "Users": "jack", "Grants": "GRANT LOAD ON shop.orders TO ROLE 'loader'"},
        {"Name": "reader", "Users": "anna, jack", "Grants": "GRANT SELECT ON shop.* TO ROLE 'reader'"},
    ]


def test_a_role_that_is_made_again_is_empty_and_nobodys(people: Access) -> None:
    run(people, "DROP ROLE loader")
    run(people, "CREATE ROLE loader")
    assert run(people, "SHOW ROLES").dicts()[0] == {"Name": "loader", "Users": "", "Grants": ""}
    run(people, "DROP USER jack")
    run(people, "CREATE USER jack")
    assert run(people, "SHOW GRANTS FOR jack").rows == ()


def test_mistakes_are_told_and_change_nothing(people: Access) -> None:
    for text, error, what in (
        ("CREATE ROLE loader", ConflictError, "Role 'loader' exists already"),
        ("DROP ROLE nothing", NotFoundError, "no role 'nothing'"),
        ("GRANT loader, nothing TO anna", NotFoundError, "no role 'nothing'"),
        ("GRANT loader TO nobody", NotFoundError, "no user 'nobody'"),
        ("GRANT loader TO root", ConfigError, "'root' has every privilege"),
        ("REVOKE loader FROM anna", ConfigError, "was not granted the role 'loader'"),
        ("REVOKE loader FROM nobody", NotFoundError, "no user 'nobody'"),
        ("GRANT LOAD ON shop.* TO ROLE nothing", NotFoundError, "no role 'nothing'"),
        ("REVOKE LOAD ON shop.* FROM ROLE loader", ConfigError, "was not granted LOAD on exactly this"),
        ("REVOKE LOAD ON shop.* FROM ROLE nothing", NotFoundError, "no role 'nothing'"),
        ("REVOKE LOAD ON shop.orders FROM jack", ConfigError, "was not granted LOAD on exactly this"),
    ):
        with pytest.raises(error, match=what):
            run(people, text)
    assert not people.may(ANNA, Privilege.LOAD, "shop", "orders")
    assert run(people, "CREATE ROLE IF NOT EXISTS loader").message == "role 'loader' was there already"
    assert run(people, "DROP ROLE IF EXISTS nothing").message == "there was no role 'nothing'"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE ROLE x",
        "DROP ROLE loader",
        "GRANT loader TO anna",
        "REVOKE reader FROM anna",
        "GRANT ADMIN ON *.* TO ROLE reader",
        "REVOKE SELECT ON shop.* FROM ROLE reader",
        "SHOW ROLES",
    ],
)
def test_roles_need_admin_on_everything(people: Access, text: str) -> None:
    run(people, "GRANT ADMIN ON shop.* TO ROLE reader")
    with pytest.raises(DeniedError, match="ADMIN command denied to user 'anna'"):
        run(people, text, ANNA)


def test_changes_of_roles_are_audited(people: Access, store: Store) -> None:
    run(people, "REVOKE loader FROM jack")
    run(people, "DROP ROLE loader")
    found = [(entry.user, entry.action, entry.subject, entry.statement) for entry in store.list_audit(limit=100)]
    assert (ROOT.user, "CREATE ROLE", "loader", "CREATE ROLE 'loader'") in found
    assert (ROOT.user, "GRANT", "loader", "GRANT LOAD ON shop.orders TO ROLE 'loader'") in found
    assert (ROOT.user, "GRANT", "jack", "GRANT 'loader', 'reader' TO 'jack'") in found
    assert (ROOT.user, "REVOKE", "jack", "REVOKE 'loader' FROM 'jack'") in found
    assert (ROOT.user, "DROP ROLE", "loader", "DROP ROLE 'loader'") in found


def test_a_role_counts_from_the_next_statement_on(tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading:
        lading.sql(f"CREATE USER jack IDENTIFIED BY '{PASSWORD}'; CREATE DATABASE shop; CREATE ROLE reader")
        lading.sql("CREATE TABLE shop.orders (id BIGINT) USING delta; GRANT SELECT ON shop.orders TO ROLE reader")
        options = MysqlOptions(port=0, close_grace_s=2)
        with (
            MysqlServer(lading, authenticator=MysqlUsers(lading.access), options=options) as server,
            pymysql.connect(host="127.0.0.1", port=server.port, user="jack", password=PASSWORD) as jack,
            jack.cursor() as cursor,
        ):
            with pytest.raises(pymysql.MySQLError):
                cursor.execute("DESCRIBE shop.orders")
            lading.sql("GRANT reader TO jack")
            cursor.execute("DESCRIBE shop.orders")
            assert cursor.fetchall()
            cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'")
            assert cursor.fetchall() == (("orders",),)
            lading.sql("DROP ROLE reader")
            with pytest.raises(pymysql.MySQLError):
                cursor.execute("DESCRIBE shop.orders")
