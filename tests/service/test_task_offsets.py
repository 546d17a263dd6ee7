"""RunningOffset and EndOffset: what a batch reads, and how far the source reaches, as every face shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lading.http.app import create_app
from lading.service.facade import Lading
from tests.console.local import LocalLading
from tests.http.rig import rules
from tests.service.routine_fakes import Desk
from tests.service.routine_fakes import bench as bench
from tests.service.test_draining import CREATE, Producing
from tests.service.test_draining import live as live


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    made = LocalLading(tmp_path / "home", user="tester")
    yield made
    made.close()


def put(inbox: Path, name: str, *rows: str) -> None:
    (inbox / name).write_text("\n".join(["id,city", *rows]) + "\n")


def create_files(lading: Lading, inbox: Path, properties: str = "") -> None:
    lading.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT NOT NULL, city VARCHAR(10)) USING delta; "
        f"CREATE JOB j {properties} ON STREAMING DO INSERT INTO t SELECT * "
        f'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )


def tasks(lading: Lading) -> list[dict[str, Any]]:
    """Oldest first."""
    return lading.sql('SELECT * FROM tasks("type"="insert") ORDER BY CAST(TaskId AS INTEGER)')[-1].dicts()


def job(lading: Lading) -> dict[str, Any]:
    return lading.sql('SELECT * FROM jobs("type"="insert")')[-1].dicts()[0]


def get(lading: Lading, path: str) -> Any:
    client = TestClient(create_app(lading, rules=rules()), raise_server_exceptions=False)
    return client.get(path).json()


def test_a_task_shows_the_first_and_the_last_file_of_its_batch(local: Lading, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    for name in "abcde":
        put(inbox, f"{name}.csv", "1,essen")
    ends = []
    create_files(local, inbox, 'PROPERTIES("s3.max_batch_files"="2")')
    local.watches.append(_Listener(lambda: ends.append(job(local)["EndOffset"])))
    local.run()
    shown = [json.loads(row["RunningOffset"]) for row in tasks(local)]
    files = [("a", "b"), ("c", "d"), ("e", "e")]
    assert shown == [
        {"startFileName": f"{inbox}/{first}.csv", "endFileName": f"{inbox}/{last}.csv"} for first, last in files
    ]
    # The first file that the batch left out, or the last one there is.
    assert [json.loads(end)["fileName"][-5:] for end in ends] == ["c.csv", "e.csv", "e.csv"]
    batches = get(local, "/api/jobs/j/batches")["batches"]
    assert [batch["running_offset"] for batch in batches] == [row["RunningOffset"] for row in reversed(tasks(local))]
    assert get(local, "/api/jobs/j")["job"]["end_offset"] == job(local)["EndOffset"] == job(local)["CurrentOffset"]


def test_late_files_and_batches_that_fail_say_what_they_were_to_read(local: Lading, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    put(inbox, "m.csv", "1,essen")
    create_files(local, inbox)
    local.run()
    put(inbox, "a.csv", "x,essen")
    local.run()
    failed = tasks(local)[-1]
    a, m = f"{inbox}/a.csv", f"{inbox}/m.csv"
    assert (failed["Status"], json.loads(failed["RunningOffset"])) == ("FAILED", {"startFileName": a, "endFileName": a})
    assert json.loads(job(local)["EndOffset"]) == {"fileName": m}


def test_a_routine_load_shows_what_its_task_reads(bench: Desk, live: Producing) -> None:
    during: list[dict[str, Any]] = []

    def look() -> None:
        during.append(bench.lading.sql("SHOW ROUTINE LOAD TASK FOR j")[-1].dicts()[0])
        during.append(get(bench.lading, "/api/jobs/shop.j/batches")["batches"][0])

    live.meanwhile = look
    bench.sql(CREATE)
    bench.lading.run(timeout=20)
    task, batch = during
    assert json.loads(task["DataSourceProperties"]) == {"0": "0", "1": "0"}, "the next offset, as Doris shows it"
    ranges = {"0": {"start": "0", "end": "99"}, "1": {"start": "0", "end": "49"}}
    assert json.loads(batch["running_offset"]) == ranges
    [ended] = get(bench.lading, "/api/jobs/shop.j/batches")["batches"]
    assert (ended["state"], json.loads(ended["running_offset"])) == ("SUCCESS", ranges)
    seen = get(bench.lading, "/api/jobs/shop.j")["job"]
    assert json.loads(seen["current_offset"]) == {"0": "99", "1": "49"}
    assert json.loads(seen["end_offset"]) == {"0": "106", "1": "56"}, "others wrote while it was read"
    waiting = bench.lading.sql("SHOW ROUTINE LOAD TASK FOR j")[-1].dicts()
    assert [json.loads(row["DataSourceProperties"]) for row in waiting] == [{"0": "100", "1": "50"}]


class _Listener:
    """Called with every commit."""

    def __init__(self, on_commit: Any) -> None:
        self._on_commit = on_commit

    def committed(self, record: Any, bill: Any) -> None:
        self._on_commit()

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None
