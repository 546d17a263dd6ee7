"""Users: the same as elsewhere; what they may not see is not there."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from lading.service.security.users import ROOT, Access, Privilege, Scope
from lading.testing.marked import secret
from tests.http.rig import JSON, Rig, rules

PASSWORD = secret("horse")


@pytest.fixture
def access(rig: Rig) -> Access:
    return make_users(rig)


def make_users(rig: Rig) -> Access:
    made = rig.access()
    made.set_password("root", PASSWORD, by=ROOT)
    for name in ("ann", "bob"):
        made.create_user(name, PASSWORD, by=ROOT)
    made.grant("ann", [Privilege.LOAD], Scope(database="shop", table="orders"), by=ROOT)
    return made


@pytest.fixture
def client(loaded: Rig, access: Access) -> TestClient:
    return loaded.client(access=access)


@pytest.fixture(scope="module")
def locked(unchanged: Rig) -> TestClient:
    return unchanged.client(access=make_users(unchanged))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic //79"},
        {"authorization": b"Basic \xe9\xe9"},
        {"authorization": b"Bearer lading_\xe9_\xe9"},
        {"authorization": "Basic bm9jb2xvbg=="},
        {"authorization": "Basic cm9vdDp3cm9uZw=="},
        {"authorization": "Bearer"},
        {"authorization": "Bearer lading_t000000000000_wrong"},
        {"authorization": "Digest x"},
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/jobs/orders", "/metrics", "/api/nothing"])
def test_nobody_gets_in_unproven(locked: TestClient, path: str, headers: dict[str, Any]) -> None:
    answer = locked.get(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "Auth")
    assert "Basic" in answer.headers["www-authenticate"]


def test_a_wrong_user_is_refused_before_the_body_is_looked_at(client: TestClient) -> None:
    assert client.post("/api/sql", content=b"not json", headers=JSON).status_code == 401


def test_health_and_the_description_are_open(client: TestClient) -> None:
    for path in ("/healthz", "/readyz", "/api/openapi.json"):
        assert client.get(path).status_code == 200


def test_a_password_and_a_token_are_the_same_user(client: TestClient, access: Access) -> None:
    token = access.create_token("ann", by=ROOT).text
    by_password = client.get("/api/jobs", auth=("ann", PASSWORD))
    by_token = client.get("/api/jobs", headers={"authorization": f"Bearer {token}"})
    assert [job["name"] for job in by_password.json()["jobs"]] == ["orders"]
    assert by_token.json().keys() == by_password.json().keys()
    assert client.post("/api/jobs/orders/pause", headers={"authorization": f"Bearer {token}"}).status_code == 200
    audit = client.get("/api/jobs/orders/audit", auth=("ann", PASSWORD)).json()["audit"]
    assert (audit[0]["action"], audit[0]["user"]) == ("PAUSE", "ann")


def test_without_load_a_job_cannot_be_seen(client: TestClient, loaded: Rig) -> None:
    bob = ("bob", PASSWORD)
    assert client.get("/api/jobs", auth=bob).json()["jobs"] == []
    hidden, absent = (client.get(f"/api/jobs/{name}", auth=bob) for name in ("orders", "nobody"))
    assert hidden.status_code == absent.status_code == 404
    assert hidden.text == absent.text.replace("nobody", "orders")
    reads = ("bills", "bills/1", "batches", "errors", "quarantine", "gaps", "audit", "definition", "series")
    for what in reads:
        assert client.get(f"/api/jobs/orders/{what}", auth=bob).json()["error"]["code"] == "JobNotFound"
    for what in ("pause", "resume", "stop", "verify"):
        assert client.post(f"/api/jobs/orders/{what}", auth=bob).status_code == 404
    moved = client.post("/api/jobs/orders/position", auth=bob, json={"positions": {"p": "1"}})
    assert moved.status_code == 404
    assert loaded.lading.job("orders").state.value == "RUNNING"


def test_metrics_name_jobs_so_they_need_load_on_everything(client: TestClient, access: Access) -> None:
    assert client.get("/metrics", auth=("ann", PASSWORD)).status_code == 403
    assert client.get("/metrics", auth=("root", PASSWORD)).status_code == 200
    access.grant("bob", [Privilege.LOAD], Scope(), by=ROOT)
    assert client.get("/metrics", auth=("bob", PASSWORD)).status_code == 200


def test_metrics_may_be_open_and_nothing_else_with_them(loaded: Rig, access: Access) -> None:
    app = loaded.app(access=access, under=rules(open_metrics=True))
    assert TestClient(app).get("/metrics").status_code == 200
    assert TestClient(app).get("/api/jobs").status_code == 401


def test_statements_are_bounded_by_privileges(client: TestClient) -> None:
    hidden, missing = ({"sql": f"DROP JOB WHERE jobName = '{name}'"} for name in ("orders", "nosuch"))
    assert client.post("/api/sql", auth=("bob", PASSWORD), json=hidden).status_code == 404
    assert client.post("/api/sql", auth=("bob", PASSWORD), json=missing).status_code == 404
    for text in ("DROP DATABASE shop", "CREATE JOB ) that nobody reads"):
        assert client.post("/api/sql", auth=("bob", PASSWORD), json={"sql": text}).status_code == 403
    assert client.post("/api/sql", auth=("root", PASSWORD), json={"sql": "SHOW DATABASES"}).status_code == 200


def test_the_description_says_how_to_prove_who_one_is(client: TestClient) -> None:
    schemes = client.get("/api/openapi.json").json()["components"]["securitySchemes"]
    assert {scheme["scheme"] for scheme in schemes.values()} == {"basic", "bearer"}


def test_a_token_dies_with_its_user_and_does_not_come_back_with_the_name(client: TestClient) -> None:
    def run(text: str) -> Any:
        answer = client.post("/api/sql", json={"sql": text}, auth=("root", PASSWORD))
        assert answer.status_code == 200, answer.text
        return answer.json()["results"][-1]

    token = run("CREATE TOKEN FOR ann")["rows"][0][1]
    bearer = {"authorization": f"Bearer {token}"}
    assert client.get("/api/jobs", headers=bearer).status_code == 200
    run("DROP USER ann")
    assert client.get("/api/jobs", headers=bearer).status_code == 401
    run(f"CREATE USER ann IDENTIFIED BY '{PASSWORD}'")
    assert client.get("/api/jobs", headers=bearer).status_code == 401
    assert client.get("/api/jobs", auth=("ann", PASSWORD)).status_code == 200
