"""A home that lost its store or its key does not start as new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lading.cli.main import app
from lading.errors import ConfigError, SecretError
from lading.service.facade import Lading
from lading.service.security.root_password import ensure_root_password
from lading.service.security.vault import KEY_VARIABLE
from lading.testing.marked import secret

WORK: Sequence[Sequence[str]] = (["sql", "-e", "SHOW DATABASES"], ["run"])


def invoke(home: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--home", str(home)])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One with a table of each format."""
    place = tmp_path / "home"
    with Lading(place) as lading:
        lading.sql("CREATE DATABASE shop")
        lading.sql("CREATE TABLE shop.a (id BIGINT) USING delta")
        lading.sql("CREATE TABLE shop.b (id BIGINT) USING iceberg")
    return place


def snapshot(home: Path) -> dict[str, bytes]:
    return {str(file.relative_to(home)): file.read_bytes() for file in home.rglob("*") if file.is_file()}


def test_a_missing_store_beside_tables_stops_every_command(home: Path) -> None:
    (home / "lading.db").unlink()
    before = snapshot(home)
    for command in WORK:
        stopped = invoke(home, *command)
        assert isinstance(stopped.exception, ConfigError), stopped.exception
        assert "lading.db is missing" in stopped.exception.what
        assert "shop/a and 1 more" in stopped.exception.what
        assert f"lading recover --home {home}" in stopped.exception.todo
    assert snapshot(home) == before
    assert invoke(home, "recover").exit_code == 0
    assert {row[0] for row in Lading(home).sql("SHOW TABLES FROM shop")[0].rows} == {"a", "b"}


def test_an_empty_store_beside_tables_is_not_a_new_one(home: Path) -> None:
    (home / "lading.db").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"lading\.db is empty"):
        Lading(home)
    assert (home / "lading.db").read_bytes() == b""


def test_looking_at_what_could_be_recovered_does_not_make_the_home_new(home: Path) -> None:
    (home / "lading.db").unlink()
    assert "Would recover 2 tables" in invoke(home, "recover", "--dry-run").stdout
    for command in WORK:
        stopped = invoke(home, *command)
        assert isinstance(stopped.exception, ConfigError), stopped.exception
        assert "has never been used" in stopped.exception.what
    assert invoke(home, "recover").exit_code == 0
    for command in WORK:
        assert invoke(home, *command).exit_code == 0


def test_a_recovery_in_which_all_failed_does_not_make_the_home_new(home: Path) -> None:
    (home / "lading.db").unlink()
    (home / "catalog.db").unlink()
    home.rename(home.with_name("moved"))
    moved = home.with_name("moved")
    for name in ("a", "b"):  # What is left of them is no table any more.
        for file in (moved / "warehouse" / "shop" / name).rglob("*.json"):
            file.write_text("{")
    assert invoke(moved, "recover").exit_code == 1
    with pytest.raises(ConfigError, match="has never been used"):
        Lading(moved)


def test_another_store_that_was_never_used_is_not_this_homes(home: Path, tmp_path: Path) -> None:
    """As when LADING_STORE was forgotten, or names the wrong database."""
    with pytest.raises(ConfigError, match="LADING_STORE"):
        Lading(home, store_url=str(tmp_path / "other.db"))
    Lading(home).close()


def test_a_home_where_everything_was_dropped_starts(home: Path) -> None:
    with Lading(home) as lading:
        lading.sql("DROP TABLE shop.a; DROP TABLE shop.b")
    (home / "warehouse" / "shop" / "left_by_somebody" / "_delta_log").mkdir(parents=True)
    Lading(home).close()


def test_a_folder_with_an_empty_warehouse_is_new(tmp_path: Path) -> None:
    (tmp_path / "home" / "warehouse" / "shop" / "files").mkdir(parents=True)
    (tmp_path / "home" / "lading.db").write_bytes(b"")
    Lading(tmp_path / "home").close()


def test_a_create_table_that_was_killed_in_a_new_home_does_not_stop_the_next_start(tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading:
        lading.catalog.create_database("default", if_not_exists=True)
    (tmp_path / "home" / "warehouse" / "default" / "t" / "_delta_log").mkdir(parents=True)
    Lading(tmp_path / "home").close()


def test_a_missing_key_beside_sealed_secrets_stops(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lading(home) as lading:
        lading.sql(f"CREATE USER ann IDENTIFIED BY '{secret('ann')}'")
    kept = (home / "secret.key").read_text()
    (home / "secret.key").unlink()
    for command in WORK:
        stopped = invoke(home, *command)
        assert isinstance(stopped.exception, SecretError), stopped.exception
        assert "secret.key is missing" in stopped.exception.what
        assert KEY_VARIABLE in stopped.exception.todo
        assert "lading recover" in stopped.exception.todo
    assert not (home / "secret.key").exists()
    assert "a new one would be made" in invoke(home, "recover", "--dry-run").stdout
    assert not (home / "secret.key").exists()
    with monkeypatch.context() as variables:
        variables.setenv(KEY_VARIABLE, kept.strip())
        Lading(home).close()
    assert "a new one was made" in invoke(home, "recover").stdout
    with Lading(home) as lading:
        assert lading.access.check_password("ann", secret("ann")).user == "ann"


def test_a_missing_key_with_nothing_sealed_is_made(tmp_path: Path) -> None:
    Lading(tmp_path / "home").close()
    (tmp_path / "home" / "secret.key").unlink()
    with Lading(tmp_path / "home") as lading:
        ensure_root_password(lading.access, tmp_path / "home")
    (tmp_path / "home" / "secret.key").unlink()
    with pytest.raises(SecretError, match=r"secret\.key is missing"):
        Lading(tmp_path / "home")
