"""Statements that would take memory or time from everybody are refused before they are read."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from lading.http import sql
from lading.http.app_state import Desk
from lading.http.callers import Caller
from lading.http.models import SqlAnswer, SqlRequest
from lading.http.server import HttpServer
from lading.http.sql import MOST_AT_ONCE, MOST_OF_ONE
from lading.service.limits import sqlite_sandbox
from lading.service.limits.sqlite_sandbox import Bounds
from lading.service.limits.statement_size import MOST_LETTERS, MOST_PARTS, SHORT, why_too_large
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from tests.http.rig import Rig
from tests.logins import ROOT_LOGIN

ANN = secret("ann")


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MOST_LETTERS + 1),
        "a " * (MOST_PARTS + 1),
        "SELECT " + "(" * (MOST_PARTS + 1),
        ";" * (MOST_PARTS + 1),
    ],
    ids=["letters", "words", "brackets", "statements"],
)
def test_what_is_too_large_is_not_parsed(rig: Rig, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.service.session.parse_statements", lambda _: pytest.fail("It was parsed."))
    answer = rig.client().post("/api/sql", json={"sql": text})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "StatementTooLarge")
    assert len(answer.content) < 1000


def test_one_long_literal_is_taken(rig: Rig) -> None:
    text = f"CREATE DATABASE long; -- {'x' * (MOST_LETTERS - 100)}"
    assert rig.client().post("/api/sql", json={"sql": text}).status_code == 200


def test_the_limits_are_exact() -> None:
    assert why_too_large("x" * MOST_LETTERS) is None
    assert why_too_large("a " * MOST_PARTS) is None
    assert why_too_large("(" * MOST_PARTS) is None
    assert why_too_large("") is None
    assert SHORT < MOST_PARTS


ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    'SELECT count(*), (SELECT count(*) FROM jobs("type"="insert")) FROM c'
)


def test_queries_of_one_user_leave_room_for_those_of_another(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    access = rig.access()
    access.create_user("ann", ANN, by=ROOT)
    run, let_go, taken = sql._run, threading.Event(), threading.Semaphore(0)

    def slow(desk: Desk, caller: Caller, body: SqlRequest) -> SqlAnswer:
        if caller.user == "ann":
            taken.release()
            assert let_go.wait(60)
        return run(desk, caller, body)

    monkeypatch.setattr(sql, "_run", slow)
    with HttpServer(rig.app(access=access)).start() as server, ThreadPoolExecutor(MOST_AT_ONCE) as clients:
        asked: dict[str, Any] = {
            "url": f"http://127.0.0.1:{server.port}/api/sql",
            "json": {"sql": "SHOW DATABASES"},
            "timeout": 60.0,
        }
        anns = [clients.submit(httpx.post, **asked, auth=("ann", ANN)) for _ in range(MOST_AT_ONCE)]
        try:
            assert all(taken.acquire(timeout=30) for _ in range(MOST_OF_ONE))
            assert httpx.post(**asked, auth=ROOT_LOGIN).status_code == 200
            assert not [one for one in anns if one.done()]
        finally:
            let_go.set()
        assert [one.result(30).status_code for one in anns] == [200] * MOST_AT_ONCE


def test_a_query_that_nobody_waits_for_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight that never end, of clients that are gone, kept everybody from asking anything."""
    monkeypatch.setattr(sqlite_sandbox, "BOUNDS", Bounds(seconds=120))
    with HttpServer(rig.app()).start() as server, ThreadPoolExecutor(MOST_AT_ONCE) as clients:
        url = f"http://127.0.0.1:{server.port}/api/sql"

        def ask_and_leave(_: int) -> None:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url, json={"sql": ENDLESS}, timeout=1.0)

        list(clients.map(ask_and_leave, range(MOST_AT_ONCE)))
        assert httpx.post(url, json={"sql": "SHOW DATABASES"}, timeout=30.0).status_code == 200
