"""What deploy/ gives to Prometheus, in Prometheus itself. Debian has it as `prometheus`; skipped where it is not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from lading.http.server import HttpServer
from tests.http.rig import Rig
from tests.http.test_deploy import DEPLOY, exported
from tests.support.kafka_broker import free_ports

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(not (PROMETHEUS and PROMTOOL), reason="no Prometheus: apt-get install prometheus")
RULES = DEPLOY / "prometheus-alerts.yaml"
WITHIN_S = 180.0


@needs_prometheus
def test_the_rules_say_what_they_should(tmp_path: Path) -> None:
    given = (Path(__file__).parent / "alerts.yaml").read_text().replace("RULES", str(RULES))
    (tmp_path / "alerts.yaml").write_text(given)
    said = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(tmp_path / "alerts.yaml")], capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[str]:
    """A Prometheus that scrapes a port of this machine once in a while."""
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\nrule_files: ['{RULES}']\n"
        f"scrape_configs: [{{job_name: lading, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
    )
    (port,) = free_ports(1)
    command = [
        str(PROMETHEUS),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/-/ready")
            yield f"http://127.0.0.1:{port}/api/v1"
        finally:
            process.kill()


def wait_until_ready(url: str) -> None:
    """It listens before it answers."""
    until = time.monotonic() + WITHIN_S
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=10).status_code == 200:
                return
        assert time.monotonic() < until, url
        time.sleep(0.1)


def ask(url: str, expression: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{url}/query", params={"query": expression}, timeout=10)
    assert answer.status_code == 200, (expression, answer.text)
    found: list[dict[str, Any]] = answer.json()["data"]["result"]
    return found


def wait_for(url: str, expression: str) -> list[dict[str, Any]]:
    until = time.monotonic() + WITHIN_S
    while True:
        if found := ask(url, expression):
            return found
        assert time.monotonic() < until, expression
        time.sleep(0.1)


@needs_prometheus
def test_prometheus_takes_the_metrics_and_answers_the_dashboard(loaded: Rig, tmp_path: Path) -> None:
    exported(loaded)  # A sample of everything.
    with HttpServer(loaded.app()).start() as server, prometheus(tmp_path, server.port) as url:
        (seen,) = wait_for(url, "count_over_time(lading_rows_total{fate='loaded'}[1m]) > 2")
        assert (seen["metric"]["job"], seen["metric"]["job_name"]) == ("lading", "orders")
        assert "exported_job" not in seen["metric"]
        dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                ask(url, re.sub(r'=~"\$\w+"', '=~".*"', target["expr"]))
        # One line for each job is what the panels of jobs show.
        (line,) = ask(url, "sum by (job_name) (lading_rows_total)")
        assert line["metric"] == {"job_name": "orders"}
        groups = httpx.get(f"{url}/rules").json()["data"]["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
        (fenced,) = wait_for(url, "ALERTS{alertname='LadingFenced',alertstate='firing'}")
        assert fenced["metric"]["job_name"] == "orders"
