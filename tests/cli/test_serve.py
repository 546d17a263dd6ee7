"""The whole service in a process of its own: connect, load, kill it, start it again and find everything."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest
from confluent_kafka import Producer
from playwright.sync_api import expect
from typer.testing import CliRunner

from lading.cli.main import app
from lading.testing.marked import MARK, secret
from tests.console.service import open_browser
from tests.console.test_login import log_in
from tests.logins import read_root_login
from tests.mysql.client import run_mysql
from tests.secret_leaks.watch import WATCH
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

LIMIT_S = 120.0
LADING = [sys.executable, "-c", "from lading.cli.main import main; main()"]


class Service:
    """`lading serve` on ports that are free."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lines: list[str] = []
        self._ready = threading.Event()
        began = time.monotonic()
        self.process = subprocess.Popen(
            [
                *LADING,
                "serve",
                "--init",
                "--home",
                str(home),
                "--mysql-port",
                "0",
                "--http-port",
                "0",
                "--log-format",
                "json",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.odd_lines: list[str] = []
        """Lines that are neither the ready line nor JSON."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(60), self.lines
        self.ready_s = time.monotonic() - began
        self.look()

    def look(self) -> None:
        """Where it listens now: a service that was started again has other ports."""
        address = json.loads((self.home / "service.json").read_text())
        self.pid, self.http, self.mysql_port = address["pid"], address["http"], address["mysql_port"]
        self.token = address["token"]

    def abort(self) -> None:
        """What a failed assertion in a library does; then wait until it is back."""
        old = self.pid
        os.kill(old, signal.SIGABRT)

        def is_back() -> bool:
            self.look()
            return bool(self.pid != old)

        until(is_back, "the service after SIGABRT")

    def metric(self, name: str) -> float:
        request = urllib.request.Request(f"{self.http}/metrics", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request) as answer:
            lines = answer.read().decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"{name} ")).split()[-1])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            WATCH.look(line, "log of the service")
            if line.startswith("Lading is ready"):
                self._ready.set()
            elif not line.startswith("{"):
                self.odd_lines.append(line)
        self._ready.set()

    def ask(self, text: str) -> list[tuple[object, ...]]:
        user, password = read_root_login(self.home)
        with pymysql.connect(
            host="127.0.0.1", port=self.mysql_port, user=user, password=password, autocommit=True
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return [tuple(row) for row in cursor.fetchall()]

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
        assert self.odd_lines == []
        return code


def until(met: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not met():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.1)


def put(inbox: Path, name: str, first: int, count: int) -> None:
    draft = inbox.parent / name
    draft.write_text("id,city\n" + "".join(f"{row},essen\n" for row in range(first, first + count)))
    draft.rename(inbox / name)


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LADING, *words, "--home", str(home)], capture_output=True, text=True, check=False)


@pytest.mark.java
def test_a_service_lives_through_kills_and_says_goodbye_when_asked(tmp_path: Path) -> None:
    home, inbox = tmp_path / "home", tmp_path / "in"
    inbox.mkdir()
    first = Service(home)
    assert first.ready_s < 20 * max(1.0, os.getloadavg()[0] / 2)
    for text in (
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id BIGINT, city STRING) USING delta",
        f'CREATE JOB j PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO shop.orders SELECT * FROM '
        f'FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")',
    ):
        first.ask(text)
    put(inbox, "a.csv", 0, 100)

    def loaded(service: Service) -> int:
        rows = service.ask('SELECT LoadStatistic FROM jobs("type"="insert") WHERE Name=\'j\'')
        return int(json.loads(str(rows[0][0]))["scannedRows"])

    until(lambda: loaded(first) == 100, "the first file")
    # Other commands talk to the service instead of opening the home a second time.
    shown = command(home, "sql", "--format", "json", "-e", "SELECT count(*) AS n FROM shop.orders")
    assert json.loads(shown.stdout) == {"n": 100}, shown.stderr
    for word in (["verify", "j"], ["run"]):
        assert CliRunner().invoke(app, [*word, "--home", str(home)]).exit_code == 0
    with urllib.request.urlopen(f"{first.http}/readyz") as answer:
        assert json.load(answer)["status"] == "ready"
    first.end(signal.SIGKILL)

    second = Service(home)
    put(inbox, "b.csv", 100, 50)
    until(lambda: loaded(second) == 150, "the second file")
    assert second.metric("lading_service_crashes_total") == 0
    second.abort()
    put(inbox, "c.csv", 150, 50)
    until(lambda: loaded(second) == 200, "the third file, after a library aborted the process")
    assert second.ask("SELECT count(*), count(DISTINCT id) FROM shop.orders") == [(200, 200)]
    assert second.metric("lading_service_crashes_total") == 1
    assert any("started again after SIGABRT" in line for line in second.lines)
    assert second.end(signal.SIGTERM) == 0
    assert not (home / "service.json").exists()
    logged = [json.loads(line) for line in second.lines if line.startswith("{")]
    assert any(line.get("job") == "j" and re.fullmatch(r"[0-9a-f]{16}", line.get("batch", "")) for line in logged)

    # Without a service the home is opened by the command itself, and nobody is left to fence.
    told = CliRunner().invoke(
        app, ["sql", "--home", str(home), "--format", "json", "-e", 'SELECT Status FROM jobs("type"="insert")']
    )
    assert json.loads(told.stdout) == {"Status": "RUNNING"}


def test_listening_beyond_this_machine_needs_tls(tmp_path: Path) -> None:
    refused = subprocess.run(
        [*LADING, "serve", "--init", "--home", str(tmp_path / "home"), "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode != 0
    assert "without TLS" in refused.stderr
    assert not (tmp_path / "home").exists()  # No password was made for a service that never began.


@pytest.mark.java
@pytest.mark.browser
def test_a_person_who_knows_doris(tmp_path: Path, broker: KafkaBroker) -> None:
    """The client of Debian, a routine load, a browser, a kill, and everything as it was."""
    topic = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def send(first: int, count: int) -> None:
        for number in range(first, first + count):
            producer.produce(topic, json.dumps({"id": number, "city": "essen"}).encode(), key=str(number))
        assert producer.flush(10) == 0

    def mysql(service: Service, text: str) -> str:
        password = read_root_login(service.home)[1]
        told = run_mysql(service.mysql_port, text, "--batch", "--skip-column-names", password=password)
        assert told.returncode == 0, told.stderr
        return told.stdout

    home = tmp_path / "home"
    first = Service(home)
    mysql(
        first,
        f"""CREATE DATABASE sales; USE sales;
        CREATE TABLE clicks (id BIGINT, city STRING) USING iceberg;
        CREATE ROUTINE LOAD sales.clicks_load ON clicks
        COLUMNS(id, city), WHERE id >= 10
        PROPERTIES ("format" = "json", "max_batch_interval" = "1", "max_error_number" = "5")
        FROM KAFKA ("kafka_broker_list" = "{broker.bootstrap}", "kafka_topic" = "{topic}",
        "property.kafka_default_offsets" = "OFFSET_BEGINNING",
        "property.client.id" = "lading", "property.sasl.password" = "{secret("not needed")}");""",
    )
    send(0, 110)
    with open_browser() as browser:
        page = browser.new_page()
        page.goto(f"{first.http}/jobs/sales.clicks_load")
        log_in(page, *read_root_login(home))
        expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("100", timeout=90_000)
        shown = mysql(first, "SHOW ROUTINE LOAD FOR sales.clicks_load\\G")
        assert "RUNNING" in shown
        assert MARK not in page.content()
        first.end(signal.SIGKILL)
        second = Service(home)
        send(110, 50)
        page.goto(f"{second.http}/jobs/sales.clicks_load")
        log_in(page, *read_root_login(home))
        expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("150", timeout=90_000)
    counted = mysql(second, "SELECT count(*), count(DISTINCT id), min(id) FROM sales.clicks")
    assert counted.split() == ["150", "150", "10"]
    statistic = mysql(second, "SELECT STATISTIC FROM information_schema.routine_load_jobs")
    assert json.loads(statistic.replace("\\\\", "\\"))["totalRows"] == 160
    assert second.end(signal.SIGTERM) == 0
