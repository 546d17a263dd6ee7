"""Who did what, as it comes in over HTTP: the log, SHOW AUDIT, and the metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lading.service.security.users import ROOT, Access, Privilege, Scope
from lading.testing.marked import MARK, secret
from tests.http.rig import Rig

PASSWORD, KEY = secret("of ann"), secret("key of a source")


@pytest.fixture
def access(rig: Rig) -> Access:
    made = rig.access()
    made.set_password("root", PASSWORD, by=ROOT)
    made.create_user("ann", PASSWORD, by=ROOT)
    made.grant("ann", [Privilege.LOAD], Scope(database="shop"), by=ROOT)
    rig.lading._access = made  # The same users, with quick passwords, for sessions too.
    return made


@pytest.fixture
def client(rig: Rig, access: Access) -> TestClient:
    return rig.client(access=access)


def told(rig: Rig, user: str = "") -> list[dict[str, Any]]:
    lines = (rig.path / "home" / "audit" / "audit.log").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event for event in events if event["face"] == "http" and user in ("", event["user"])]


def ask(client: TestClient, text: str, user: str = "ann", password: str = PASSWORD) -> Any:
    return client.post("/api/sql", json={"sql": text, "database": "shop"}, auth=(user, password))


def test_logins_statements_and_denials_are_kept(rig: Rig, client: TestClient) -> None:
    assert ask(client, "SHOW TABLES").status_code == 200
    assert ask(client, "DROP DATABASE shop").status_code == 403
    assert ask(client, "SHOW TABLES", password="wrong").status_code == 401
    assert ask(client, "SHOW TABLES", user="nobody-has-this-name", password="wrong").status_code == 401
    assert ask(client, "SELEKT 1").status_code == 400
    assert [(one["user"], one["kind"], one["result"], one["what"], one.get("error")) for one in told(rig)] == [
        ("ann", "login", "ok", "password", None),
        ("ann", "statement", "ok", "SHOW TABLES", None),
        ("ann", "statement", "denied", "DROP DATABASE shop", "Denied"),
        ("ann", "login", "denied", "password", "Auth"),
        ("(unknown)", "login", "denied", "password", "Auth"),
        ("ann", "statement", "error", "(8 characters that are no statement)", "Sql"),
    ]
    assert {one["peer"] for one in told(rig)} == {"testclient"}
    assert told(rig)[1]["database"] == "shop"


def test_too_many_wrong_passwords_and_wrong_tokens_are_kept(rig: Rig, client: TestClient, access: Access) -> None:
    for _ in range(8):
        ask(client, "SHOW TABLES", password="wrong")
    assert len(told(rig, "ann")) == 8
    token = access.create_token("ann", by=ROOT)
    assert client.get("/api/jobs", headers={"authorization": f"Bearer {token.text}"}).status_code == 200
    assert client.get("/api/jobs", headers={"authorization": "Bearer lading_t1_x"}).status_code == 401
    assert [(one["user"], one["result"], one["what"]) for one in told(rig)[-2:]] == [
        ("ann", "ok", f"token {token.token_id}"),
        ("(unknown)", "denied", "token"),
    ]


def test_polling_does_not_flood_and_a_denied_request_is_kept(rig: Rig, client: TestClient) -> None:
    for _ in range(20):
        assert client.get("/api/jobs", auth=("ann", PASSWORD)).status_code == 200
        client.get("/readyz")
    assert [one["kind"] for one in told(rig)] == ["login"]
    assert client.get("/metrics", auth=("ann", PASSWORD)).status_code == 403
    last = told(rig)[-1]
    assert (last["kind"], last["result"], last["what"], last["user"]) == ("request", "denied", "GET /metrics", "ann")


def test_secrets_and_line_ends_of_statements_do_not_reach_the_log(rig: Rig, client: TestClient) -> None:
    rig.sql("CREATE TABLE shop.orders (id BIGINT) USING delta")
    made = ask(
        client,
        'CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM S3("uri" = "s3://b/*.csv", "format" = "csv", '
        f'"s3.endpoint" = "http://127.0.0.1:1", "s3.access_key" = "{KEY}-id", "s3.secret_key" = "{KEY}")',
    )
    assert made.status_code >= 400
    ask(client, f"ALTER USER ann IDENTIFIED BY '{PASSWORD}2'")
    ask(client, 'SHOW TABLES;\nSELECT \'\n{"user": "root"}\n\' FROM t', password=f"{PASSWORD}2")
    assert MARK not in (rig.path / "home" / "audit" / "audit.log").read_text()
    assert [" ".join(one["what"].split())[:30] for one in told(rig, "ann") if one["kind"] != "login"][:2] == [
        "CREATE JOB j ON STREAMING DO I",
        "ALTER USER 'ann' IDENTIFIED BY",
    ]
    assert not [one for one in told(rig) if one["user"] == "root"]


def test_show_audit_is_everything_for_admins_and_ones_own_for_others(rig: Rig, client: TestClient) -> None:
    ask(client, "SHOW TABLES")
    ask(client, f"CREATE USER eve IDENTIFIED BY '{PASSWORD}'", user="root")

    def shown(text: str, user: str) -> list[list[Any]]:
        answer = ask(client, text, user=user)
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["results"][0]["rows"]
        return rows

    assert {row[1] for row in shown("SHOW AUDIT LIMIT 10000", "root")} >= {"ann", "root", "tester"}
    assert {row[1] for row in shown("SHOW AUDIT", "ann")} == {"ann"}
    newest = shown("SHOW AUDIT FOR root KIND 'account' RESULT 'ok' LIKE 'create user%' LIMIT 1", "root")[0]
    assert newest[1:9] == ["root", "http", "testclient", "account", "ok", "", "shop", newest[8]]
    assert newest[8] == "CREATE USER 'eve' IDENTIFIED BY '******'"
    assert shown("SHOW AUDIT SINCE '2999-01-01'", "root") == []
    assert len(shown("SHOW AUDIT SINCE '2020-01-01' LIMIT 2", "root")) == 2
    assert ask(client, "SHOW AUDIT FOR root").status_code == 403
    rig.sql(f"DROP USER ann; CREATE USER ann IDENTIFIED BY '{PASSWORD}'; GRANT LOAD ON shop TO ann")
    assert all("SHOW TABLES" not in row[8] for row in shown("SHOW AUDIT", "ann")), "an earlier user of that name"


def test_counters_begin_at_zero_and_count(rig: Rig, client: TestClient) -> None:
    def value(sample: str) -> float:
        text = client.get("/metrics", auth=("root", PASSWORD)).text
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{sample} "))

    denied = 'lading_audit_events_total{kind="statement",result="denied"}'
    failed, denials = 'lading_failed_logins_total{face="http"}', 'lading_denials_total{face="http"}'
    assert [value(name) for name in (denied, failed, denials, "lading_audit_lost_total")] == [0, 0, 0, 0]
    assert value('lading_failed_logins_total{face="mysql"}') == 0
    ask(client, "DROP DATABASE shop")
    ask(client, "SHOW TABLES", password="wrong")
    assert [value(name) for name in (denied, failed, denials)] == [1, 1, 1]
