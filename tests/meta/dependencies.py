"""Writes docs/dependencies.md from uv.lock: what is installed, in which version, since when, under which licence.

    python -m tests.meta.dependencies

Versions and dates come from the lock. Licences come from the packages that are installed here, else from the page as it
was. `make audit` asks for known vulnerabilities.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "dependencies.md"
EXTRAS = ("postgres", "oidc", "hive")
"""What the container has beside the service itself."""
ROW = re.compile(r"^\| ([a-z0-9._-]+) \| (\S+) \| (\S+) \| (service|tests) \| (.+) \|$", re.MULTILINE)
_LONGEST = 60
_INTRO = """# What does it depend on?

Every package that is installed, from `uv.lock`, with the day on which that version was published. Packages are
installed by hash (`requirements.txt`, `deploy/requirements.txt`). Known vulnerabilities are asked for with
`make audit`, which needs pip-audit and the network, and fails when a package could not be asked for (pip-audit alone
says then that it found nothing). It has not been run for these versions: the data on vulnerabilities could not be
reached when this page was written. `python -m tests.meta.dependencies` writes it; a test compares it with the lock.

| package | version | published | for | licence |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One version of a package."""

    name: str
    version: str
    published: str
    """The day of the first of its files."""
    purpose: str
    """service or tests."""


def read_lock() -> dict[str, list[dict[str, Any]]]:
    """The packages of the lock by name; some have several versions, for several Pythons."""
    found: dict[str, list[dict[str, Any]]] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        found.setdefault(package["name"], []).append(package)
    return found


def service_names(lock: Mapping[str, list[dict[str, Any]]]) -> set[str]:
    """The packages that a service needs, with the extras of the container."""
    own = lock["lading"][0]
    left = [*own["dependencies"], *(each for extra in EXTRAS for each in own["optional-dependencies"][extra])]
    seen: set[tuple[str, str]] = set()
    while left:
        wanted = left.pop()
        for extra in ("", *wanted.get("extra", ())):
            if (wanted["name"], extra) in seen:
                continue
            seen.add((wanted["name"], extra))
            for package in lock[wanted["name"]]:
                left += (
                    package.get("optional-dependencies", {}).get(extra, ())
                    if extra
                    else package.get("dependencies", ())
                )
    return {name for name, _ in seen}


def packages() -> list[Package]:
    """All of the lock but Lading itself, in order."""
    lock = read_lock()
    needed = service_names(lock)
    return [
        Package(
            name=name,
            version=package["version"],
            published=min(_days(package)),
            purpose="service" if name in needed else "tests",
        )
        for name in sorted(lock)
        if name != "lading"
        for package in lock[name]
    ]


def _days(package: Mapping[str, Any]) -> Iterable[str]:
    files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    return [file["upload-time"][:10] for file in files]


def _licence(name: str, before: Mapping[str, str]) -> str:
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return before.get(name, "?")
    classified = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or () if line.startswith("License :: ")
    ]
    candidates = [*(told.get_all("License-Expression") or ()), *(told.get_all("License") or ()), ", ".join(classified)]
    short = [text for text in candidates if text and len(text) <= _LONGEST and "\n" not in text and text != "UNKNOWN"]
    return short[0].replace("|", "/") if short else before.get(name, "?")


def render() -> str:
    """The page."""
    before = {match[1]: match[5] for match in ROW.finditer(PAGE.read_text())} if PAGE.exists() else {}
    rows = [
        f"| {each.name} | {each.version} | {each.published} | {each.purpose} | {_licence(each.name, before)} |"
        for each in packages()
    ]
    return _INTRO + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render())
