"""Tokens as programs use them: how long, what for, and when they were used."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lading.http.app import create_app
from lading.service.facade import Lading
from lading.service.security.users import ROOT, Privilege
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.http.rig import rules

START = ManualClock().now()
PASSWORD = secret("horse")
SETUP = f"""
CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT) USING delta;
CREATE TABLE clicks (id BIGINT) USING delta;
CREATE USER ann IDENTIFIED BY '{PASSWORD}'; GRANT LOAD, SELECT ON shop.* TO ann;
CREATE JOB clicks ON STREAMING DO INSERT INTO clicks SELECT * FROM FILE("uri"="FOLDER/*.csv", "format"="csv_with_names")
"""


class Door:
    """A service that is asked over HTTP, with a clock that is moved by hand."""

    def __init__(self, home: Path) -> None:
        self.clock = ManualClock()
        self.lading = Lading(home, clock=self.clock)
        self.lading.access.set_password("root", PASSWORD, by=ROOT)
        app = create_app(self.lading, access=self.lading.access, rules=rules())
        self.client = TestClient(app, raise_server_exceptions=False)

    def ask(self, text: str, token: str = "", user: str = "root") -> Any:
        proof: dict[str, Any] = {"auth": (user, PASSWORD)} if not token else {"headers": bearer(token)}
        return self.client.post("/api/sql", json={"sql": text}, **proof)

    def rows(self, text: str, token: str = "", user: str = "root") -> list[list[Any]]:
        answer = self.ask(text, token, user)
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["results"][-1]["rows"]
        return rows

    def token(self, limits: str = "", user: str = "ann") -> str:
        return str(self.rows(f"CREATE TOKEN FOR {user} {limits}", user=user)[0][1])


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    monkeypatch.setenv("LADING_TOKEN_DAYS", "30")
    made = Door(tmp_path / "home")
    made.lading.sql(SETUP.replace("FOLDER", str(tmp_path)))
    yield made
    made.lading.close()


def test_a_token_expires_as_it_says_or_as_the_setting_says(door: Door) -> None:
    tokens = {days: door.token(text) for days, text in ((1, "EXPIRES IN 1 DAYS"), (30, ""), (9999, "NEVER EXPIRES"))}
    for days in (1, 30):
        door.clock.sleep((START + timedelta(days=days, seconds=-1) - door.clock.now()).total_seconds())
        assert door.ask("SHOW TOKENS", tokens[days]).status_code == 200
        door.clock.sleep(1)
        refused = door.ask("SHOW TOKENS", tokens[days])
        assert (refused.status_code, "expired at" in refused.json()["error"]["message"]) == (401, True)
    shown = door.rows("SHOW TOKENS", tokens[9999])
    assert sorted(row[4] for row in shown) == ["2026-01-02 00:00:00+00:00", "2026-01-31 00:00:00+00:00", "never"]


def test_the_list_says_what_a_token_is_for_and_when_it_was_used(door: Door) -> None:
    token = door.token("COMMENT 'nightly' SCOPE READ ONLY")
    shown = door.ask("SHOW TOKENS", user="ann").json()["results"][0]
    assert shown["columns"] == ["Id", "User", "Scope", "Created", "Expires", "LastUsed", "Comment"]
    assert shown["rows"][0][1:3] + shown["rows"][0][5:] == ["ann", "READ ONLY", "", "nightly"]
    used = []
    for seconds in (0, 59, 2):
        door.clock.sleep(seconds)
        assert door.client.get("/api/jobs", headers=bearer(token)).status_code == 200
        used.append(door.rows("SHOW TOKENS", user="ann")[0][5])
    assert used == ["2026-01-01 00:00:00+00:00"] * 2 + ["2026-01-01 00:01:01+00:00"]
    door.rows(f"DROP TOKEN {shown['rows'][0][0]}", user="ann")
    assert door.client.get("/api/jobs", headers=bearer(token)).status_code == 401


CHANGES = [
    "PAUSE JOB WHERE jobname = 'clicks'",
    "DROP JOB WHERE jobname = 'clicks'",
    "CREATE TOKEN FOR {user}",
    "DROP TOKEN {token}",
    "ALTER USER {user} IDENTIFIED BY 'another sentence'",
    "CREATE USER eve",
    "GRANT ADMIN ON *.* TO ann",
    "DROP TABLE shop.clicks",
    "CREATE DATABASE mine",
]


@pytest.mark.parametrize("user", ["ann", "root"])
def test_a_read_only_token_sees_what_its_user_sees_and_changes_nothing(door: Door, user: str) -> None:
    token, other = door.token("SCOPE READ ONLY", user), door.token(user=user)
    assert len(door.rows("SELECT Name FROM jobs('type'='insert')", token)) == 1
    assert [job["name"] for job in door.client.get("/api/jobs", headers=bearer(token)).json()["jobs"]] == ["clicks"]
    assert door.rows("SHOW TABLES FROM shop", token) == [["clicks"], ["orders"]]
    for text in CHANGES:
        refused = door.ask(text.format(user=user, token=other.split("_")[1]), token)
        assert refused.status_code == 403, (text, refused.text)
        assert "the token is READ ONLY" in refused.json()["error"]["message"]
    assert door.client.post("/api/jobs/clicks/pause", json={}, headers=bearer(token)).status_code == 403
    assert door.client.post("/api/jobs/clicks/pause", json={}, headers=bearer(other)).status_code == 200


@pytest.mark.parametrize("user", ["ann", "root"])
def test_a_token_for_some_tables_ends_there(door: Door, user: str) -> None:
    token = door.token("SCOPE (SELECT ON shop.orders, LOAD ON hr)", user)
    assert door.rows("SHOW TABLES FROM shop", token) == [["orders"]]
    assert door.rows("DESCRIBE shop.orders", token)
    assert door.ask("DESCRIBE shop.clicks", token).status_code == 403
    assert door.rows("SELECT Name FROM jobs('type'='insert')", token) == []
    assert door.client.get("/api/jobs/clicks", headers=bearer(token)).status_code == 404
    for text in CHANGES[2:]:
        refused = door.ask(text.format(user=user, token=token.split("_")[1][:-1]), token)
        assert refused.status_code in (403, 404), (text, refused.text)


def test_a_scope_gives_nothing_that_the_user_lacks(door: Door) -> None:
    token = door.token("SCOPE (ADMIN ON *.*)")
    assert door.ask("DROP TABLE shop.clicks", token).status_code == 403
    assert door.ask("SHOW USERS", token).status_code == 403
    assert door.ask("CREATE TOKEN FOR ann", token).status_code == 403
    door.rows("REVOKE LOAD, SELECT ON shop.* FROM ann")
    assert door.ask("DESCRIBE shop.orders", token).status_code == 403


def test_a_token_that_expires_leaves_nothing_that_outlives_it(door: Door) -> None:
    token = door.token("EXPIRES IN 2 DAYS")
    for text in ("NEVER EXPIRES", "EXPIRES IN 3 DAYS"):
        assert door.ask(f"CREATE TOKEN FOR ann {text}", token).status_code == 403
    assert door.rows("CREATE TOKEN FOR ann", token)[0][2] == "2026-01-03 00:00:00+00:00"
    assert door.rows("CREATE TOKEN FOR ann EXPIRES IN 1 DAYS", token)[0][2] == "2026-01-02 00:00:00+00:00"
    refused = door.ask("ALTER USER ann IDENTIFIED BY 'another sentence'", token)
    assert (refused.status_code, "the token expires" in refused.json()["error"]["message"]) == (403, True)


ACCOUNTS = [
    f"CREATE USER eve IDENTIFIED BY '{secret('eve')}'",
    f"ALTER USER ann IDENTIFIED BY '{secret('other')}'",
    "GRANT ADMIN ON *.* TO ann",
    "REVOKE LOAD ON shop.* FROM ann",
    "CREATE ROLE loaders",
    "CREATE TOKEN FOR ann",
    "DROP USER ann",
]


def test_a_token_with_a_scope_changes_no_accounts_even_with_admin_on_everything(door: Door) -> None:
    """It made users with passwords and ADMIN, which its scope and its end did not hold."""
    token = door.token("SCOPE (ADMIN ON *.*)", "root")
    for text in ACCOUNTS:
        refused = door.ask(text, token)
        assert refused.status_code == 403, text
        assert "the token has a scope" in refused.json()["error"]["message"]
    assert {row[0] for row in door.rows("SHOW USERS", token)} == {"ann", "root"}
    assert door.rows("CREATE DATABASE mine; SHOW DATABASES", token)
    free = door.token("", "root")
    for text in ACCOUNTS:
        assert door.ask(text, free).status_code == 200, text


def test_an_expression_on_spark_needs_a_table_that_may_be_read(door: Door) -> None:
    """Spark was anybody's who had one privilege on anything, also with a token whose scope had none of it."""
    everything, some = door.token(), door.token("SCOPE (LOAD ON shop.orders)")
    for token in (everything, some):
        assert door.rows("SELECT 1", token) == [[1]]
        for text in ("SELECT repeat('a', 10)", "SELECT a FROM (SELECT explode(sequence(1, 9)) AS a) AS t"):
            refused = door.ask(text, token)
            assert refused.status_code == 403, refused.text
            assert "without a table runs on Spark" in refused.json()["error"]["message"]
    assert door.ask("SELECT id FROM shop.orders", some).status_code == 403


def test_what_is_read_at_all_depends_on_the_scope_of_the_token(door: Door) -> None:
    """A long statement, or one that takes long to read, is refused by its first words."""
    text = "SELECT id FROM shop.orders WHERE " + " OR ".join(f"id = {number}" for number in range(20_000))
    refused = door.ask(text, door.token("SCOPE (LOAD ON shop.clicks, SELECT ON hr)"))
    assert refused.json()["error"]["left"] == "The statement was not read."
    for scope in ("READ ONLY", "(SELECT ON shop)", "(SELECT ON *.*)", "(SELECT ON shop.orders)"):
        rights = door.lading.access.rights(door.lading.access.check_token(door.token(f"SCOPE {scope}")))
        assert rights.allow_anywhere(Privilege.SELECT)
        assert not rights.allow_anywhere(Privilege.ADMIN)
