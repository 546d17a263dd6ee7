"""`lading serve` in a process of its own, with its Spark: it is asked through its doors, stopped, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pymysql

from lading.clock import SystemClock
from lading.service.runtime.address_file import ServiceAddress, find_address
from tests.soak.processes import kill, processes_below, wait_until_gone

LADING = [sys.executable, "-c", "from lading.cli.main import main; main()"]
ANSWER_S, GONE_S = 120.0, 60.0


class NoAnswerError(Exception):
    """The service is not there, went away, or refused. `was_late`: it was there and said nothing."""

    def __init__(self, what: object, *, was_late: bool = False) -> None:
        super().__init__(str(what))
        self.was_late = was_late


class Service:
    """One home. It may be started again after each end."""

    def __init__(self, home: Path, store: str, password_file: Path, spark: Mapping[str, str]) -> None:
        self.home, self.log = home, home.with_name(f"{home.name}.log")
        self._password_file = password_file
        settings = home.with_name(f"{home.name}.spark")
        settings.write_text("".join(f"{name} {value}\n" for name, value in spark.items()))
        settings.chmod(0o600)
        ports = ["--mysql-port", "0", "--http-port", "0"]
        files = ["--root-password-file", str(password_file), "--spark-settings", str(settings)]
        self._command = [*LADING, "serve", "--init", "--home", str(home), "--store", store, *ports, *files]
        self._process: subprocess.Popen[bytes] | None = None
        self.is_stopped = False

    def start(self, failpoints: str = "") -> None:
        """A new life. Waits for nothing."""
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "LADING_FAILPOINTS": failpoints},
            )

    @property
    def code(self) -> int | None:
        """How it ended; None: it lives, or was never started."""
        return self._process.poll() if self._process is not None else None

    @property
    def lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def address(self) -> ServiceAddress | None:
        """Where it listens, when it does."""
        found = find_address(self.home) if self.lives else None
        assert self._process is not None or found is None
        if found is None or self._process is None:
            return None
        return found if found.pid in {self._process.pid, *processes_below(self._process.pid)} else None

    @property
    def is_ready(self) -> bool:
        return not self.is_stopped and self.address is not None

    @property
    def is_warm(self) -> bool:
        """Whether its Spark has been started."""
        address = self.address
        return address is not None and "java" in processes_below(address.pid).values()

    def kill(self, rng: Random) -> None:
        """SIGKILL of the service or of the process that looks after it; all below it goes as well."""
        assert self._process is not None
        below, address = processes_below(self._process.pid), self.address
        kill(address.pid if address is not None and rng.random() < 0.7 else self._process.pid)
        self._gone(below)

    def _gone(self, below: dict[int, str]) -> None:
        assert self._process is not None
        try:
            self._process.wait(GONE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        wait_until_gone(below, GONE_S)
        self.is_stopped = False

    def kill_below(self, rng: Random, *, is_java: bool) -> bool:
        """SIGKILL Spark's Java, or one of its Python workers. Whether there was one."""
        address = self.address
        below = processes_below(address.pid) if address is not None else {}
        able = [pid for pid, name in below.items() if name.startswith("java" if is_java else "python")]
        return bool(able) and kill(rng.choice(able))

    def stop(self) -> bool:
        """SIGSTOP. Whether it was there."""
        address = self.address
        if address is None or not _send(address.pid, signal.SIGSTOP):
            return False
        self.is_stopped = True
        return True

    def go_on(self) -> None:
        """SIGCONT."""
        self.is_stopped = False
        if address := self.address:
            _send(address.pid, signal.SIGCONT)

    def abort(self) -> bool:
        """SIGABRT, as of a library; its parent starts it again."""
        address = self.address
        return address is not None and _send(address.pid, signal.SIGABRT)

    def end(self, patience_s: float = 180.0) -> int | None:
        """SIGTERM. How it ended; None: not in time, and was killed."""
        if self._process is None or not self.lives:
            return self.code
        below = processes_below(self._process.pid)
        self._process.terminate()
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._gone(below)
            return None

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Through the MySQL door. Raises NoAnswerError."""
        address, clock = self._there(), SystemClock()
        began_s = clock.monotonic_s()
        try:
            with pymysql.connect(
                host="127.0.0.1",
                port=address.mysql_port,
                user="root",
                password=self._password_file.read_text().strip(),
                autocommit=True,
                connect_timeout=int(ANSWER_S),
                read_timeout=ANSWER_S,
            ) as connection:
                cursor = connection.cursor()
                cursor.execute(text)
                return [tuple(row) for row in cursor.fetchall()]
        except (pymysql.MySQLError, OSError) as error:
            raise NoAnswerError(error, was_late=clock.monotonic_s() - began_s >= ANSWER_S) from error

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Through the HTTP door. Raises NoAnswerError."""
        address = self._there()
        head = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{address.http}{path}", json.dumps(body).encode(), head)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            raise NoAnswerError(error.read().decode(errors="replace")) from error
        except TimeoutError as error:
            raise NoAnswerError(error, was_late=True) from error
        except (OSError, ValueError) as error:
            raise NoAnswerError(error) from error

    def _there(self) -> ServiceAddress:
        address = self.address
        if address is None:
            msg = "it is not there"
            raise NoAnswerError(msg)
        return address


def _send(pid: int, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
