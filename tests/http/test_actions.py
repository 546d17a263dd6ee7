"""What can be done to jobs, and by whom not."""

from __future__ import annotations

from typing import Any

import deltalake
import pytest
from fastapi.testclient import TestClient

from tests.http.rig import JSON, Rig


def test_a_job_is_paused_resumed_and_stopped_as_by_statement(loaded: Rig) -> None:
    client = loaded.client()
    states = [client.post(f"/api/jobs/orders/{verb}", headers=JSON).json() for verb in ("pause", "resume", "stop")]
    assert [state["job"]["state"] for state in states] == ["PAUSED", "PENDING", "STOPPED"]
    assert states[0]["job"]["reason"]["needs_attention"]
    audit = client.get("/api/jobs/orders/audit").json()["audit"]
    assert [(entry["action"], entry["user"]) for entry in audit[:3]] == [
        ("DROP", "anonymous"),
        ("RESUME", "anonymous"),
        ("PAUSE", "anonymous"),
    ]


def test_what_the_state_does_not_allow_is_a_conflict(loaded: Rig) -> None:
    client = loaded.client()
    client.post("/api/jobs/orders/pause", headers=JSON)
    again = client.post("/api/jobs/orders/pause", headers=JSON)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "JobState")
    client.post("/api/jobs/orders/stop", headers=JSON)
    assert client.post("/api/jobs/orders/resume", headers=JSON).status_code in (404, 409)
    assert client.post("/api/jobs/nobody/pause", headers=JSON).status_code == 404


def test_a_job_with_an_odd_name_in_an_odd_database_is_stopped(rig: Rig) -> None:
    rig.create_routine("cl-icks", "sh op")
    stopped = rig.client().post("/api/jobs/sh op.cl-icks/stop", headers=JSON).json()
    assert stopped["job"]["state"] == "STOPPED"


def test_a_dry_run_says_what_moving_means_and_changes_nothing(loaded: Rig) -> None:
    client, partition = paused(loaded)
    body = {"positions": {partition: f"{loaded.inbox}/a.csv"}, "dry_run": True}
    plan = client.post("/api/jobs/orders/position", json=body).json()
    (move,) = plan["moves"]
    assert (plan["is_done"], move["partition"], move["start"]) == (False, partition, f"{loaded.inbox}/c.csv")
    assert (move["direction"], move["again"], move["skipped"], move["unit"]) == ("BACK", 2, 0, "files")
    assert client.get("/api/jobs/orders").json()["epoch"] == 0
    assert [entry["action"] for entry in client.get("/api/jobs/orders/audit").json()["audit"]] == ["PAUSE", "CREATE"]


def test_only_what_a_dry_run_showed_is_done_when_it_is_named(loaded: Rig) -> None:
    client, partition = paused(loaded)

    def move(file: str, **more: object) -> Any:
        body = {"positions": {partition: f"{loaded.inbox}/{file}"}, **more}
        return client.post("/api/jobs/orders/position", json=body)

    seen = move("a.csv", dry_run=True).json()["seen"]
    assert move("b.csv").status_code == 200  # Somebody else was quicker.
    refused = move("a.csv", seen=seen)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "JobChanged")
    assert client.get("/api/jobs/orders").json()["epoch"] == 1
    assert move("a.csv", seen=move("a.csv", dry_run=True).json()["seen"]).json()["is_done"]


def test_a_job_is_moved_as_by_statement(loaded: Rig) -> None:
    client, partition = paused(loaded)
    body = {"positions": {partition: f"{loaded.inbox}/a.csv"}, "reason": "b was wrong"}
    plan = client.post("/api/jobs/orders/position", json=body).json()
    assert (plan["is_done"], plan["epoch"]) == (True, 1)
    detail = client.get("/api/jobs/orders").json()
    assert [part["at"] for part in detail["positions"]] == [f"{loaded.inbox}/a.csv"]
    assert (detail["epoch"], detail["job"]["state"]) == (1, "PAUSED")
    newest = client.get("/api/jobs/orders/audit").json()["audit"][0]
    assert (newest["action"], newest["facts"]["why"]) == ("ALTER", "b was wrong")


