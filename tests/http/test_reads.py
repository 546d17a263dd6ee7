"""What can be read of jobs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lading.jobs.events import BatchFailed, BatchStarted
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.jobs.record import JobState, parse_job_name
from lading.model.batch import GONE, Gap
from lading.model.codec import render_bill
from lading.service.views.jobs import JobViews
from tests.http.rig import JSON, Rig


def test_a_job_is_listed_with_what_it_loaded(loaded: Rig) -> None:
    listed = loaded.client().get("/api/jobs").json()
    (job,) = listed["jobs"]
    assert (job["name"], job["kind"], job["target"], job["state"]) == ("orders", "streaming", "shop.orders", "RUNNING")
    rows = {"total": 6, "loaded": 4, "unselected": 0, "error": 2, "late": 0, "duplicate": 0}
    assert job["totals"]["rows"] == rows
    assert (job["watermark"], job["state_rows"], job["state_bytes"], job["listening"]) == (None, None, None, None)
    assert job["batches"] == {"begun": 4, "succeeded": 3, "failed": 0, "cancelled": 1}
    assert job["rows_per_s"] > 0
    assert listed["next_after"] is None


def test_jobs_come_in_pages_and_by_kind_state_and_database(rig: Rig) -> None:
    rig.put("a.csv", "1.00")
    names = [rig.create(f"j{number}").name for number in range(3)]
    rig.create_routine()
    client = rig.client()
    first = client.get("/api/jobs?limit=2").json()
    assert [job["name"] for job in first["jobs"]] == names[:2]
    rest = client.get(f"/api/jobs?limit=2&after={first['next_after']}").json()
    assert [job["name"] for job in rest["jobs"]] == [names[2], "shop.clicks"]
    assert [job["name"] for job in client.get("/api/jobs?kind=routine").json()["jobs"]] == ["shop.clicks"]
    assert client.get("/api/jobs?state=PAUSED").json()["jobs"] == []
    assert client.get("/api/jobs?database=elsewhere").json()["jobs"] == []
    twice = client.get("/api/jobs?database=elsewhere&database=shop")
    assert (twice.status_code, "more than one database" in twice.text) == (400, True)


def test_a_routine_load_is_named_with_its_database(rig: Rig) -> None:
    rig.create_routine()
    found = rig.client().get("/api/jobs/shop.clicks")
    assert found.json()["job"]["database"] == "shop"
    assert rig.client().get("/api/jobs/clicks").status_code == 404
    assert str(parse_job_name("a.b.c")) == "a.b.c"
    assert parse_job_name("a.b.c").database == "a.b"


def test_a_job_shows_its_positions_as_the_table_has_them(loaded: Rig) -> None:
    detail = loaded.client().get("/api/jobs/orders").json()
    [place] = detail["positions"]
    assert place.pop("event_time") is None
    assert place == {
        "partition": f"file://{loaded.inbox}/",
        "at": f"{loaded.inbox}/c.csv",
        "finished": False,
        "parents": [],
    }
    assert (detail["epoch"], detail["job"]["seq"]) == (0, 3)
    assert detail["definition"].startswith("CREATE JOB orders")


def test_a_job_whose_table_is_gone_is_still_shown(loaded: Rig) -> None:
    shutil.rmtree(loaded.path / "home" / "warehouse")
    detail = loaded.client().get("/api/jobs/orders").json()
    assert detail["job"]["totals"]["rows"]["loaded"] == 4
    assert detail["positions"] == []
    assert detail["positions_fault"]


def test_bills_and_batches_come_in_pages(loaded: Rig) -> None:
    client = loaded.client()
    seqs, before = [], ""
    for _ in range(3):
        page = client.get(f"/api/jobs/orders/bills?limit=2{before}").json()
        seqs += [bill["seq"] for bill in page["bills"]]
        before = f"&before={page['next_before']}"
    assert seqs == [3, 2, 1, 0]
    batches = client.get("/api/jobs/orders/batches?limit=3").json()
    assert [batch["batch_id"] for batch in batches["batches"]] == [4, 3, 2]
    older = client.get(f"/api/jobs/orders/batches?before={batches['next_before']}").json()
    assert [batch["state"] for batch in older["batches"]] == ["SUCCESS"]


def test_a_bill_is_shown_whole(loaded: Rig) -> None:
    client = loaded.client()
    listed = client.get("/api/jobs/orders/bills").json()["bills"]
    whole = client.get("/api/jobs/orders/bills/2").json()
    assert (whole["seq"], whole["token"]) == (2, listed[1]["token"])
    assert whole["ranges"] == [
        {"partition": f"file://{loaded.inbox}/", "start": f"{loaded.inbox}/a.csv", "end": f"{loaded.inbox}/b.csv"}
    ]
    for seq in ("9", "-1", str(2**63 - 1), str(2**80)):
        assert client.get(f"/api/jobs/orders/bills/{seq}").status_code == 404


def test_bad_rows_are_listed_and_downloaded(loaded: Rig) -> None:
    client = loaded.client()
    errors = client.get("/api/jobs/orders/errors").json()["errors"]
    assert [(row["seq"], row["file"], row["reason"]) for row in errors] == [
        (3, f"{loaded.inbox}/c.csv", "not a number"),
        (2, f"{loaded.inbox}/b.csv", "not a number"),
    ]
    answer = client.get("/api/jobs/orders/quarantine")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line) for line in answer.text.splitlines()] == errors
    assert len(client.get("/api/jobs/orders/quarantine?limit=1").text.splitlines()) == 1


def test_a_quarantine_file_elsewhere_is_not_opened(loaded: Rig) -> None:
    """A bill lies where others may write: it must not make the service hand out any file of its machine."""
    foreign = loaded.path / "foreign.jsonl"
    foreign.write_text('{"file": "x", "row": 1, "reason": "y", "raw": "of somebody else"}\n')
    record = loaded.lading.job("orders")
    head = loaded.entries(record)[0].head
    path = loaded.path / "home" / "warehouse" / "shop" / "orders" / "_lading" / record.job_id / head.bill_name
    bill = loaded.lading.bills(record, 1)[0]
    inside = loaded.lading.home.quarantine(record.job_id)
    for lie in (str(foreign), f"{inside}/../../../foreign.jsonl"):
        path.write_bytes(render_bill(replace(bill, quarantine=(lie,))))
        said = loaded.client().get("/api/jobs/orders/errors").text
        assert "somebody else" not in said
        assert "not in this home" in said
        shown = str(loaded.sql("SHOW LOAD ERRORS FOR orders"))
        assert "somebody else" not in shown
        assert "not in this home" in shown


def test_a_quarantine_file_that_is_damaged_is_said(loaded: Rig) -> None:
    for path in (loaded.path / "home" / "quarantine").rglob("*.jsonl"):
        path.write_text("[1]\nno json\n")
    for shown in (loaded.client().get("/api/jobs/orders/errors").text, str(loaded.sql("SHOW LOAD ERRORS FOR orders"))):
        assert "is damaged" in shown
        assert "cannot be read" in shown


def test_a_quarantine_file_that_is_gone_is_said(loaded: Rig) -> None:
    shutil.rmtree(loaded.path / "home" / "quarantine")
    assert "is gone" in loaded.client().get("/api/jobs/orders/errors").text


def test_gaps_audit_definition_and_verify(loaded: Rig) -> None:
    client = loaded.client()
    assert client.get("/api/jobs/orders/gaps").json() == {"gaps": []}
    assert [entry["action"] for entry in client.get("/api/jobs/orders/audit").json()["audit"]] == ["CREATE"]
    assert "INSERT INTO shop.orders" in client.get("/api/jobs/orders/definition").json()["definition"]
    verdict = client.post("/api/jobs/orders/verify", headers=JSON).json()
    assert (verdict["is_clean"], verdict["rows"], verdict["bills"]) == (True, 4, 4)


def test_gaps_of_bills_are_shown(loaded: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    bill = loaded.lading.bills(loaded.lading.job("orders"), 1)[0]
    gap = Gap(partition="p", start="1", end=GONE, reason="trimmed", at=datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(loaded.lading, "bills", lambda record, limit: [replace(bill, gaps=(gap,))])
    (shown,) = JobViews(loaded.lading).gaps("orders")
    assert (shown.seq, shown.partition, shown.reason) == (3, "p", "trimmed")


def test_series_have_every_commit_once(loaded: Rig) -> None:
    series = loaded.client().get("/api/jobs/orders/series?minutes=5").json()
    points = series["points"]
    assert sum(point["batches"] for point in points) == 3
    assert round(sum(point["rows_per_s"] for point in points) * series["step_s"]) == 6
    assert not series["is_cut"]


def test_a_stopped_job_is_shown_only_when_asked_for(loaded: Rig) -> None:
    client = loaded.client()
    assert client.post("/api/jobs/orders/stop", headers=JSON).json()["job"]["state"] == "STOPPED"
    assert client.get("/api/jobs").json()["jobs"] == []
    assert [job["state"] for job in client.get("/api/jobs?include_final=true").json()["jobs"]] == ["STOPPED"]
    assert client.get("/api/jobs/orders").status_code == 200


def test_api_and_show_tell_the_same_health(loaded: Rig) -> None:
    def health() -> tuple[str, str]:
        (job,) = loaded.client().get("/api/jobs").json()["jobs"]
        ((told,),) = loaded.sql('SELECT LoadStatistic FROM jobs("type"="insert")')
        return job["health"]["state"], json.loads(str(told))["health"]

    assert health() == ("healthy", "healthy")
    runner = loaded.lading.runner(loaded.lading.job("orders").job_id)
    task = runner.apply(BatchStarted(at=loaded.lading.clock.now())).task
    assert task
    failure = Failure(reason=Reason(code=ReasonCode.INTERNAL_ERR, message="the disk is full"))
    for _ in range(3):
        runner.apply(BatchFailed(task_id=task.task_id, failure=failure, at=loaded.lading.clock.now()))
    assert loaded.lading.job("orders").state is JobState.RUNNING
    assert health() == ("failing", "failing")
    client = loaded.client()
    assert [job["health"]["tries"] for job in client.get("/api/jobs?health=failing").json()["jobs"]] == [3]
    assert client.get("/api/jobs?health=healthy").json()["jobs"] == []
    assert client.get("/api/jobs?health=wonderful").status_code == 422
