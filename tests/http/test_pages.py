"""Pages of the list of jobs, while jobs come and end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient

from tests.http.rig import JSON, Rig

NAMES = [f"j{number}" for number in range(6)]


def page(client: TestClient, after: str | None = None, **asked: str | int) -> dict[str, Any]:
    given = asked | ({"after": after} if after else {})
    answer = client.get("/api/jobs", params={"limit": 2, **given})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [job["name"].partition(".")[2] for job in found["jobs"]]


def test_the_next_page_follows_also_when_its_cursor_has_ended(rig: Rig) -> None:
    client = rig.client()
    for name in NAMES:
        rig.create_routine(name)
    first = page(client)
    assert names(first) == ["j0", "j1"]
    client.post("/api/jobs/shop.j1/stop", headers=JSON)
    assert rig.lading.any_job("shop.j0").state.value != "STOPPED"
    second = page(client, first["next_after"])
    assert names(second) == ["j2", "j3"]
    third = page(client, second["next_after"])
    assert (names(third), third["next_after"]) == (["j4", "j5"], None)


def test_a_cursor_holds_for_another_filter(rig: Rig) -> None:
    for name in NAMES:
        rig.create_routine(name, "odd" if int(name[1]) % 2 else "even")
    first = page(rig.client(), database="even")
    assert names(first) == ["j0", "j2"]
    assert names(page(rig.client(), first["next_after"], database="odd")) == ["j3", "j5"]


def test_jobs_of_the_same_moment_are_each_shown_once(rig: Rig) -> None:
    first = rig.create_routine("j0")
    for name in NAMES[1:]:
        made = replace(first, job_id=type(first.job_id)(f"{first.job_id[:-2]}{name}"), name=name)
        rig.lading.store.create_job(made)
    seen: list[str] = []
    after: str | None = None
    while True:
        found = page(rig.client(), after)
        seen += names(found)
        after = found["next_after"]
        if after is None:
            break
    assert sorted(seen) == NAMES
