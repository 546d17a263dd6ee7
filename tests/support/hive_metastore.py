"""Hive's own metastore, from Maven, and a front that loses answers.

Its database is PostgreSQL: with Derby it cannot compare what a change replaces (it says that CLOBs are not comparable).
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from lading.clock import SystemClock
from tests.store.postgres import PostgresServer
from tests.support.maven import JarsMissingError, find_jars
from tests.support.rest_catalog import free_port

_HADOOP = (
    "org.apache.hadoop:hadoop-common:3.3.6",
    "org.apache.hadoop:hadoop-hdfs:3.3.6",
    "org.apache.hadoop:hadoop-hdfs-client:3.3.6",
    "org.apache.hadoop:hadoop-mapreduce-client-core:3.3.6",
    "org.postgresql:postgresql:42.7.7",
)


@dataclass(frozen=True, slots=True)
class Release:
    """One of the servers that people run."""

    version: str
    artifact: str
    script: str
    """Makes its tables."""

    @property
    def artifacts(self) -> tuple[str, ...]:
        server = f"org.apache.hive:{self.artifact}:{self.version}"
        return (server, f"{server}:bin:tar.gz", *_HADOOP)

    @property
    def archive(self) -> str:
        return f"{self.artifact}-{self.version}-bin.tar.gz"


NEW = Release("4.0.1", "hive-standalone-metastore-server", "hive-schema-4.0.0.postgres.sql")
"""Compares what a change replaces. Clients before 4 cannot ask it for a table."""
OLD = Release("3.1.3", "hive-standalone-metastore", "hive-schema-3.1.0.postgres.sql")
"""Has its lock alone. The client that Spark brings speaks with it."""
RELEASES = {release.version: release for release in (NEW, OLD)}
_PROGRAM = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_JAVA = (
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "net", "util")),
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx512m",
)
_START_S = 90.0


class Metastore:
    """A server that can be killed and started again; its tables stay."""

    def __init__(self, folder: Path, database: PostgresServer, release: Release) -> None:
        """Raises JarsMissingError."""
        if shutil.which("java") is None:
            msg = "there is no Java"
            raise JarsMissingError(msg)
        self._jars = find_jars(f"hive-metastore-{release.version}", release.artifacts)
        self._folder, self.release = folder, release
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.port = free_port()
        url = database.new_database()
        _make_schema(self._jars, release, url)
        _write_settings(folder, url)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = ["java", *_JAVA, "-cp", f"{self._folder}:{self._jars}/*", _PROGRAM, "-p", str(self.port)]
        with (self._folder / "metastore.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        clock = SystemClock()
        until = clock.monotonic_s() + _START_S
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_s() > until:
                said = (self._folder / "metastore.log").read_text()[-1500:]
                msg = f"The Hive metastore does not start: {said}"
                raise RuntimeError(msg)
            clock.sleep(0.1)

    def _answers(self) -> bool:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), timeout=5)):
            return True
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def serve_metastore(folder: Path, database: PostgresServer, release: Release = NEW) -> Iterator[Metastore]:
    """Raises JarsMissingError."""
    server = Metastore(folder, database, release)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _make_schema(jars: Path, release: Release, url: str) -> None:
    """The tables of an empty metastore, as its own script says."""
    with tarfile.open(jars / release.archive) as archive:
        (name,) = (each for each in archive.getnames() if each.endswith(release.script))
        script = archive.extractfile(name)
        assert script is not None
        with psycopg.connect(url) as connection:
            connection.execute(script.read())


def _write_settings(folder: Path, url: str) -> None:
    place = urlsplit(url)
    settings = {
        "metastore.warehouse.dir": f"file://{folder}/managed",
        "metastore.warehouse.external.dir": f"file://{folder}/external",
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": place.username,
        "javax.jdo.option.ConnectionPassword": "",
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "datanucleus.connectionPool.maxPoolSize": "4",
        # Without the rest of Hive: its cleaner of dumps is not there.
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    }
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    (folder / "metastore-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")


class MetastoreFront:
    """Passes connections on to a metastore."""

    def __init__(self, behind: Metastore) -> None:
        self.behind = behind
        self.lose_commits = 0
        """So many answers to changes of a table are lost, after the change was made."""
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        changes = threading.Event()
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.behind.port)) as server:
            asking = threading.Thread(target=self._ask, args=(client, server, changes), daemon=True)
            asking.start()
            while answer := server.recv(1 << 16):
                if changes.is_set() and self.lose_commits:
                    self.lose_commits -= 1
                    self.lost += 1
                    break
                changes.clear()
                client.sendall(answer)
            for each in (client, server):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            asking.join()

    @staticmethod
    def _ask(client: socket.socket, server: socket.socket, changes: threading.Event) -> None:
        with suppress(OSError):
            while asked := client.recv(1 << 16):
                if b"alter_table_with_environment_context" in asked:
                    changes.set()
                server.sendall(asked)
            server.shutdown(socket.SHUT_RDWR)
