"""Secrets of jobs: sealed, referred to, lost and found."""

from __future__ import annotations

import base64
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError, SecretError, SqlError
from lading.service.security import vault as vault_module
from lading.service.security.redaction import Redactor
from lading.service.security.vault import (
    KEY_FILE,
    KEY_VARIABLE,
    Vault,
    find_lost,
    is_reference,
    open_secrets,
    open_vault,
    resolve_properties,
    resolve_reference,
    seal_secrets,
)

OLD, NEW = b"o" * 32, b"n" * 32
KEYS = {"s3.access_key": "AKIA", "s3.secret_key": "sesame 💧 \x00"}


def written(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


@given(st.text())
@settings(deadline=None)
def test_what_is_sealed_can_be_opened(text: str) -> None:
    vault = Vault([OLD])
    sealed = vault.seal(text)
    assert vault.open(sealed) == text
    assert vault.seal(text) != sealed
    assert len(text) < 4 or text not in sealed


@given(st.dictionaries(st.text(), st.text().filter(lambda value: value != "******")))
@settings(deadline=None)
def test_secrets_of_a_job_come_back(secrets: dict[str, str]) -> None:
    vault = Vault([OLD])
    with pytest.MonkeyPatch.context() as patched:
        # Any word may be among them, and would be masked in the texts of all tests that follow.
        patched.setattr(vault_module, "HIDDEN", Redactor())
        assert open_secrets(vault, seal_secrets(vault, secrets)) == secrets


@pytest.mark.parametrize("kept", [None, "", "{}"])
def test_a_job_without_secrets_has_none(kept: str | None) -> None:
    assert open_secrets(Vault([OLD]), kept) == {}


def test_what_older_versions_kept_is_read_and_then_sealed() -> None:
    vault = Vault([OLD])
    assert open_secrets(vault, json.dumps(KEYS)) == KEYS
    assert "sesame" not in seal_secrets(vault, KEYS)


def test_another_key_says_which_job_needs_its_keys() -> None:
    sealed = seal_secrets(Vault([OLD]), KEYS)
    with pytest.raises(SecretError) as caught:
        open_secrets(Vault([NEW]), sealed, job="orders")
    told = str(caught.value)
    assert "The keys of job orders cannot be opened: it was sealed with key" in told
    assert "give job orders its keys again with ALTER" in told
    assert KEY_FILE in told
    assert "sesame" not in told
    kept = {"orders": sealed, "clicks": json.dumps(KEYS), "views": None, "taps": seal_secrets(Vault([NEW]), KEYS)}
    assert find_lost(Vault([NEW]), kept) == ["orders"]


@pytest.mark.parametrize("cut", [0, 5, 12, 20, 30, -1])
def test_damage_is_an_error_of_ours(cut: int) -> None:
    vault = Vault([OLD])
    sealed = vault.seal("sesame")
    for broken in (sealed[:cut], sealed[:-6] + "AAAA==", sealed + "ä", sealed.replace("sealed1", "sealed9")):
        with pytest.raises(SecretError):
            vault.open(broken)
    with pytest.raises(SecretError, match="something else"):
        open_secrets(vault, "{broken")


def test_a_new_key_before_the_old_one_changes_the_key() -> None:
    old, both, new = Vault([OLD]), Vault([NEW, OLD]), Vault([NEW])
    assert both.open(old.seal("sesame")) == "sesame"
    assert new.open(both.seal("sesame")) == "sesame"
    with pytest.raises(SecretError):
        old.open(both.seal("sesame"))


def test_a_vault_shows_no_key() -> None:
    assert written(OLD) not in repr(Vault([OLD]))
    with pytest.raises(ConfigError):
        Vault([b"short"])
    with pytest.raises(ConfigError):
        Vault([])


def test_a_mask_is_not_kept_as_a_secret() -> None:
    with pytest.raises(SqlError, match=r"The value of s3.secret_key is \*\*\*\*\*\*"):
        seal_secrets(Vault([OLD]), {"s3.secret_key": "******"})


# Where the key is.


def test_the_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    sealed = open_vault(home, "").seal("sesame")
    path = home / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(base64.urlsafe_b64decode(path.read_text())) == 32
    assert [entry.name for entry in home.iterdir()] == [KEY_FILE]
    assert open_vault(home, "").open(sealed) == "sesame"


def test_the_key_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_vault(tmp_path, "")
    finally:
        os.umask(before)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_of_many_that_start_at_once_all_have_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        vaults = list(pool.map(lambda _: open_vault(tmp_path, ""), range(16)))
    sealed = vaults[0].seal("sesame")
    assert {vault.open(sealed) for vault in vaults} == {"sesame"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_a_key_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    open_vault(tmp_path, "")
    (tmp_path / KEY_FILE).chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_vault(tmp_path, "")


@pytest.mark.parametrize("text", ["", "short", "x" * 44, written(OLD)[:-4], "größe", written(OLD) + "\nrest"])
def test_a_key_file_that_holds_no_key_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / KEY_FILE
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(ConfigError, match="does not hold a key"):
        open_vault(tmp_path, "")
    assert path.read_text() == text


def test_a_key_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be"):
        open_vault(tmp_path / "file", "")
    (tmp_path / KEY_FILE).mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        open_vault(tmp_path, "")


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    vault = open_vault(tmp_path, f"{written(NEW)}, {written(OLD)}")
    assert list(tmp_path.iterdir()) == []
    assert vault.open(Vault([OLD]).seal("sesame")) == "sesame"
    assert Vault([NEW]).open(vault.seal("sesame")) == "sesame"
    with pytest.raises(ConfigError) as caught:
        open_vault(tmp_path, "not-a-key")
    assert KEY_VARIABLE in str(caught.value)
    assert "not-a-key" not in str(caught.value)


# References.


def test_a_reference_is_read_where_it_says(tmp_path: Path) -> None:
    path = tmp_path / "my key.txt"
    path.write_text("\n sesame \n")
    assert resolve_reference("env:SHOP_KEY", variables={"SHOP_KEY": "sesame"}) == "sesame"
    assert resolve_reference(f"file:{path}") == "sesame"
    assert resolve_reference(f"file://{path}") == "sesame"
    assert is_reference(f"file:{path}")


@pytest.mark.parametrize("value", ["sesame", "", "env:", "env:a-b", "file:relative", "s3://bucket", "env"])
def test_anything_else_is_itself(value: str) -> None:
    assert not is_reference(value)
    assert resolve_reference(value, variables={}) == value


@pytest.mark.parametrize("variables", [{}, {"SHOP_KEY": ""}])
def test_a_variable_that_is_not_set_is_told(variables: dict[str, str]) -> None:
    with pytest.raises(SecretError, match=r"The variable SHOP_KEY for s3.secret_key is not set"):
        resolve_reference("env:SHOP_KEY", name="s3.secret_key", variables=variables)


def test_a_file_that_gives_no_secret_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    os.mkfifo(tmp_path / "pipe")
    found = {"absent": "is not there", "empty": "is empty", "bytes": "is not text", "pipe": "is not a file"}
    for name, problem in found.items():
        with pytest.raises(SecretError, match=f"{name} for aws.secret_key {problem}"):
            resolve_reference(f"file:{tmp_path / name}", name="aws.secret_key")
    with pytest.raises(SecretError, match="is not a file"):
        resolve_reference(f"file:{tmp_path}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "closed").touch(mode=0o000)
    with pytest.raises(SecretError, match="cannot be read: Permission denied"):
        resolve_reference(f"file:{tmp_path / 'closed'}")


def test_nobody_can_have_ladings_own_secrets_sent_somewhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_vault(home, "")
    (tmp_path / "link").symlink_to(home / KEY_FILE)
    with pytest.raises(SecretError, match="belongs to Lading itself"):
        resolve_reference(f"env:{KEY_VARIABLE}", variables={KEY_VARIABLE: written(OLD)})
    for place in (home / KEY_FILE, home / "lading.db", tmp_path / "link", tmp_path / "x" / ".." / "home" / KEY_FILE):
        with pytest.raises(SecretError, match="belongs to Lading itself"):
            resolve_reference(f"file:{place}", home=home)


def test_only_secrets_are_references(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sesame")
    properties = {"uri": f"file:{tmp_path}/key", "s3.secret_key": f"file:{tmp_path}/key", "s3.access_key": "AKIA"}
    assert resolve_properties(properties) == {**properties, "s3.secret_key": "sesame"}
