"""The home is for its owner alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.errors import ConfigError, StoreError
from lading.service.facade import Lading
from lading.service.security.root_password import ensure_root_password

MADE = """
CREATE DATABASE shop;
CREATE TABLE shop.a (id BIGINT) USING delta;
CREATE TABLE shop.b (id BIGINT) USING iceberg;
"""


def modes(home: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_mode & 0o777 for entry in home.iterdir()}


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """Modes do not come from a careful umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_everything_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Lading(home) as lading:
        lading.sql(MADE)
        ensure_root_password(lading.access, home)
        found = modes(home)
    assert home.stat().st_mode & 0o777 == 0o700
    assert {"lading.db", "lading.db-wal", "catalog.db", "secret.key", "lading.lock", "root.password"} <= set(found)
    for name, mode in found.items():
        assert mode == (0o700 if (home / name).is_dir() else 0o600), name


def test_what_is_wider_is_corrected_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    with Lading(home) as lading:
        lading.sql(MADE)
    for entry in home.iterdir():
        if entry.name != "secret.key":
            entry.chmod(0o777 if entry.is_dir() else 0o664)
    home.chmod(0o755)
    caplog.set_level(logging.WARNING)
    with Lading(home):
        assert set(modes(home).values()) == {0o600, 0o700}
    assert home.stat().st_mode & 0o777 == 0o700
    for name in (str(home), "lading.db", "catalog.db", "lading.lock", "warehouse"):
        assert any(f"{name} had mode" in record.getMessage() for record in caplog.records), name
    caplog.clear()
    with Lading(home):
        assert caplog.records == []


def test_a_table_elsewhere_keeps_the_umask(tmp_path: Path) -> None:
    os.umask(0o022)
    place = tmp_path / "lake" / "t"
    with Lading(tmp_path / "home") as lading:
        lading.sql(f"CREATE TABLE t (id BIGINT) USING delta LOCATION '{place}'")
    assert (place / "_delta_log").stat().st_mode & 0o055 == 0o055


@pytest.mark.parametrize("name", ["lading.db", "lading.lock", "secret.key", "root.password"])
def test_a_link_in_the_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    Lading(home).close()
    elsewhere = tmp_path / "elsewhere"
    file = home / name
    if file.exists():
        file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=f"{name} is not a plain file"):
        Lading(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["", "lading.db", "secret.key", "warehouse"])
def test_what_belongs_to_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    Lading(home).close()
    os.chown(home / name, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        Lading(home)
    os.chown(home / name, os.geteuid(), -1)
    Lading(home).close()


def test_a_folder_where_everybody_could_exchange_the_home_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir(mode=0o777)
    with pytest.raises(ConfigError, match="Everybody can write to"):
        Lading(above / "home")
    assert list(above.iterdir()) == []
    above.chmod(0o1777)  # As /tmp is: what is there can be moved by its owner alone.
    Lading(above / "home").close()


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A home on a disk that cannot be written."""
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(place)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    (place / "home" / "warehouse").mkdir(mode=0o700, parents=True)
    if is_mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    elif os.geteuid() != 0:
        (place / "home").chmod(0o500)
    else:
        pytest.skip("NO READ-ONLY HOME IS TESTED: nothing can be mounted here, and root may write everywhere")
    yield place / "home"
    if is_mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_home_that_cannot_be_written_is_an_error_and_not_a_traceback(read_only: Path) -> None:
    for command in (["sql", "-e", "SHOW DATABASES"], ["run"], ["recover", "--dry-run"], ["verify", "j"]):
        result = CliRunner().invoke(app, [*command, "--home", str(read_only)])
        assert isinstance(result.exception, StoreError), result.exception
        assert "choose another home folder" in result.exception.todo
    served = subprocess.run(
        [sys.executable, "-c", "from lading.cli.main import main; main()", "serve", "--init", "--home", str(read_only)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert served.returncode == 1
    assert "Traceback" not in served.stderr
    assert f"The home folder {read_only} cannot be used" in served.stderr


def test_a_file_in_the_place_of_the_home_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for home in (file, file / "home"):
        result = CliRunner().invoke(app, ["sql", "-e", "SHOW DATABASES", "--home", str(home)])
        assert isinstance(result.exception, ConfigError), result.exception
        result = CliRunner().invoke(app, ["init", "--home", str(home)])
        assert isinstance(result.exception, StoreError), result.exception
