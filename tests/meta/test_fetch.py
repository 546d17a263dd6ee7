"""Jars and packages of the tests are fetched once on a machine, also when several lanes ask for them at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lading.testing.npm import installed
from tests.support.fetch import WANTED
from tests.support.maven import JarsMissingError, find_jars

MAVEN = """#!/bin/sh
echo fetched >> "$FETCHED"
sleep 0.2
mkdir libs && touch libs/a.jar
"""
NPM = """#!/bin/sh
echo installed >> "$FETCHED"
mkdir -p node_modules/anything
"""


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was fetched, by programs that stand for Maven and npm."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("mvn", MAVEN), ("npm", NPM)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FETCHED", str(tmp_path / "fetched"))
    return tmp_path / "fetched"


def test_who_needs_jars_that_are_being_fetched_waits_for_them(fetched: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(lambda _: find_jars("any", ["a:b:1"]), range(4)))
    assert [path.name for place in places for path in place.iterdir()] == ["a.jar"]
    assert fetched.read_text() == "fetched\n"


def test_what_cannot_be_fetched_is_not_taken_for_fetched(tmp_path: Path, fetched: Path) -> None:
    (tmp_path / "bin" / "mvn").write_text("#!/bin/sh\nexit 1\n")
    for _ in range(2):
        with pytest.raises(JarsMissingError):
            find_jars("any", ["a:b:1"])


def test_a_package_of_npm_is_kept_for_runs_with_another_folder_for_temporary_files(
    tmp_path: Path, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        assert installed("anything", "1.0").is_relative_to(tmp_path / "cache")
    assert fetched.read_text() == "installed\n"


def test_what_is_fetched_has_a_name_of_its_own() -> None:
    assert len({name for name, _ in WANTED}) == len(WANTED)
