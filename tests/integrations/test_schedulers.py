"""The page about Airflow and Dagster, with the real ones, which are fetched into an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.conftest import Serving
from tests.integrations.test_client import ROOT, snippet

RUN_S = 1800
AIRFLOW = """
from lading.integrations.airflow import AirflowFailException, _client
load.quiet_s = 0
while not caught_up.poke({}):
    pass
assert load.execute({}) == 0
assert tables.execute({}) == [{"Tables_in_shop": "orders"}]
_client("lading_default").pause("orders")
try:
    caught_up.poke({})
except AirflowFailException as error:
    assert "Job orders is PAUSED" in str(error), error
else:
    raise SystemExit("a paused job was waited for")
load.pause_afterwards = True
assert load.execute({}) == 0
assert _client("lading_default").progress("orders").state == "PAUSED"
_client("lading_default").resume("orders")
print("all is well")
"""
DAGSTER = """
from dagster import materialize
resources = {"lading": LadingResource(url=EnvVar("LADING_URL"), token=EnvVar("LADING_TOKEN"))}
assert definitions.resolve_asset_graph().get_all_asset_keys() == {orders.key}
done = materialize([lading_asset("orders", quiet_s=0)], resources=resources)
[made] = done.asset_materializations_for_node("orders")
assert (made.metadata["table"].value, made.metadata["rows_loaded"].value) == ("shop.orders", 0)
lading = LadingResource(url=__import__("os").environ["LADING_URL"], token=__import__("os").environ["LADING_TOKEN"])
lading.client().pause("orders")
assert lading.run("orders", quiet_s=0).state == "RUNNING"
print("all is well")
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def installed(folder: Path, package: str) -> Path:
    """The Python of an environment with this package and what it needs, without Lading's libraries."""
    venv.create(folder / package, with_pip=True)
    python = folder / package / "bin" / "python"
    words = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", package]
    done = subprocess.run(words, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode:
        pytest.skip(f"NOT PROVED, no {package}: {done.stderr[-300:]}")
    return python


def run(python: Path, code: str, folder: Path, **variables: str) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LADING_", "PYTHON"))}
    given = {**plain, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    done = subprocess.run(
        [python, "-c", code], env=given, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all is well" in done.stdout


@pytest.mark.slow
def test_the_page_runs_with_airflow(serving: Serving, folder: Path) -> None:
    python = installed(folder, "apache-airflow-task-sdk")
    connection = json.dumps({"conn_type": "http", "host": serving.url, "password": serving.token})
    run(
        python,
        snippet("Airflow") + AIRFLOW,
        folder,
        AIRFLOW_HOME=str(folder / "airflow"),
        AIRFLOW_CONN_LADING_DEFAULT=connection,
    )


@pytest.mark.slow
def test_the_page_runs_with_dagster(serving: Serving, folder: Path) -> None:
    python = installed(folder, "dagster")
    run(python, snippet("Dagster") + DAGSTER, folder, LADING_URL=serving.url, LADING_TOKEN=serving.token)
