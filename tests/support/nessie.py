"""Nessie, a REST catalog of others, from Maven; its tables are in S3."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lading.clock import SystemClock
from tests.support.jvm_engine import OTHERS
from tests.support.lakes import LakeCatalog, nessie_lake
from tests.support.maven import JarsMissingError, find_jars
from tests.support.rest_catalog import free_port
from tests.tables.s3_server import S3Server

VERSION = "0.99.0"
_START_S = 120.0
_NEEDS = 21
"""This Java or a later one. What is on the path may be older, since Spark runs with 17."""


class Nessie:
    """A server whose catalog is in memory."""

    def __init__(self, folder: Path, store: S3Server) -> None:
        """Raises JarsMissingError."""
        self._java = _newer_java()
        artifact = f"org.projectnessie.nessie:nessie-quarkus:{VERSION}:runner"
        (self._jar,) = find_jars(f"nessie-{VERSION}", (artifact,), alone=True).glob("*.jar")
        self._store, self._log = store, folder / "nessie.log"
        self.port = free_port()
        self.warehouse = f"s3://{store.make_bucket()}/lake"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        storage = "nessie.catalog.service.s3.default-options"
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self.port),
            "quarkus.management.port": str(free_port()),
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": "lake",
            "nessie.catalog.warehouses.lake.location": self.warehouse,
            f"{storage}.endpoint": self._store.endpoint,
            f"{storage}.region": "us-east-1",
            f"{storage}.path-style-access": "true",
            f"{storage}.request-signing-enabled": "false",
            f"{storage}.access-key": "urn:nessie-secret:quarkus:lading-secrets.others",
            "lading-secrets.others.name": OTHERS,
            "lading-secrets.others.secret": OTHERS,
        }
        command = [
            self._java,
            "-Xmx512m",
            *(f"-D{name}={value}" for name, value in settings.items()),
            "-jar",
            str(self._jar),
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=dict(os.environ), stdout=log, stderr=log)
        clock = SystemClock()
        until = clock.monotonic_s() + _START_S
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_s() > until:
                msg = f"Nessie does not start: {self._log.read_text()[-2000:]}"
                raise RuntimeError(msg)
            clock.sleep(0.2)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request("GET", "/iceberg/v1/config")
            return connection.getresponse().status == 200
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def lake(self) -> LakeCatalog:
        return nessie_lake(f"http://127.0.0.1:{self.port}/iceberg", self._store)


@contextmanager
def serve_nessie(folder: Path, store: S3Server) -> Iterator[Nessie]:
    """Raises JarsMissingError."""
    server = Nessie(folder, store)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _newer_java() -> str:
    """Raises JarsMissingError."""
    installed = sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java")))
    for program in filter(None, (shutil.which("java"), *installed)):
        said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
        found = re.search(r'version "(\d+)', said)
        if found is not None and int(found[1]) >= _NEEDS:
            return program
    msg = f"there is no Java {_NEEDS} or later"
    raise JarsMissingError(msg)
