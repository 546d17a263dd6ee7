"""`lading run` while a service has the home: it waits for the service, and ends with the status it would have alone."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lading.cli.main import app, main
from lading.jobs.batches import NOTHING_NEW
from lading.service.runtime.address_file import ServiceAddress, remove_address, write_address
from lading.testing.marked import secret


def job(
    name: str, state: str = "RUNNING", message: str = "", reason: str = "", code: str = "CANNOT_RESUME_ERR"
) -> dict[str, Any]:
    told = {"code": code, "message": reason} if reason else None
    return {"name": name, "state": state, "message": message, "reason": told, "totals": {"rows": {"loaded": 7}}}


@contextmanager
def answering(jobs: Sequence[dict[str, Any]], problem: dict[str, str] | None = None) -> Iterator[str]:
    """Something that answers as the API of a service does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if problem else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"error": problem} if problem else {"jobs": jobs, "next_after": None}).encode())

        def log_message(self, *given: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.mark.parametrize(
    ("jobs", "arguments", "status", "words"),
    [
        ([job("a", message=f"{NOTHING_NEW}")], [], 0, "a: RUNNING; 7 rows loaded"),
        ([job("a", message=f"{NOTHING_NEW}"), job("b", "PAUSED", reason="x", code="MANUAL_PAUSE_ERR")], [], 0, "a: R"),
        ([job("a", message=f"{NOTHING_NEW}"), job("b", "PAUSED", reason="bad rows")], [], 3, "b is PAUSED: bad rows"),
        ([job("b", "PAUSED", reason="bad rows")], ["b"], 3, "b is PAUSED: bad rows"),
        ([job("a")], ["--timeout", "0.1"], 5, "a has not caught up: the time is over"),
        ([job("a", message=f"{NOTHING_NEW}; not loaded: 2 files")], [], 4, "a: not loaded: 2 files"),
        ([job("a", message=f"{NOTHING_NEW}")], ["typo"], 1, "job not exist: typo"),
        ([], [], 0, "There is no job to run."),
    ],
)
def test_the_exit_status_is_that_of_a_run_alone(
    tmp_path: Path,
    jobs: list[dict[str, Any]],
    arguments: list[str],
    status: int,
    words: str,
) -> None:
    with answering(jobs) as address:
        write_address(tmp_path, ServiceAddress(pid=os.getpid(), http=address, mysql_port=1, token=secret("token")))
        done = CliRunner().invoke(app, ["run", *arguments, "--home", str(tmp_path)])
        remove_address(tmp_path)
    assert (done.exit_code, words in done.output or words in str(done.exception)) == (status, True), done.output


def test_an_error_of_the_service_keeps_its_code_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"code": "JobNotFound", "message": "job not exist: x", "left": "Nothing was changed.", "todo": "Look."}
    monkeypatch.setattr("sys.argv", ["lading", "run", "--home", str(tmp_path)])
    with answering([], problem) as address:
        write_address(tmp_path, ServiceAddress(pid=os.getpid(), http=address, mysql_port=1, token=secret("token")))
        with pytest.raises(SystemExit) as ended:
            main()
        remove_address(tmp_path)
    told = capsys.readouterr().err
    assert (ended.value.code, told) == (1, "JobNotFound: job not exist: x. Nothing was changed. Look.\n")
