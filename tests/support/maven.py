"""Jars for tests, from Maven, once, into the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lading</groupId><artifactId>for-tests</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}{}{}</dependency>"
_CLASSIFIER = "<classifier>{}</classifier>"
_TYPE = "<type>{}</type>"
_WITHOUT = "<exclusions><exclusion><groupId>{0}</groupId><artifactId>{0}</artifactId></exclusion></exclusions>"
_JDK = "jdk.tools"
"""A part of old JDKs, which no Maven repository has."""
_ALL = "*"
"""What an artifact needs is not even looked for: some name what only their makers have."""


class JarsMissingError(RuntimeError):
    """This machine has no such jars and no way to get them."""


def find_jars(name: str, artifacts: Sequence[str], *, alone: bool = False) -> Path:
    """A folder with these artifacts (`group:artifact:version[:classifier[:type]]`) and all they need, or they alone.

    Its name tells the list, too: a list that changed is fetched again. Raises JarsMissingError.
    """
    listed = hashlib.sha256("\n".join((str(alone), *artifacts)).encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lading" / f"{name}-{listed}"
    if not cache.is_dir():
        with _alone_at(cache):
            if not cache.is_dir():
                _fetch(cache, artifacts, without=_ALL if alone else _JDK)
    return cache


@contextmanager
def _alone_at(cache: Path) -> Iterator[None]:
    """Who needs what another process is fetching waits for it, and does not fetch it once more."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    with (cache.parent / f".{cache.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _dependency(artifact: str, without: str) -> str:
    group, name, version, *more = artifact.split(":")
    classifier = _CLASSIFIER.format(more[0]) if more else ""
    kind = _TYPE.format(more[1]) if more[1:] else ""
    return _DEPENDENCY.format(group, name, version, classifier, kind, _WITHOUT.format(without))


def _fetch(cache: Path, artifacts: Sequence[str], *, without: str) -> None:
    """Ask Maven. They are put into place whole or not at all."""
    maven = shutil.which("mvn")
    if maven is None:
        msg = f"{cache.name} cannot be fetched: there is no Maven"
        raise JarsMissingError(msg)
    with tempfile.TemporaryDirectory(dir=cache.parent) as name:
        folder = Path(name)
        dependencies = "\n".join(_dependency(artifact, without) for artifact in artifacts)
        (folder / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            msg = f"{cache.name} cannot be fetched: Maven said {(done.stdout + done.stderr)[-500:]}"
            raise JarsMissingError(msg)
        (folder / "libs").rename(cache)
