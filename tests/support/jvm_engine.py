"""Spark with Delta and Iceberg on the JVM: the engine that other people run beside Lading. One for the whole run."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
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
LAKES = (
    "org.postgresql:postgresql:42.7.7",
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:bundle:2.35.0",
    "software.amazon.awssdk:url-connection-client:2.35.0",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
)
"""For tables in S3, and for catalogs in PostgreSQL and AWS Glue: 700 MB, mostly AWS' own."""
_THRIFT = (
    "org.apache.thrift:libfb303:0.9.3",
    "org.apache.thrift:libthrift:0.16.0",
    "commons-lang:commons-lang:2.6",
)
HIVE_2 = (
    "org.apache.hive:hive-metastore:2.3.10",
    "org.apache.hive:hive-exec:2.3.10:core",
    "org.apache.hive:hive-common:2.3.10",
    "org.apache.hive:hive-serde:2.3.10",
    "org.apache.hive.shims:hive-shims-common:2.3.10",
    "org.apache.hive.shims:hive-shims-0.23:2.3.10",
    *_THRIFT,
)
"""The client of a Hive metastore that Spark brings. Metastore 4 no longer has what it asks for a table."""
HIVE_4 = (
    "org.apache.hive:hive-standalone-metastore-common:4.0.1",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.httpcomponents:httpcore:4.4.15",
    *(artifact for artifact in HIVE_2 if ":hive-metastore:" not in artifact),
)
"""One that metastore 4 answers, in its place."""
OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "sun.nio.ch",
    "sun.util.calendar",
)
OTHERS = "others"
"""The key with which it signs for AWS; it is in its own log, so it is none of the watched ones."""
_KEYS = {"AWS_ACCESS_KEY_ID": OTHERS, "AWS_SECRET_ACCESS_KEY": OTHERS, "AWS_REGION": "us-east-1"}
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A short life: what is compiled well takes longer than it saves."""


class EngineError(RuntimeError):
    """What the JVM said of a statement that failed."""


class JvmEngine:
    """One process. Each home has a session of its own, in which `lading` is the Iceberg catalog of that home."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._turn = threading.Lock()

    def open(self, name: str, settings: Mapping[str, str]) -> None:
        """A session in which `lading` is a catalog in Iceberg's words; `fs.` is Hadoop's. Raises EngineError."""
        lines = "\n".join(f"{key}={value}" for key, value in settings.items())
        self._ask(f"OPEN {_encoded(name)} {_encoded(lines)}")

    def sql(self, text: str, home: Path | str = "") -> list[dict[str, Any]]:
        """The rows of one statement, with the catalog of a home or of a session that was opened. Raises EngineError."""
        return list(json.loads(self._ask(f"SQL {_encoded(str(home) or '-')} {_encoded(text)}")))

    def read(self, form: str, place: str) -> list[dict[str, Any]]:
        """The rows that `spark.read.format(form).load(place)` finds. Raises EngineError."""
        return list(json.loads(self._ask(f"READ {_encoded(form)} {_encoded(place)}")))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        with self._turn:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            verb, content = self._answer()
        if verb == "ERROR":
            raise EngineError(content)
        return content

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
def serve_engine(*, with_lakes: bool = False, hive: Sequence[str] = HIVE_2) -> Iterator[JvmEngine]:
    """`with_lakes`: it has the jars for S3 and for every catalog, too, with this client of a Hive metastore.

    Raises JarsMissingError where there is no Java, or no way to the jars.
    """
    java = shutil.which("java")
    if java is None:
        msg = "there is no Java"
        raise JarsMissingError(msg)
    folders = [find_jars("spark-4.1-engines", JARS)]
    if with_lakes:
        folders += [find_jars("spark-4.1-lakes", LAKES, alone=True), find_jars("hive-client", hive, alone=True)]
    path = ":".join(f"{folder}/*" for folder in folders)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    program = Path(__file__).with_name("Engine.java")
    command = [java, *opened, *QUICK, "-Xmx2g", "-cp", path, str(program)]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **_KEYS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            engine = JvmEngine(process)
            engine.wait_until_ready()
            yield engine
        finally:
            process.kill()
            process.communicate()
