"""Users: who they are, what they may do, and how hard they are to guess."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from argon2 import PasswordHasher
from hypothesis import given, settings
from hypothesis import strategies as st
from mysql_mimic.auth import NativePasswordAuthPlugin
from pymysql._auth import scramble_native_password

from lading.clock import SystemClock
from lading.errors import (
    AuthError,
    ConfigError,
    DeniedError,
    InvalidNameError,
    LadingError,
    SecretError,
    UserExistsError,
    UserNotFoundError,
)
from lading.mysql.auth import Authenticator, is_proof
from lading.service.access import ROOT, Access, Identity, Privilege, Rights, Scope
from lading.service.mysql_users import MysqlUsers
from lading.service.result import Result
from lading.service.secrets import Vault
from lading.service.throttle import FORGET_AFTER_S, MOST_DELAY_S, MOST_KEYS, Throttle
from lading.service.user_statements import execute_user_statement
from lading.sql.parse import parse_statement
from lading.sql.user_statements import UserStatement
from lading.store.records import GrantEntry
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


# Who somebody is.


def test_root_is_there_without_a_password(access: Access, store: Store, clock: ManualClock) -> None:
    assert access.check_password("root", "") == ROOT
    assert access.check_native("root", b"", NONCE) == ROOT
    assert not access.has_password("root")
    with pytest.raises(AuthError):
        access.check_password("root", "x")
    again = Access(store, clock, VAULT, hasher=CHEAP)
    assert [user.name for user in again.list_users(by=ROOT)] == ["root"]


def test_root_with_a_password_is_no_longer_open(access: Access) -> None:
    access.set_password("root", SESAME, by=ROOT)
    assert access.has_password("root")
    assert access.check_password("root", SESAME) == ROOT
    for wrong in ("", "Sesame", "sesame "):
        with pytest.raises(AuthError):
            access.check_password("root", wrong)
    with pytest.raises(AuthError):
        access.check_native("root", b"", NONCE)


@pytest.mark.parametrize(
    "password", [secret("x"), secret("größe 💧"), secret("").ljust(1024, "a"), secret('it\'s "quoted" \\ and \x00')]
)
def test_a_password_is_right_on_every_face(access: Access, password: str) -> None:
    access.create_user("jack", password, by=ROOT)
    assert access.check_password("jack", password) == JACK
    assert access.check_password("jack", password) == JACK
    answer = scramble_native_password(password.encode(), NONCE)
    assert access.check_native("jack", answer, NONCE) == JACK
    with pytest.raises(AuthError):
        access.check_native("jack", answer, b"m" * 20)
    verifier = access.native_verifier("jack")
    assert verifier is not None
    assert verifier.hex() == NativePasswordAuthPlugin.create_auth_string(password)


def test_a_user_without_a_password_has_only_tokens(access: Access) -> None:
    access.create_user("jack", by=ROOT)
    with pytest.raises(AuthError):
        access.check_password("jack", "")
    for answer in (b"", scramble_native_password(b"", NONCE), bytes(20)):
        with pytest.raises(AuthError):
            access.check_native("jack", answer, NONCE)
    assert access.check_token(access.create_token("jack", by=JACK).text) == JACK


def test_a_wrong_password_and_a_wrong_name_look_the_same(access: Access, waits: Waits) -> None:
    access.create_user("jack", SESAME, by=ROOT)
    told = []
    for name in ("jack", "nobody"):
        with pytest.raises(AuthError) as caught:
            access.check_password(name, "wrong", peer="10.1.2.3")
        told.append(str(caught.value).replace(name, "x"))
        assert caught.value.http_status == 401
    assert told[0] == told[1]
    assert "Access denied for user 'x'@'10.1.2.3' (using password: YES)" in told[0]
    assert waits.delays[0] == waits.delays[1]
    assert len(access.native_verifier("nobody") or b"") == 20


class CountingHasher(PasswordHasher):
    """Counts the checks that cost something."""

    checks = 0

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        self.checks += 1
        return super().verify(hash, password)


def test_a_name_that_nobody_has_costs_as_much_as_a_wrong_password(store: Store, clock: ManualClock) -> None:
    hasher = CountingHasher(time_cost=1, memory_cost=8, parallelism=1)
    access = Access(store, clock, VAULT, hasher=hasher)
    access.create_user("jack", SESAME, by=ROOT)
    access.create_user("anna", by=ROOT)
    for number, name in enumerate(("jack", "anna", "nobody", "not a name", "nul\x00"), start=1):
        with pytest.raises(AuthError):
            access.check_password(name, "wrong")
        assert hasher.checks == number


def test_a_right_password_is_known_again_until_it_changes(store: Store, clock: ManualClock) -> None:
    hasher = CountingHasher(time_cost=1, memory_cost=8, parallelism=1)
    access = Access(store, clock, VAULT, hasher=hasher)
    other = Access(store, clock, VAULT, hasher=CHEAP)
    access.create_user("jack", SESAME, by=ROOT)
    for _ in range(3):
        assert access.check_password("jack", SESAME) == JACK
    assert hasher.checks == 1
    other.set_password("jack", secret("other"), by=JACK)
    with pytest.raises(AuthError):
        access.check_password("jack", SESAME)
    assert access.check_password("jack", secret("other")) == JACK


@pytest.mark.parametrize("password", ["", "******", "a" * 1025])
def test_what_nobody_means_as_a_password_is_refused(access: Access, password: str) -> None:
    with pytest.raises(ConfigError, match="The new password is"):
        access.set_password("root", password, by=ROOT)
    with pytest.raises(ConfigError):
        access.create_user("jack", password, by=ROOT)
    assert not access.has_password("root")


def test_nothing_that_is_kept_gives_the_password_away(access: Access, store: Store, tmp_path: Path) -> None:
    run(access, f"CREATE USER jack IDENTIFIED BY '{SESAME}-street'")
    verifier = access.native_verifier("jack")
    assert verifier is not None
    token = run(access, "CREATE TOKEN FOR jack COMMENT 'c'").dicts()[0]["Token"]
    store.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"$argon2id$" in kept
    for word in (f"{SESAME}-street", verifier.hex(), token, token.split("_", 2)[2]):
        assert word.encode() not in kept


def test_a_lost_key_is_told_and_healed(store: Store, clock: ManualClock, access: Access) -> None:
    access.create_user("jack", SESAME, by=ROOT)
    other = Access(store, clock, Vault([b"k" * 32]), hasher=CHEAP)
    assert other.check_password("jack", SESAME) == JACK
    with pytest.raises(SecretError, match="set the password of 'jack' again with ALTER USER"):
        other.native_verifier("jack")
    other.set_password("jack", SESAME, by=JACK)
    assert other.check_native("jack", scramble_native_password(SESAME.encode(), NONCE), NONCE) == JACK


# Guessing.


def test_wrong_passwords_are_answered_later_and_later(access: Access, waits: Waits) -> None:
    access.create_user("jack", SESAME, by=ROOT)
    for _ in range(8):
        with pytest.raises(AuthError):
            access.check_password("jack", "wrong", peer="a")
    assert waits.delays == [0.25, 0.5, 1, 2, 4, 5, 5, 5]


def test_others_do_not_wait(access: Access, waits: Waits) -> None:
    access.create_user("jack", SESAME, by=ROOT)
    access.create_user("anna", SESAME, by=ROOT)
    with pytest.raises(AuthError):
        access.check_password("jack", "wrong", peer="a")
    waits.delays.clear()
    access.check_password("jack", SESAME, peer="b")
    access.check_password("anna", SESAME, peer="a")
    assert waits.delays == []


def test_a_right_password_ends_it(access: Access, waits: Waits) -> None:
    access.create_user("jack", SESAME, by=ROOT)
    answer = scramble_native_password(SESAME.encode(), NONCE)
    for _ in range(2):
        waits.delays.clear()
        for _ in range(2):
            with pytest.raises(AuthError):
                access.check_native("jack", bytes(20), NONCE)
        access.check_native("jack", answer, NONCE)
        assert waits.delays == [0.25, 0.5]


def test_it_is_forgotten_after_a_while(clock: ManualClock, waits: Waits) -> None:
    throttle = Throttle(clock, waits)
    throttle.punish("jack", "a")
    clock.sleep(FORGET_AFTER_S + 1)
    throttle.admit("jack", "a")
    throttle.punish("jack", "a")
    assert waits.delays == [0.25, 0.25]


def test_attempts_that_come_together_are_looked_at_one_after_the_other(clock: ManualClock) -> None:
    delays: list[float] = []
    throttle = Throttle(clock, delays.append)  # Nobody's waiting moves the clock: all of it happens at once.
    throttle.punish("jack", "a")
    throttle.punish("jack", "a")
    delays.clear()
    most = round(MOST_DELAY_S / 0.5)
    for _ in range(most):
        throttle.admit("jack", "a")
    assert delays == [0.5 * number for number in range(1, most + 1)]
    with pytest.raises(AuthError, match="too many wrong passwords"):
        throttle.admit("jack", "a")


def test_names_nobody_has_do_not_fill_the_memory(clock: ManualClock) -> None:
    throttle = Throttle(clock, lambda _: None)
    for number in range(MOST_KEYS + 100):
        throttle.punish(f"u{number}", "a")
    assert len(throttle._records) == MOST_KEYS
    assert ("u0", "a") not in throttle._records


def test_many_threads_may_check_at_once(store: Store) -> None:
    access = Access(store, SystemClock(), VAULT, hasher=CHEAP)
    access.create_user("jack", SESAME, by=ROOT)
    gate = threading.Barrier(8)

    def attempt(_: int) -> Identity:
        gate.wait()
        return access.check_password("jack", SESAME)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(attempt, range(8))) == {JACK}


def test_an_open_root_is_open_on_this_machine_alone(access: Access) -> None:
    for peer in ("", "127.0.0.1", "::1", "unix:/run/socket"):
        assert access.check_password("root", "", peer=peer) == ROOT
        assert access.check_native("root", b"", NONCE, peer=peer) == ROOT
    for peer in ("10.0.0.1", "2001:db8::1", "fe80::1%eth0", "::ffff:10.0.0.1"):
        with pytest.raises(AuthError):
            access.check_password("root", "", peer=peer)
        with pytest.raises(AuthError):
            access.check_native("root", b"", NONCE, peer=peer)


# The MySQL face.


def test_the_mysql_face_gets_the_same_answers(access: Access, waits: Waits) -> None:
    users: Authenticator = MysqlUsers(access)
    assert users.native_verifier("root") == b""
    assert users.may_connect("root", "127.0.0.1")
    assert not users.may_connect("root", "10.0.0.1")
    run(access, f"CREATE USER jack IDENTIFIED BY '{SESAME}'")
    run(access, "GRANT LOAD ON sales.orders TO jack")
    kept = users.native_verifier("jack")
    assert kept is not None
    assert is_proof(scramble_native_password(SESAME.encode(), NONCE), NONCE, kept)
    nobody = users.native_verifier("nobody")
    assert nobody is not None
    assert not is_proof(b"", NONCE, nobody)
    assert users.check_password("jack", SESAME, "a")
    assert not users.check_password("jack", "wrong", "a")
    assert users.sees("jack", "sales", "")
    assert users.sees("jack", "sales", "orders")
    assert not users.sees("jack", "sales", "clicks")
    assert not users.sees("jack", secret("other"), "")
    assert (users.is_admin("jack"), users.is_admin("root")) == (False, True)
    assert waits.delays == []


def test_the_mysql_face_waits_as_the_others_do(access: Access, clock: ManualClock) -> None:
    users = MysqlUsers(access)
    assert [users.failed("jack", "a") for _ in range(7)] == [0.25, 0.5, 1, 2, 4, 5, 5]
    assert users.may_connect("jack", "a")
    users.succeeded("jack", "a")
    assert users.failed("jack", "a") == 0.25


# Tokens.


def test_a_token_is_shown_once_and_can_be_dropped(access: Access) -> None:
    access.create_user("jack", by=ROOT)
    (made,) = run(access, "CREATE TOKEN FOR jack COMMENT 'nightly'", JACK).dicts()
    assert access.check_token(made["Token"]) == JACK
    (listed,) = run(access, "SHOW TOKENS", JACK).dicts()
    assert (listed["TokenId"], listed["User"], listed["Comment"]) == (made["TokenId"], "jack", "nightly")
    assert made["Token"] not in str(listed)
    run(access, f"DROP TOKEN {made['TokenId']}", JACK)
    with pytest.raises(AuthError, match="the token is not valid"):
        access.check_token(made["Token"])


def test_a_token_of_root_is_root(access: Access) -> None:
    assert access.check_token(access.create_token("root", by=ROOT).text) == ROOT


def test_wrong_tokens_are_refused(access: Access) -> None:
    made = access.create_token("root", by=ROOT)
    wrong = ["", "x", "lading__", f"lading_{made.token_id}_", made.text[:-1], made.text + "x", made.text.upper()]
    for text in [*wrong, "lading_nul\x00_x", f"other_{made.token_id}_{made.text.split('_', 2)[2]}", "\ud83d"]:
        with pytest.raises(AuthError):
            access.check_token(text)
    assert made.text not in repr(made)


def test_tokens_go_with_their_user(access: Access) -> None:
    access.create_user("jack", by=ROOT)
    token = access.create_token("jack", by=ROOT)
    access.drop_user("jack", by=ROOT)
    access.create_user("jack", by=ROOT)
    with pytest.raises(AuthError):
        access.check_token(token.text)


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
    assert caught.value.http_status == 403
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


@pytest.mark.parametrize("text", ["ALTER USER root IDENTIFIED BY 'x'", "CREATE TOKEN FOR root"])
def test_what_is_roots_is_only_roots(access: Access, text: str) -> None:
    run(access, "CREATE USER jack")
    run(access, "GRANT ADMIN ON * TO jack")
    with pytest.raises(DeniedError, match="only 'root' may change 'root'"):
        run(access, text, JACK)
    token = access.create_token("root", by=ROOT)
    assert run(access, "SHOW TOKENS", JACK).rows == ()
    with pytest.raises(UserNotFoundError, match="There is no token"):
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
    with pytest.raises(UserNotFoundError):
        run(access, f"DROP TOKEN {token.token_id}", ANNA)
    run(access, f"DROP TOKEN {token.token_id}")


def test_names_are_told_apart_from_nothing(access: Access) -> None:
    for text in ("ALTER USER x IDENTIFIED BY 'y'", "DROP USER x", "GRANT LOAD ON * TO x", "SHOW GRANTS FOR x"):
        with pytest.raises(UserNotFoundError, match="There is no user 'x'"):
            run(access, text)
    with pytest.raises(UserNotFoundError):
        run(access, "REVOKE LOAD ON * FROM x")
    with pytest.raises(UserNotFoundError):
        run(access, "CREATE TOKEN FOR x")
    assert run(access, "DROP USER IF EXISTS x").message == "there was no user 'x'"
    run(access, f"CREATE USER x IDENTIFIED BY '{secret('a')}'")
    with pytest.raises(UserExistsError):
        run(access, f"CREATE USER x IDENTIFIED BY '{secret('b')}'")
    assert (
        run(access, f"CREATE USER IF NOT EXISTS x IDENTIFIED BY '{secret('b')}'").message
        == "user 'x' was there already"
    )
    assert access.check_password("x", secret("a")) == Identity(user="x")
    with pytest.raises(InvalidNameError):
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
