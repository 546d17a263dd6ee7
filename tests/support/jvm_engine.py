"""Spark with Delta and Iceberg on the JVM: the engine that other people run beside Lading. One for the whole run."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.maven import JarsMissingError, find_jars

JARS = (
    "org.apache.spark:spark-sql_2.13:4.1.1",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
OPENED = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A short life: what is compiled well takes longer than it saves."""


class EngineError(RuntimeError):
    """What the JVM said of a statement that failed."""


class JvmEngine:
    """One process. Each home has a session of its own, in which `lading` is the Iceberg catalog of that home."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sql(self, text: str, home: Path | str = "") -> list[dict[str, Any]]:
        """The rows of one statement. Raises EngineError."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"SQL {_encoded(str(home) or '-')} {_encoded(text)}\n")
        self._process.stdin.flush()
        verb, content = self._answer()
        if verb == "ERROR":
            raise EngineError(content)
        return list(json.loads(content))

    def _answer(self) -> tuple[str, str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            verb, _, content = line.rstrip("\n").partition(" ")
            if verb in ("ANSWER", "ERROR"):
                return verb, base64.b64decode(content).decode()
            if verb == "READY":
                return verb, ""
        msg = "the engine has ended"
        raise EngineError(msg)

    def wait_until_ready(self) -> None:
        """Wait for its first word."""
        self._answer()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def serve_engine() -> Iterator[JvmEngine]:
    """Raises JarsMissingError where there is no Java, or no way to the jars."""
    java = shutil.which("java")
    if java is None:
        msg = "there is no Java"
        raise JarsMissingError(msg)
    jars = find_jars("spark-4.1-engines", JARS)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    program = Path(__file__).with_name("Engine.java")
    command = [java, *opened, *QUICK, "-Xmx2g", "-cp", f"{jars}/*", str(program)]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            engine = JvmEngine(process)
            engine.wait_until_ready()
            yield engine
        finally:
            process.kill()
            process.communicate()
