"""Users: who they are, and how hard they are to guess."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from argon2 import PasswordHasher, extract_parameters
from pymysql._auth import scramble_native_password

from lading.clock import SystemClock
from lading.errors import (
    AuthError,
    ConfigError,
    SecretError,
)
from lading.mysql.protocol.auth import Authenticator, is_proof
from lading.service.security.mysql_users import MysqlUsers
from lading.service.security.throttle import FORGET_AFTER_S, MOST_DELAY_S, MOST_KEYS, Throttle
from lading.service.security.users import ROOT, Access, Identity
from lading.service.security.vault import Vault
from lading.store.store import Store
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.service.access_rig import CHEAP, JACK, NONCE, SESAME, VAULT, Waits, access, clock, run, store, waits

__all__ = ["access", "clock", "store", "waits"]


# Who somebody is.


def test_root_is_there_and_nobody_is_root_before_it_has_a_password(
    access: Access, store: Store, clock: ManualClock
) -> None:
    assert not access.has_password("root")
    for peer in ("", "127.0.0.1", "::1", "unix:/run/socket", "10.0.0.1"):
        for password in ("", "x"):
            with pytest.raises(AuthError, match=r"root\.password"):
                access.check_password("root", password, peer=peer)
        with pytest.raises(AuthError):
            access.check_native("root", b"", NONCE, peer=peer)
    again = Access(store, clock, VAULT, hasher=CHEAP)
    assert [user.name for user in again.list_users(by=ROOT)] == ["root"]


def test_root_needs_its_password(access: Access) -> None:
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
    assert verifier == hashlib.sha1(hashlib.sha1(password.encode()).digest()).digest()


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
        assert caught.value.face.http_status == 401
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


def test_a_hash_costs_what_guessing_it_should() -> None:
    """In another process: the tests themselves hash at less cost."""
    program = "from lading.service.security.passwords import Passwords; print(Passwords().hash('sesame'))"
    kept = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert kept.startswith("$argon2id$")
    asked = extract_parameters(kept)
    assert asked.memory_cost >= 64 * 1024
    assert asked.time_cost >= 3


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
    assert len(throttle.pairs) == MOST_KEYS
    assert ("u0", "a") not in throttle.pairs


def test_many_threads_may_check_at_once(store: Store) -> None:
    access = Access(store, SystemClock(), VAULT, hasher=CHEAP)
    access.create_user("jack", SESAME, by=ROOT)
    gate = threading.Barrier(8)

    def attempt(_: int) -> Identity:
        gate.wait()
        return access.check_password("jack", SESAME)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(attempt, range(8))) == {JACK}


# The MySQL face.


def test_the_mysql_face_gets_the_same_answers(access: Access, waits: Waits) -> None:
    users: Authenticator = MysqlUsers(access)
    open_root = users.native_verifier("root")
    assert open_root
    assert not is_proof(b"", NONCE, open_root)
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
    assert users.delay_s("jack", "a") == 5
    assert users.delay_s("jack", "a") is None
    users.succeeded("jack", "a")
    assert users.delay_s("jack", "a") == 0
    assert users.failed("jack", "a") == 0.25


# Tokens.


def test_a_token_is_shown_once_and_can_be_dropped(access: Access) -> None:
    access.create_user("jack", by=ROOT)
    (made,) = run(access, "CREATE TOKEN FOR jack COMMENT 'nightly'", JACK).dicts()
    assert access.check_token(made["Token"]) == JACK
    (listed,) = run(access, "SHOW TOKENS", JACK).dicts()
    assert (listed["Id"], listed["User"], listed["Comment"]) == (made["TokenId"], "jack", "nightly")
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