def test_a_rollback_is_shown_and_accepted(loaded: Rig) -> None:
    client, _ = paused(loaded)
    assert client.get("/api/jobs/orders/rollback").status_code == 409
    table = deltalake.DeltaTable(f"{loaded.path}/home/warehouse/shop/orders")
    table.restore(table.version() - 1)
    view = client.get("/api/jobs/orders/rollback").json()
    assert (view["table"], view["commits_gone"], view["can_keep"], view["can_load_again"]) == (
        "shop.orders",
        1,
        True,
        True,
    )
    stale = client.post("/api/jobs/orders/rollback", json={"choice": "keep", "seen": "x"})
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "JobChanged")
    assert client.post("/api/jobs/orders/rollback", json={"choice": "maybe"}).status_code == 422
    body = {"choice": "again", "seen": view["seen"], "reason": "meant"}
    detail = client.post("/api/jobs/orders/rollback", json=body).json()
    assert (detail["job"]["state"], detail["epoch"]) == ("PAUSED", 1)
    newest = client.get("/api/jobs/orders/audit").json()["audit"][0]
    assert (newest["action"], newest["facts"]["why"]) == ("ACCEPT ROLLBACK", "meant")


def test_only_a_paused_job_is_moved(loaded: Rig) -> None:
    body = {"positions": {str(loaded.inbox): "x"}}
    answer = loaded.client().post("/api/jobs/orders/position", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "JobState")


def test_a_move_that_makes_no_sense_is_refused(loaded: Rig) -> None:
    client, partition = paused(loaded)
    for positions, status in (
        ({}, 422),
        ({"elsewhere": "x"}, 400),
        ({partition: None}, 400),
        ({partition: "a", "other": "b"}, 400),
        ({partition: '{"not": "an offset"}'}, 400),
    ):
        answer = client.post("/api/jobs/orders/position", json={"positions": positions})
        assert answer.status_code == status, answer.text
    assert client.post("/api/jobs/nobody/position", json={"positions": {"p": "3"}}).status_code == 404
    assert client.get("/api/jobs/orders").json()["epoch"] == 0


def test_a_job_that_never_ran_is_not_moved_by_a_wrong_partition(rig: Rig) -> None:
    rig.put("a.csv", "1.00")
    rig.create()
    client, partition = paused(rig)
    for dry_run in (True, False):
        body = {"positions": {"no-such-partition": "zzz"}, "dry_run": dry_run}
        refused = client.post("/api/jobs/orders/position", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "Config"), refused.text
        assert partition in refused.json()["error"]["todo"]
    assert client.get("/api/jobs/orders").json()["epoch"] == 0
    moved = client.post("/api/jobs/orders/position", json={"positions": {partition: f"{rig.inbox}/a.csv"}})
    assert (moved.status_code, moved.json()["moves"][0]["partition"]) == (200, partition), moved.text


def paused(rig: Rig) -> tuple[TestClient, str]:
    client = rig.client()
    client.post("/api/jobs/orders/pause", headers=JSON)
    return client, f"file://{rig.inbox}/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({**JSON, "origin": "https://evil.example"}, 403),
        ({"authorization": "Basic eDp5", "origin": "https://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "origin": "http://testserver"}, 200),
        (JSON, 200),
        ({"authorization": "Basic eDp5"}, 200),
        ({"authorization": "Bearer x"}, 200),
        ({"authorization": "Bearer x", "origin": "https://elsewhere.example"}, 200),
    ],
)
def test_a_page_of_another_site_cannot_write(loaded: Rig, headers: dict[str, str], status: int) -> None:
    answer = loaded.client().post("/api/jobs/orders/pause", headers=headers)
    assert answer.status_code == status, answer.text
    assert loaded.lading.job("orders").state.value == ("PAUSED" if status == 200 else "RUNNING")
