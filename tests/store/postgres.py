"""A real PostgreSQL server for the tests: in a folder of its own, on a Unix socket, gone at the end.

PostgreSQL refuses to run as root; then it runs as `postgres` or `nobody`, in a folder that belongs to that user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg

CALM_OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=40"


class NoPostgresError(Exception):
    """No server can be started here, and why."""


class PostgresServer:
    """Hands out an empty schema for every test."""

    def __init__(self, socket_folder: Path, restart: Callable[[], None] = lambda: None, port: int = 0) -> None:
        self._socket_folder = socket_folder
        self._port = port
        self.restart = restart
        """End it as a power cut would, and start it again."""
        self._numbers = count(1)

    def fresh_url(self) -> str:
        """A URL in which nothing was stored yet."""
        schema = f"fresh_{next(self._numbers)}"
        with psycopg.connect(self.plain_url) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{self.plain_url}&options={quote(f'-csearch_path={schema}')}"

    def new_database(self) -> str:
        """A database of its own, by its URL; for a server that listens at a port."""
        name = f"new_{next(self._numbers)}"
        with psycopg.connect(self.plain_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://lading@127.0.0.1:{self._port}/{name}"

    @property
    def socket(self) -> str:
        """Where it listens."""
        return str(self._socket_folder / ".s.PGSQL.5432")

    @property
    def plain_url(self) -> str:
        if self._port:
            return f"postgresql://lading@127.0.0.1:{self._port}/postgres"
        return f"postgresql://lading@/postgres?host={quote(str(self._socket_folder))}"


@contextmanager
def serve_postgres(port: int = 0) -> Iterator[PostgresServer]:
    """Start a server, and stop it at the end; with a port, it listens there. Raises NoPostgresError."""
    programs, user = find_programs(), unprivileged_user()
    # Not pytest's folder: only its owner may enter that, and the path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="lading-pg-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = str(folder / "data")
        listens = f"-c listen_addresses=127.0.0.1 -c port={port}" if port else "-c listen_addresses=''"
        start = ["-o", f"-k {folder} {listens} {CALM_OPTIONS}", "-l", str(folder / "log"), "-w"]
        _run([str(programs / "initdb"), "-D", data, "-U", "lading", "-A", "trust", "-N", "-E", "UTF8"], user)
        _run([str(programs / "pg_ctl"), "-D", data, *start, "start"], user)
        again = [str(programs / "pg_ctl"), "-D", data, *start, "-m", "immediate", "restart"]
        try:
            yield PostgresServer(folder, lambda: _run(again, user), port)
        finally:
            _run([str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop"], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_programs() -> Path:
    """The folder with initdb and pg_ctl: Debian's, another on the path, or that of the package pgserver."""
    places = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: place.parent.name.zfill(4), reverse=True
    )
    on_path = shutil.which("initdb")
    if on_path:
        places.append(Path(on_path).resolve().parent)
    package = importlib.util.find_spec("pgserver")
    if package and package.origin:
        places.append(Path(package.origin).parent / "pginstall" / "bin")
    for place in places:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    msg = "no initdb and pg_ctl: install Debian's postgresql, or the package pgserver from PyPI"
    raise NoPostgresError(msg)


def unprivileged_user() -> str | None:
    """Whom to become; None when this process is not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    msg = "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody"
    raise NoPostgresError(msg)


def _run(command: Sequence[str], user: str | None) -> None:
    name = Path(command[0]).name
    groups: list[str] | None = None if user is None else []
    try:
        # The server must have a log file of its own: else it keeps the pipe open, and reading it never ends.
        done = subprocess.run(
            command, user=user, extra_groups=groups, cwd="/", capture_output=True, text=True, check=False, timeout=60
        )
    except OSError as error:
        msg = f"{name} cannot be run as {user or 'this user'}: {error}"
        raise NoPostgresError(msg) from error
    if done.returncode != 0:
        msg = f"{name} failed with {done.returncode}: {(done.stderr or done.stdout).strip()}"
        raise NoPostgresError(msg)
