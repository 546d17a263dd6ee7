"""Environments of the peers: each has its own, in the user's cache folder, made once for each list of packages."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.maven import JarsMissingError, find_jars

from bench.scale import CACHE

INSTALL_S = 900


class NotInstalledError(RuntimeError):
    """This peer cannot be measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What is installed beside each other."""

    name: str
    packages: tuple[str, ...] = ()
    """For pip. Without any, it is the environment of the bench itself."""
    jars: tuple[str, ...] = ()
    """From Maven, with all they need, but for what the packages bring."""

    def python(self) -> str:
        """Its interpreter; it is installed when it is not there. Raises NotInstalledError."""
        if not self.packages:
            return sys.executable
        listed = hashlib.sha256("\n".join(self.packages).encode()).hexdigest()[:8]
        place = CACHE / f"{self.name}-{listed}"
        if not (place / "installed").exists():
            _install(place, self.packages)
        return str(place / "bin" / "python")

    def jar_files(self) -> list[str]:
        """Raises NotInstalledError."""
        if not self.jars:
            return []
        try:
            folder = find_jars(f"bench-{self.name}", self.jars)
        except JarsMissingError as error:
            raise NotInstalledError(str(error)) from error
        # What Spark brings stays as it is: two versions of one class do not go together.
        brought = {
            _artifact(jar) for jar in Path(self.python()).parent.parent.glob("lib/*/site-packages/pyspark/jars/*")
        }
        return [str(jar) for jar in sorted(folder.glob("*.jar")) if _artifact(jar) not in brought]


def _artifact(jar: Path) -> str:
    """Its name without its version."""
    return re.sub(r"-\d.*", "", jar.name)


def _install(place: Path, packages: tuple[str, ...]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    if uv is not None:
        _call([uv, "venv", "--quiet", "--python", sys.executable, str(place)])
        _call([uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), *packages])
    else:
        _call([sys.executable, "-m", "venv", str(place)])
        _call([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages])
    (place / "installed").touch()


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"{' '.join(command)} took longer than {INSTALL_S} s") from error
    if done.returncode:
        raise NotInstalledError(f"{' '.join(command)} said {(done.stdout + done.stderr)[-500:]}")
