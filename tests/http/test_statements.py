"""Statements that would take memory or time from everybody are refused before they are read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from lading.http.server import HttpServer
from lading.http.sql import MOST_AT_ONCE
from lading.service import bounded_sqlite
from lading.service.bounded_sqlite import Bounds
from lading.service.statement_size import MOST_LETTERS, MOST_PARTS, SHORT, why_too_large
from tests.http.rig import Rig


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
    monkeypatch.setattr("lading.http.sql.parse_statements", lambda _: pytest.fail("It was parsed."))
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


def test_a_query_that_nobody_waits_for_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight that never end, of clients that are gone, kept everybody from asking anything."""
    monkeypatch.setattr(bounded_sqlite, "BOUNDS", Bounds(seconds=120))
    endless = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
        'SELECT count(*), (SELECT count(*) FROM jobs("type"="insert")) FROM c'
    )
    with HttpServer(rig.app()).start() as server, ThreadPoolExecutor(MOST_AT_ONCE) as clients:
        url = f"http://127.0.0.1:{server.port}/api/sql"

        def ask_and_leave(_: int) -> None:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url, json={"sql": endless}, timeout=1.0)

        list(clients.map(ask_and_leave, range(MOST_AT_ONCE)))
        assert httpx.post(url, json={"sql": "SHOW DATABASES"}, timeout=30.0).status_code == 200
