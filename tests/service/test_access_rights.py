"""Users: what they may do, and what is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError, ConflictError, DeniedError, LadingError, NotFoundError, SqlError
from lading.service.security.users import ROOT, Access, Identity, Privilege, Rights, Scope
from lading.store.records import GrantEntry
from lading.store.store import Store
from lading.testing.marked import secret
from tests.service.access_rig import ANNA, JACK, SESAME, access, clock, run, store, waits

__all__ = ["access", "clock", "store", "waits"]


# What somebody may do.


def test_privileges_hold_where_they_were_given(access: Access) -> None:
    run(access, "CREATE USER jack")
    load, select = Privilege.LOAD, Privilege.SELECT
    assert not access.may(JACK, load, "sales", "orders")
    run(access, "GRANT LOAD ON sales.orders TO jack")
    assert access.may(JACK, load, "sales", "orders")
    assert not access.may(JACK, load, "sales", "clicks")
    assert not access.may(JACK, load, "other", "orders")
    assert not access.may(JACK, load, "sales")
    assert not access.may(JACK, select, "sales", "orders")
    run(access, "GRANT SELECT_PRIV ON sales TO jack")
    assert access.may(JACK, select, "sales", "clicks")
    assert access.may(JACK, select, "sales")
    assert not access.may(JACK, select)
    run(access, "GRANT ADMIN ON * TO jack")
    assert access.may(JACK, load, "anything", "at all")
    assert access.may(JACK, Privilege.ADMIN)
    run(access, "REVOKE ADMIN ON *.* FROM jack")
    assert not access.may(JACK, load, "anything", "at all")
    assert access.may(ROOT, Privilege.ADMIN)


def test_what_is_denied_is_said_as_doris_says_it(access: Access) -> None:
    run(access, "CREATE USER jack")
    with pytest.raises(DeniedError) as caught:
        access.require(JACK, Privilege.LOAD, "sales", "orders")
    assert "LOAD command denied to user 'jack' for table 'sales.orders'." in str(caught.value)
    assert "GRANT LOAD ON sales.orders TO 'jack'" in caught.value.todo
    assert caught.value.face.http_status == 403
    with pytest.raises(DeniedError, match=r"SELECT command denied to user 'jack' for database 'sales'"):
        access.require(JACK, Privilege.SELECT, "sales")
    with pytest.raises(DeniedError, match=r"ADMIN command denied to user 'jack' for '\*\.\*'"):
        access.require(JACK, Privilege.ADMIN)


def test_grants_are_shown_as_statements_that_give_them(access: Access) -> None:
    run(access, "CREATE USER jack")
    run(access, "GRANT LOAD, SELECT ON `my db`.orders TO jack")
    run(access, "GRANT ADMIN ON sales TO jack")
    shown = run(access, "SHOW GRANTS", JACK)
    assert shown.columns == ("Grants for jack",)
    assert [row[0] for row in shown.rows] == [
        "GRANT ADMIN ON sales.* TO 'jack'",
        "GRANT LOAD ON `my db`.orders TO 'jack'",
        "GRANT SELECT ON `my db`.orders TO 'jack'",
    ]
    assert run(access, "SHOW GRANTS FOR jack") == shown
    run(access, "DROP USER jack")
    run(access, "CREATE USER jack")
    assert run(access, "SHOW GRANTS FOR jack").rows == ()
    for (statement,) in shown.rows:
        run(access, statement)
    assert run(access, "SHOW GRANTS FOR jack") == shown
    assert run(access, "SHOW GRANTS").rows == (("GRANT ADMIN ON *.* TO 'root'",),)


def test_a_revoke_that_would_change_nothing_is_told(access: Access) -> None:
    run(access, "CREATE USER jack")
    run(access, "GRANT LOAD ON sales TO jack")
    with pytest.raises(ConfigError, match="was not granted LOAD on exactly this"):
        run(access, "REVOKE LOAD ON sales.orders FROM jack")
    with pytest.raises(ConfigError, match="was not granted SELECT"):
        run(access, "REVOKE LOAD, SELECT ON sales FROM jack")
    assert access.may(JACK, Privilege.LOAD, "sales", "orders")


ONLY_ADMINS = [
    "CREATE USER other",
    f"ALTER USER anna IDENTIFIED BY '{SESAME}'",
    "DROP USER anna",
    "DROP USER IF EXISTS anna",
    "GRANT LOAD ON sales TO jack",
    "GRANT ADMIN ON * TO jack",
    "REVOKE LOAD ON sales FROM anna",
    "SHOW GRANTS FOR anna",
    "SHOW USERS",
    "CREATE TOKEN FOR anna",
]


@pytest.mark.parametrize("text", ONLY_ADMINS)
def test_managing_users_needs_admin_on_everything(access: Access, store: Store, text: str) -> None:
    for name in ("jack", "anna"):
        run(access, f"CREATE USER {name}")
    run(access, "GRANT LOAD ON sales TO anna")
    run(access, "GRANT ADMIN ON sales TO jack")
    before = len(store.list_audit())
    with pytest.raises(DeniedError, match="ADMIN command denied to user 'jack'"):
        run(access, text, JACK)
    assert len(store.list_audit()) == before
    run(access, "GRANT ADMIN ON * TO jack")
    run(access, text, JACK)


def test_what_is_ones_own_needs_no_privilege(access: Access) -> None:
    run(access, f"CREATE USER jack IDENTIFIED BY '{secret('a')}'")
    run(access, f"ALTER USER jack IDENTIFIED BY '{secret('b')}'", JACK)
    assert access.check_password("jack", secret("b")) == JACK
    assert run(access, "SHOW GRANTS FOR jack", JACK).rows == ()
    run(access, "CREATE TOKEN FOR jack", JACK)


@pytest.mark.parametrize("text", ["ALTER USER root IDENTIFIED BY 'xxxx yyyy'", "CREATE TOKEN FOR root"])
def test_what_is_roots_is_only_roots(access: Access, text: str) -> None:
    run(access, "CREATE USER jack")
    run(access, "GRANT ADMIN ON * TO jack")
    with pytest.raises(DeniedError, match="only 'root' may change 'root'"):
        run(access, text, JACK)
    token = access.create_token("root", by=ROOT)
    assert run(access, "SHOW TOKENS", JACK).rows == ()
    with pytest.raises(NotFoundError, match="There is no token"):
        run(access, f"DROP TOKEN {token.token_id}", JACK)


def test_root_stays(access: Access) -> None:
    for text in ("DROP USER root", "GRANT LOAD ON * TO root", "REVOKE ADMIN ON * FROM root"):
        with pytest.raises(ConfigError, match="'root'"):
            run(access, text)


def test_tokens_of_others_are_nobodys_business(access: Access) -> None:
    run(access, "CREATE USER jack")
    run(access, "CREATE USER anna")
    token = access.create_token("jack", by=JACK)
    assert run(access, "SHOW TOKENS", ANNA).rows == ()
    with pytest.raises(NotFoundError):
        run(access, f"DROP TOKEN {token.token_id}", ANNA)
    run(access, f"DROP TOKEN {token.token_id}")


def test_names_are_told_apart_from_nothing(access: Access) -> None:
    for text in ("ALTER USER x IDENTIFIED BY 'y'", "DROP USER x", "GRANT LOAD ON * TO x", "SHOW GRANTS FOR x"):
        with pytest.raises(NotFoundError, match="There is no user 'x'"):
            run(access, text)
    with pytest.raises(NotFoundError):
        run(access, "REVOKE LOAD ON * FROM x")
    with pytest.raises(NotFoundError):
        run(access, "CREATE TOKEN FOR x")
    assert run(access, "DROP USER IF EXISTS x").message == "there was no user 'x'"
    run(access, f"CREATE USER x IDENTIFIED BY '{secret('a')}'")
    with pytest.raises(ConflictError):
        run(access, f"CREATE USER x IDENTIFIED BY '{secret('b')}'")
    assert (
        run(access, f"CREATE USER IF NOT EXISTS x IDENTIFIED BY '{secret('b')}'").message
        == "user 'x' was there already"
    )
    assert access.check_password("x", secret("a")) == Identity(user="x")
    with pytest.raises(SqlError):
        access.create_user("a:b", by=ROOT)


def test_users_are_listed_without_what_is_kept_of_their_passwords(access: Access) -> None:
    run(access, f"CREATE USER jack IDENTIFIED BY '{SESAME}'")
    shown = run(access, "SHOW USERS")
    assert [(row["User"], row["HasPassword"]) for row in shown.dicts()] == [("jack", "Yes"), ("root", "No")]
    assert "argon2" not in str(shown)


def test_every_change_is_audited_without_its_password(access: Access, store: Store) -> None:
    run(access, f"CREATE USER jack IDENTIFIED BY '{SESAME}'")
    run(access, f"ALTER USER jack IDENTIFIED BY '{SESAME}2'", JACK)
    run(access, "GRANT LOAD ON sales TO jack")
    run(access, "CREATE TOKEN FOR jack", JACK)
    entries = store.list_audit()[::-1]
    assert [(entry.user, entry.action, entry.subject) for entry in entries] == [
        ("root", "CREATE USER", "jack"),
        ("jack", "ALTER USER", "jack"),
        ("root", "GRANT", "jack"),
        ("jack", "CREATE TOKEN", "jack"),
    ]
    assert entries[0].statement == "CREATE USER 'jack' IDENTIFIED BY '******'"
    assert SESAME not in str(entries)


# Laws of privileges.

names = st.sampled_from(["a", "b"])
grants = st.builds(
    GrantEntry,
    user=st.just("jack"),
    privilege=st.sampled_from([each.value for each in Privilege]),
    database=st.sampled_from(["", "a", "b"]),
    table=st.sampled_from(["", "a", "b"]),
).filter(lambda grant: bool(grant.database) or not grant.table)
held = st.lists(grants, max_size=6).map(lambda found: Rights(identity=JACK, grants=tuple(found)))


@given(held, st.sampled_from(Privilege), names, names)
@settings(deadline=None)
def test_what_holds_for_the_whole_holds_for_its_parts(
    rights: Rights, privilege: Privilege, database: str, table: str
) -> None:
    if rights.allow(privilege):
        assert rights.allow(privilege, database)
    if rights.allow(privilege, database):
        assert rights.allow(privilege, database, table)
    if rights.allow(Privilege.ADMIN, database, table):
        assert rights.allow(privilege, database, table)
    if rights.allow(privilege, database, table):
        assert rights.see_table(database, table)
        assert rights.see_database(database)


@given(held, grants, st.sampled_from(Privilege), names, names)
@settings(deadline=None)
def test_a_grant_takes_nothing_away(
    rights: Rights, more: GrantEntry, privilege: Privilege, database: str, table: str
) -> None:
    wider = Rights(identity=JACK, grants=(*rights.grants, more))
    assert wider.allow(privilege, database, table) >= rights.allow(privilege, database, table)


def test_nobody_may_anything_at_first() -> None:
    rights = Rights(identity=JACK)
    assert not any(rights.allow(privilege) or rights.allow(privilege, "a", "b") for privilege in Privilege)
    assert not rights.see_database("a")
    assert not rights.see_table("a", "b")
    assert Scope() == Scope(database=None, table=None)


def test_every_error_of_access_says_what_to_do(access: Access) -> None:
    for text in ("DROP USER x", "DROP USER root", "DROP TOKEN x"):
        with pytest.raises(LadingError) as caught:
            run(access, text)
        assert caught.value.left
        assert caught.value.todo
