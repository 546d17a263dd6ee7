"""The first password of root: made once, kept for its owner alone, and never half set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading import failpoints
from lading.errors import AuthError, ConfigError
from lading.service.facade import Lading
from lading.service.runtime.address_file import FILE_NAME as ADDRESS
from lading.service.runtime.address_file import ServiceAddress, find_address, write_address
from lading.service.security.root_password import FILE_NAME, ensure_root_password, make_password
from lading.service.security.users import Access
from lading.testing.marked import secret
from tests.logins import read_root_login

GIVEN = secret("given by the operator")


class DiedError(Exception):
    """The process was killed here."""


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    with Lading(tmp_path / "home") as opened:
        yield opened
    failpoints.disarm_all()


def die_at(name: str) -> None:
    def die(_name: str) -> None:
        raise DiedError

    failpoints.arm(name, die)


def start(lading: Lading, given: Path | None = None) -> tuple[str, bool]:
    """What a start shows, and whether it says where the file is."""
    told = ensure_root_password(lading.access, lading.home.path, given)
    return told.first, told.file is not None


def fits(access: Access, password: str) -> bool:
    try:
        return access.check_password("root", password).is_root
    except AuthError:
        return False


def test_the_first_start_makes_a_password_and_the_next_says_where_it_is(lading: Lading) -> None:
    shown, _ = start(lading)
    file = lading.home.path / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_root_login(lading.home.path) == ("root", shown)
    assert fits(lading.access, shown)
    assert start(lading) == ("", True)
    assert file.read_text() == shown + "\n"


def test_passwords_that_are_made_satisfy_rules_and_differ() -> None:
    made = {make_password() for _ in range(200)}
    assert len(made) == 200
    for password in made:
        assert len(password) == 23
        assert any(letter.islower() for letter in password)
        assert any(letter.isupper() for letter in password)
        assert any(letter.isdigit() for letter in password)


def test_killed_before_the_store_has_it_the_next_start_takes_the_file(lading: Lading) -> None:
    die_at("root_password.kept")
    with pytest.raises(DiedError):
        start(lading)
    kept = read_root_login(lading.home.path)[1]
    assert not lading.access.has_password("root")
    assert not fits(lading.access, kept)
    failpoints.disarm_all()
    assert start(lading) == (kept, True)
    assert fits(lading.access, kept)


def test_killed_before_it_was_shown_the_file_has_it(lading: Lading) -> None:
    die_at("root_password.set")
    with pytest.raises(DiedError):
        start(lading)
    failpoints.disarm_all()
    assert start(lading) == ("", True)
    assert fits(lading.access, read_root_login(lading.home.path)[1])


def test_another_password_removes_the_file(lading: Lading) -> None:
    start(lading)
    lading.sql(f"ALTER USER root IDENTIFIED BY '{GIVEN}'")
    assert not (lading.home.path / FILE_NAME).exists()
    assert start(lading) == ("", False)
    assert fits(lading.access, GIVEN)


def test_killed_before_the_file_was_removed_the_next_start_removes_it(lading: Lading) -> None:
    first, _ = start(lading)
    die_at("root_password.changed")
    with pytest.raises(DiedError):
        lading.sql(f"ALTER USER root IDENTIFIED BY '{GIVEN}'")
    assert (lading.home.path / FILE_NAME).exists()
    assert not fits(lading.access, first)
    failpoints.disarm_all()
    assert start(lading) == ("", False)
    assert not (lading.home.path / FILE_NAME).exists()
    assert fits(lading.access, GIVEN)


def test_the_operator_gives_the_first_password_and_only_the_first(lading: Lading, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text(GIVEN + "\n")
    assert start(lading, given) == ("", False)
    assert fits(lading.access, GIVEN)
    assert not (lading.home.path / FILE_NAME).exists()
    assert not ensure_root_password(lading.access, lading.home.path, given).is_ignored
    given.write_text(secret("another") + "\n")
    assert ensure_root_password(lading.access, lading.home.path, given).is_ignored
    assert fits(lading.access, GIVEN)
    given.unlink()


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe"])
def test_a_file_without_a_password_is_refused(lading: Lading, tmp_path: Path, content: bytes) -> None:
    given = tmp_path / "given"
    with pytest.raises(ConfigError, match="cannot be read"):
        start(lading, given)
    given.write_bytes(content)
    with pytest.raises(ConfigError, match="given"):
        start(lading, given)
    assert not lading.access.has_password("root")


def test_a_file_that_others_could_have_written_is_not_taken(lading: Lading, tmp_path: Path) -> None:
    file = lading.home.path / FILE_NAME
    file.write_text("known\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        start(lading)
    file.unlink()
    (tmp_path / "known").write_text("known\n")
    file.symlink_to(tmp_path / "known")
    with pytest.raises(ConfigError, match="cannot be read"):
        start(lading)
    assert not lading.access.has_password("root")


def test_statements_go_only_to_the_service_of_the_owner(tmp_path: Path) -> None:
    """A user who could write the file would get the statements of others, with the keys in them."""
    write_address(tmp_path, ServiceAddress(pid=os.getpid(), http="http://127.0.0.1:1", mysql_port=1, token="t"))
    found = find_address(tmp_path)
    assert found is not None
    assert found.token == "t"
    file = tmp_path / ADDRESS
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o620)
    with pytest.raises(ConfigError, match="can be used by others"):
        find_address(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        find_address(tmp_path)
    file.unlink()
    if os.geteuid() == 0:
        file.write_text(json.dumps({"pid": os.getpid(), "http": "http://127.0.0.1:1", "mysql_port": 1, "token": ""}))
        file.chmod(0o600)
        os.chown(file, 12345, -1)
        with pytest.raises(ConfigError, match="belongs to user 12345"):
            find_address(tmp_path)
