"""Password rules and locks, as settings of the service change them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from lading.errors import AuthError, ConfigError
from lading.service.facade import Lading
from lading.service.security.throttle import Throttle, network_of
from lading.service.security.users import ROOT, Access
from lading.settings import SecuritySettings, load_settings
from lading.store.store import Store
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.service.access_rig import CHEAP, SESAME, VAULT, Waits, clock, store, waits

__all__ = ["clock", "store", "waits"]

HOME, WORK, EVIL = "192.0.2.1", "198.51.100.7", "203.0.113.9"
RULES = SecuritySettings(lockout_failures=3, lockout_minutes=10, name_failures=8, address_failures=4)
DOCS = Path(__file__).parent.parent.parent / "docs" / "users.md"


@pytest.fixture
def strict(store: Store, clock: ManualClock, waits: Waits) -> Access:
    made = Access(store, clock, VAULT, wait=waits, hasher=CHEAP, security=RULES)
    made.create_user("jack", SESAME, by=ROOT)
    return made


def fail(access: Access, user: str, peer: str, times: int = 1) -> list[str]:
    said = []
    for _ in range(times):
        with pytest.raises(AuthError) as caught:
            access.check_password(user, "wrong", peer=peer)
        said.append(str(caught.value))
    return said


def test_many_wrong_passwords_lock_a_name_for_one_network_and_the_lock_ends(strict: Access, clock: ManualClock) -> None:
    assert "too many" not in "".join(fail(strict, "jack", EVIL, 3))
    with pytest.raises(AuthError, match=r"too many wrong passwords.*not looked at.*in 10 minutes"):
        strict.check_password("jack", SESAME, peer=EVIL)
    assert strict.check_password("jack", SESAME, peer=HOME).user == "jack"
    clock.sleep(599 - 10)
    fail(strict, "jack", EVIL)  # It does not make the lock longer.
    clock.sleep(11)
    assert strict.check_password("jack", SESAME, peer=EVIL).user == "jack"


def test_strangers_from_everywhere_lock_a_name_but_not_where_its_owner_is(strict: Access, clock: ManualClock) -> None:
    strict.check_password("jack", SESAME, peer=HOME)
    for number in range(8):
        fail(strict, "jack", f"203.0.113.{number}")
    with pytest.raises(AuthError, match="too many wrong passwords"):
        strict.check_password("jack", SESAME, peer=WORK)
    for peer in (HOME, "127.0.0.1", "::1"):
        assert strict.check_password("jack", SESAME, peer=peer).user == "jack"
    clock.sleep(601)
    assert strict.check_password("jack", SESAME, peer=WORK).user == "jack"


def test_one_address_with_many_names_is_slowed_down(strict: Access, waits: Waits) -> None:
    strict.check_password("jack", SESAME, peer=EVIL)
    strict.create_user("anna", SESAME, by=ROOT)
    for number in range(4):
        fail(strict, f"u{number}", EVIL)
    assert waits.delays == [0.25] * 4
    waits.delays.clear()
    for number in range(6):
        fail(strict, f"v{number}", EVIL)
    assert waits.delays == [0.25, 0.5, 1, 2, 4, 5]
    waits.delays.clear()
    fail(strict, "v9", EVIL, 1)
    assert strict.check_password("jack", SESAME, peer=EVIL).user == "jack"  # Has logged in from there.
    assert strict.check_password("anna", SESAME, peer=WORK).user == "anna"
    assert waits.delays == [5]


def test_attempts_of_one_address_that_come_together_wait_for_each_other(clock: ManualClock) -> None:
    throttle = Throttle(clock, lambda _: None, RULES)
    for number in range(9):
        throttle.note(f"u{number}", EVIL)
    assert throttle.reserve("w", EVIL) == 4
    with pytest.raises(AuthError, match="too many wrong passwords"):
        throttle.reserve("x", EVIL)
    assert throttle.reserve("x", WORK) == 0


def test_the_owner_of_an_ipv6_network_gains_nothing_by_its_many_addresses(strict: Access) -> None:
    fail(strict, "jack", "2001:db8:1:2::1")
    fail(strict, "jack", "2001:db8:1:2:ffff::3%eth0", 2)
    with pytest.raises(AuthError, match="too many wrong passwords"):
        strict.check_password("jack", SESAME, peer="2001:db8:1:2:3::4")
    assert strict.check_password("jack", SESAME, peer="2001:db8:1:3::1").user == "jack"
    assert (network_of("::ffff:192.0.2.1"), network_of("::1"), network_of("")) == ("192.0.2.1", "::1", "")


def test_locks_can_be_left_out(store: Store, clock: ManualClock, waits: Waits) -> None:
    off = SecuritySettings(lockout_failures=0, name_failures=0, address_failures=0)
    access = Access(store, clock, VAULT, wait=waits, hasher=CHEAP, security=off)
    access.create_user("jack", SESAME, by=ROOT)
    assert "too many" not in "".join(fail(access, "jack", EVIL, 300))
    assert access.check_password("jack", SESAME, peer=EVIL).user == "jack"


@pytest.fixture
def lading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    (tmp_path / "known.txt").write_text("Correct-Horse-7\n\n")
    monkeypatch.setenv("LADING_PASSWORD_LIST", str(tmp_path / "known.txt"))
    monkeypatch.setenv("LADING_PASSWORD_CLASSES", "3")
    monkeypatch.setenv("LADING_PASSWORD_MIN_LENGTH", "10")
    with Lading(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("Short-9", "is shorter than 10 characters"),
        ("correct-horse-7", "is one of those that are guessed first"),
        ("administrator", "is one of those that are guessed first"),
        ("JACK.sparrow", "is the name of the user"),
        ("onlysmallletters", "has fewer than 3 of these"),
    ],
)
def test_a_new_password_obeys_the_rules(lading: Lading, password: str, why: str) -> None:
    lading.sql("CREATE USER anna")
    with pytest.raises(ConfigError, match=f"The new password {why}") as caught:
        lading.sql(f"CREATE USER 'jack.sparrow' IDENTIFIED BY '{password}'")
    assert password not in str(caught.value)
    if "name" not in why:
        with pytest.raises(ConfigError, match=f"The new password {why}"):
            lading.sql(f"ALTER USER anna IDENTIFIED BY '{password}'")
    lading.sql(f"CREATE USER 'jack.sparrow' IDENTIFIED BY '{secret('Tall Ship')}'")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("LADING_TOKEN_DAYS", "-1"), ("LADING_LOCKOUT_MINUTES", "soon"), ("LADING_PASSWORD_LIST", "/nowhere/at/all")],
)
def test_a_setting_that_cannot_be_used_is_named(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        load_settings({variable: value})


def test_every_setting_and_its_default_is_on_the_page() -> None:
    page = DOCS.read_text()
    for each in fields(SecuritySettings):
        default = each.default if isinstance(each.default, int) else "none"
        assert f"| `LADING_{each.name.upper()}` | {default} |" in page, each.name
