"""One shape for every error, and statements over HTTP."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fastapi.testclient import TestClient

from lading.errors import StoreError
from lading.http.app import create_app
from lading.http.json_values import plain
from lading.ids import JobId
from tests.http.rig import JSON, Rig, rules


@pytest.fixture(scope="module")
def client(unchanged: Rig) -> TestClient:
    return unchanged.client()


SHAPE = {"code", "message", "left", "todo", "facts"}


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "status", "code"),
    [
        ("GET", "/api/jobs/nobody", None, {}, 404, "JobNotFound"),
        ("GET", "/api/jobs/nobody/quarantine", None, {}, 404, "JobNotFound"),
        ("GET", "/api/nothing", None, {}, 404, "NoSuchPath"),
        ("GET", "/nothing", None, {}, 404, "NoSuchPath"),
        ("DELETE", "/api/jobs/orders", None, JSON, 405, "Method"),
        ("POST", "/metrics", None, JSON, 405, "Method"),
        ("POST", "/healthz", None, JSON, 405, "Method"),
        ("GET", "/api/sql", None, {}, 405, "Method"),
        ("GET", "/api/jobs?limit=0", None, {}, 422, "InvalidRequest"),
        ("GET", "/api/jobs?kind=neither", None, {}, 422, "InvalidRequest"),
        ("GET", "/api/jobs/a%00b", None, {}, 422, "InvalidRequest"),
        ("GET", "/api/jobs?after=a-job-id", None, {}, 422, "InvalidRequest"),
        ("GET", f"/api/jobs/orders/quarantine?limit={10**25}", None, {}, 422, "InvalidRequest"),
        ("POST", "/api/jobs/orders/position", b'{"positions": {"p": "\\u0000"}}', JSON, 422, "InvalidRequest"),
        ("POST", "/api/jobs/orders/position", b'{"positions": {"p": "\\ud800"}}', JSON, 422, "InvalidRequest"),
        ("POST", "/api/jobs/orders/position", b'{"positions": {"\\ud800": "x"}}', JSON, 422, "InvalidRequest"),
        (
            "POST",
            "/api/jobs/orders/position",
            rb'{"positions": {"p": "{\"fileName\": \"\\u0000\"}"}}',
            JSON,
            422,
            "InvalidRequest",
        ),
        (
            "POST",
            "/api/jobs/orders/position",
            rb'{"positions": {"p": "{\"fileName\": \"\\ud800\"}"}}',
            JSON,
            422,
            "InvalidRequest",
        ),
        ("POST", "/api/jobs/orders/pause", None, JSON | {"origin": "http://["}, 403, "CrossSite"),
        ("POST", "/api/sql", b"", JSON, 422, "InvalidRequest"),
        ("POST", "/api/sql", b"SHOW TABLES", JSON, 400, "NotJson"),
        ("POST", "/api/sql", b'{"sql": "x"', JSON, 400, "NotJson"),
        ("POST", "/api/sql", b'{"sql": "\xff"}', JSON, 400, "NotJson"),
        ("POST", "/api/sql", b"[" * 200_000, JSON, 400, "NotJson"),
        ("POST", "/api/sql", b"[]", JSON, 422, "InvalidRequest"),
        ("POST", "/api/sql", b'{"sql": "\\ud800"}', JSON, 422, "InvalidRequest"),
        ("POST", "/api/sql", b'{"sql": "x", "\\ud800": 1}', JSON, 422, "InvalidRequest"),
        ("POST", "/api/sql", b"SHOW TABLES", {"content-type": "text/plain"}, 415, "MediaType"),
        ("POST", "/api/sql", b"SHOW TABLES", {"authorization": "Bearer x"}, 415, "MediaType"),
        ("POST", "/api/sql", b'{"sql": "SELEC 1"}', JSON, 400, "Sql"),
        ("POST", "/api/sql", b'{"sql": "USE nowhere"}', JSON, 404, "DatabaseNotFound"),
        ("POST", "/api/sql", b'{"sql": "DESC nothing"}', JSON, 404, "TableNotFound"),
    ],
)
def test_every_error_has_the_one_shape(
    client: TestClient, method: str, path: str, content: bytes | None, headers: dict[str, str], status: int, code: str
) -> None:
    answer = client.request(method, path, content=content, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json"), answer.text
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].keys() == SHAPE
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["message"]


def test_a_wrong_method_says_which_are_right(rig: Rig) -> None:
    assert rig.client().put("/api/jobs/x/bills", headers=JSON).headers["allow"] == "GET"
    assert rig.client().post("/healthz").headers["allow"] == "GET"


def test_a_fault_of_ours_shows_nothing_of_itself(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("inner secret")

    monkeypatch.setattr(rig.lading.store, "list_jobs", fail)
    answer = rig.client().get("/api/jobs")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "Internal")
    assert "inner secret" not in answer.text


def test_a_body_that_is_too_large_is_refused(rig: Rig) -> None:
    client = TestClient(rig.app(under=rules(most_body_bytes=100)))
    whole = client.post("/api/sql", json={"sql": "x" * 200})
    parts = client.post("/api/sql", content=(b"x" * 60 for _ in range(5)), headers=JSON)
    for answer in (whole, parts):
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "BodyTooLarge")


def test_statements_answer_rows_and_keep_their_database(loaded: Rig) -> None:
    client = loaded.client()
    answer = client.post("/api/sql", json={"sql": "USE shop; SHOW TABLES"}).json()
    assert answer["database"] == "shop"
    assert answer["results"][1] == {
        "columns": ["Tables_in_shop"],
        "types": [""],
        "rows": [["orders"]],
        "message": "",
        "is_cut": False,
    }
    cut = client.post("/api/sql", json={"sql": "SHOW DATABASES", "max_rows": 1}).json()["results"][0]
    assert (len(cut["rows"]), cut["is_cut"]) == (1, True)


def test_what_was_done_before_a_statement_failed_is_told(rig: Rig) -> None:
    body = {"sql": "CREATE DATABASE more; CREATE DATABASE more; CREATE DATABASE most"}
    answer = rig.client().post("/api/sql", json=body)
    assert (answer.status_code, answer.json()["error"]["facts"]["statements_done"]) == (409, 1)


def test_a_statement_that_cannot_be_read_says_where(rig: Rig) -> None:
    facts = rig.client().post("/api/sql", json={"sql": "SHOW\nNONSENSE"}).json()["error"]["facts"]
    assert facts["line"] == 2
    assert "^" in facts["excerpt"]


def test_no_digit_is_lost_in_json() -> None:
    assert plain([2**53, 2**53 + 1, -(2**63), Decimal("1.10"), float("nan"), b"\x00", "\ud800"]) == [
        2**53,
        str(2**53 + 1),
        str(-(2**63)),
        "1.10",
        "nan",
        "AA==",
        "\\ud800",
    ]
    assert plain({"a": (True, None, 1.5)}) == {"a": [True, None, 1.5]}


def test_readiness_follows_the_store_and_the_scheduler(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Still:
        is_alive = False

        def snapshot(self) -> dict[JobId, object]:
            return {}

    assert rig.client().get("/readyz").json() == {"status": "ready", "checks": {"store": "ok"}}
    still = TestClient(create_app(rig.lading, scheduler=Still()), base_url="http://127.0.0.1").get("/readyz")
    assert (still.status_code, still.json()["error"]["facts"]["scheduler"]) == (503, "it does not beat")

    def fail(_key: str, _value: str) -> None:
        msg = "The store is away"
        raise StoreError(msg)

    monkeypatch.setattr(rig.lading.store, "write_setting", fail)
    # What was found is kept for a few seconds; another service has not looked yet.
    away = TestClient(create_app(rig.lading), base_url="http://127.0.0.1").get("/readyz")
    assert (away.status_code, away.json()["error"]["code"]) == (503, "NotReady")
    assert rig.client().get("/healthz").status_code == 200
