"""What is installed is what is locked, by hash, and the page of it is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meta.dependencies import PAGE, ROOT, ROW, packages, read_lock, service_names

PINNED = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)(.*?)(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL)
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
EXPORTS = [ROOT / "requirements.txt", ROOT / "deploy" / "requirements.txt"]


def test_the_page_of_dependencies_is_that_of_the_lock() -> None:
    shown = [match.groups() for match in ROW.finditer(PAGE.read_text())]
    locked = [(each.name, each.version, each.published, each.purpose) for each in packages()]
    assert [row[:4] for row in shown] == locked, "run python -m tests.meta.dependencies"
    assert [row[0] for row in shown if row[4] == "?"] == []


@pytest.mark.parametrize("file", EXPORTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_exported_packages_are_those_of_the_lock_and_have_hashes(file: Path) -> None:
    lock = read_lock()
    command = file.read_text().splitlines()[1].removeprefix("#").strip()
    pinned = PINNED.findall(file.read_text())
    assert len(pinned) > 50
    for name, version, rest in pinned:
        found = next((package for package in lock[name] if package["version"] == version), None)
        assert found is not None, f"{name} {version} is not in uv.lock: run {command}"
        files = [*found.get("wheels", ()), *([found["sdist"]] if "sdist" in found else [])]
        assert set(HASH.findall(rest)) == {each["hash"] for each in files}, f"run {command}"
    if file.parent.name == "deploy":
        assert {name for name, _, _ in pinned} == service_names(lock), f"run {command}"
    assert "://" not in file.read_text()


def test_everything_is_installed_by_hash() -> None:
    container, makefile = (ROOT / "deploy" / "Containerfile").read_text(), (ROOT / "Makefile").read_text()
    installs = re.findall(r"pip install .*", container)
    assert len(installs) == 2
    assert all("--require-hashes -r" in line or "--require-hashes --no-build-isolation -r" in line for line in installs)
    assert re.findall(r"pip install .*-r requirements.txt", makefile) == re.findall(
        r"pip install .*--require-hashes -r requirements.txt", makefile
    )
    assert "uv sync --quiet --frozen" in makefile
    for name in re.findall(r"-r (\S*requirements\.txt)", container):
        for _, _, rest in PINNED.findall((ROOT / "deploy" / name).read_text()):
            assert HASH.search(rest)


def test_base_images_are_named_by_digest() -> None:
    """No tag that could mean another image tomorrow: the builder gives a digest, and nothing else is taken."""
    container = (ROOT / "deploy" / "Containerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", container, re.MULTILINE)) == {"${BASE_IMAGE}"}
    assert "ARG BASE_IMAGE\nFROM" in container  # Without a default.
    assert '"$BASE_IMAGE" in *@sha256:*) ;;' in container
