"""Ctrl-C at commands that wait, in processes of their own as a terminal has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lading.http.app import create_app
from lading.http.server import HttpServer
from lading.service.runtime.address_file import ServiceAddress, remove_address, write_address
from lading.testing.marked import secret
from tests.cli.test_run_beside_service import answering, job
from tests.console.local import LocalLading
from tests.service.test_rollbacks import LocalDesk

COMMAND = [sys.executable, "-c", "from lading.cli.main import main; main()"]


@contextmanager
def begun(*words: str) -> Iterator[subprocess.Popen[str]]:
    plain = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *words], stdout=pipe, stderr=subprocess.STDOUT, text=True, env=plain) as process:
        try:
            yield process
        finally:
            process.kill()


def test_logs_follow_what_comes_until_ctrl_c(tmp_path: Path) -> None:
    desk = LocalDesk(tmp_path)
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    assert isinstance(desk.lading, LocalLading)
    home = tmp_path / "home"
    server = HttpServer(create_app(desk.lading))
    server.start("127.0.0.1", 0)
    http = f"http://127.0.0.1:{server.port}"
    write_address(home, ServiceAddress(pid=os.getpid(), http=http, mysql_port=0, token=secret("token")))
    try:
        with begun("logs", "j", "-f", "--home", str(home)) as following:
            assert following.stdout
            assert "3 rows loaded, 0 bad" in following.stdout.readline()
            desk.put_orders("b.csv", 10, 2)
            desk.run()
            lines = iter(following.stdout.readline, "")
            assert any("2 rows loaded, 0 bad" in line for line in lines)
            following.send_signal(signal.SIGINT)
            assert (following.wait(60), following.stdout.read()) == (0, "")
    finally:
        remove_address(home)
        server.close()
        desk.lading.close()


def test_a_run_beside_a_service_waits_no_longer_and_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "service.id").touch()
    with answering([job("a")]) as address:
        write_address(tmp_path, ServiceAddress(pid=os.getpid(), http=address, mysql_port=1, token=secret("token")))
        with begun("run", "--home", str(tmp_path)) as waiting:
            assert waiting.stdout
            assert "A service runs the jobs of this home" in waiting.stdout.readline()
            waiting.send_signal(signal.SIGINT)
            said = waiting.stdout.read()
            assert (waiting.wait(60), "Waiting no longer; the service goes on." in said) == (130, True), said
            assert "a: RUNNING; 7 rows loaded" in said
        remove_address(tmp_path)
