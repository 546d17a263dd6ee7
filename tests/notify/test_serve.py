"""`lading serve` with receivers, without Spark: a statement is typed, and a webhook and a file hear of it."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from lading.testing.marked import secret
from tests.http.test_serve_names import SERVE
from tests.logins import read_root_login
from tests.support.hook_server import hook_server

pytestmark = pytest.mark.long

MAKE = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT) USING delta; "
    "CREATE JOB orders ON STREAMING DO INSERT INTO shop.orders SELECT * "
    "FROM FILE('uri'='{inbox}/*.csv', 'format'='csv_with_names', 'column_separator'=','); "
    "PAUSE JOB WHERE jobName = 'orders'"
)


def test_a_pause_reaches_a_webhook_with_a_link_to_the_console(tmp_path: Path) -> None:
    home, inbox = tmp_path / "home", tmp_path / "in"
    inbox.mkdir()
    with hook_server() as hooks:
        token = tmp_path / "token"
        token.write_text(secret("hook"))
        given = {
            "LADING_NOTIFY_WEBHOOK_URL": hooks.url,
            "LADING_NOTIFY_WEBHOOK_TOKEN_FILE": str(token),
            "LADING_OPENLINEAGE_FILE": str(tmp_path / "lineage.jsonl"),
        }
        with subprocess.Popen(
            [*SERVE, "--home", str(home)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **given},
        ) as process:
            assert process.stdout
            line = next(line for line in process.stdout if line.startswith("Lading is ready"))
            token.unlink()  # Read at the start.
            url = f"http://127.0.0.1:{line.split('HTTP on 127.0.0.1:')[1].split()[0]}"
            statements = MAKE.format(inbox=inbox)
            for statement in statements.split("; "):
                answer = httpx.post(f"{url}/api/sql", json={"sql": statement}, auth=read_root_login(home), timeout=60)
                assert answer.status_code == 200, answer.text
            waiting = threading.Event()
            for _ in range(400):
                if hooks.requests:
                    break
                waiting.wait(0.1)
            process.terminate()
            assert process.wait(60) == 0, process.stdout.read()
        [(_, headers, body)] = hooks.requests
        assert headers["authorization"] == f"Bearer {secret('hook')}"
        assert body["text"].startswith("Job orders was paused by a person: ")
        assert body["link"] == f"{url}/jobs/orders"


def test_a_receiver_that_cannot_be_stops_the_start(tmp_path: Path) -> None:
    told = subprocess.run(
        [*SERVE, "--home", str(tmp_path / "home"), "--no-supervise"],
        capture_output=True,
        text=True,
        env={**os.environ, "LADING_NOTIFY_SLACK_URL": "hooks.slack.example"},
        timeout=120,
        check=False,
    )
    assert told.returncode != 0
    assert "LADING_NOTIFY_SLACK_URL is not a URL" in told.stdout + told.stderr
