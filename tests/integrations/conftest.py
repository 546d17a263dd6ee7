"""A running service with a job that has nothing to load, and a token for it. No Spark is started."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.http.test_serve_names import SERVE
from tests.logins import read_root_login

MAKE = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id BIGINT, city STRING) USING delta",
    'CREATE JOB orders PROPERTIES ("max_interval" = "1") ON STREAMING DO INSERT INTO shop.orders SELECT id, city '
    'FROM FILE("uri" = "{inbox}/*.csv", "format" = "csv_with_names", "column_separator" = ",")',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    url: str
    token: str
    home: Path


def ask(url: str, statement: str, login: tuple[str, str]) -> list[list[object]]:
    answer = httpx.post(f"{url}/api/sql", json={"sql": statement}, auth=login, timeout=60)
    assert answer.status_code == 200, answer.text
    rows: list[list[object]] = answer.json()["results"][-1]["rows"]
    return rows


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("orchestrated")
    (folder / "in").mkdir()
    with subprocess.Popen(
        [*SERVE, "--home", str(folder / "home")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        line = next(line for line in process.stdout if line.startswith("Lading is ready"))
        url = f"http://127.0.0.1:{line.split('HTTP on 127.0.0.1:')[1].split()[0]}"
        yield make(url, folder)
        process.terminate()
        process.stdout.read()
        assert process.wait(60) == 0


def make(url: str, folder: Path) -> Serving:
    login = read_root_login(folder / "home")
    for statement in MAKE:
        ask(url, statement.format(inbox=folder / "in"), login)
    rows = ask(url, "CREATE TOKEN FOR root SCOPE (LOAD ON shop.orders, SELECT ON shop.*)", login)
    token = next(str(cell) for cell in rows[0] if str(cell).startswith("lading_"))
    return Serving(url=url, token=token, home=folder / "home")
