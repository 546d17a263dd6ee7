"""What deploy/ names exists."""

from __future__ import annotations

import configparser
import json
import re
from dataclasses import fields
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # it has no types

from lading.cli.main import command_of
from lading.model.bill import Bill
from lading.service.telemetry.metrics import Metrics
from lading.settings import groups, variable_of
from lading.status.lag import LagUnit
from tests.http.rig import Rig

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
NAME = re.compile(r"\blading_[a-z_]+\b")
LABELS = re.compile(r"\blading_[a-z_]+\{([^}]*)\}")


def exported(rig: Rig) -> str:
    """The text of a scrape in which every metric has a sample."""
    record = rig.lading.job("orders")
    bill: Bill = rig.lading.bills(record, 1)[0]
    metrics: Metrics = rig.metrics
    metrics.committed(record, bill)
    metrics.batch_ended(record, "unknown", 1.0)
    metrics.step(record, "commit", 0.1)
    metrics.fenced(record)
    metrics.auto_resumed(record)
    metrics.files_left_out(record, {"late": 1}, "")
    texts = []
    for unit in LagUnit:
        metrics.lag_seen(record, unit=unit, partitions={"p": 5}, seconds_to_trim=60.0)
        texts.append(metrics.render().decode())
    return "\n".join(texts)


def test_every_metric_of_the_dashboard_and_the_alerts_is_exported(loaded: Rig) -> None:
    text = exported(loaded)
    known = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())
    used = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {name for expression in used for name in NAME.findall(expression)}
    assert named - known == set()
    labels = set(re.findall(r'(\w+)="', text))
    asked = {
        label for expression in used for part in LABELS.findall(expression) for label in re.findall(r"(\w+)=", part)
    }
    assert asked - labels == set()


def test_every_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())
    found = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in found}) == len(found) > 8
    for rule in found:
        assert rule["annotations"]["summary"].endswith("."), rule["alert"]
        assert rule["annotations"]["todo"].strip().endswith("."), rule["alert"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_unit_and_the_container_start_the_service() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # keys are not lower case
    unit.read_string((DEPLOY / "lading.service").read_text())
    assert " serve " in unit["Service"]["ExecStart"]
    assert int(unit["Service"]["TimeoutStopSec"]) >= 60
    assert unit["Service"]["StateDirectoryMode"] == "0700"
    container = (DEPLOY / "Containerfile").read_text()
    assert "USER 10001" in container
    command = json.loads(re.findall(r"^CMD (\[.*\])$", container, re.MULTILINE)[0])
    assert command[command.index("--host") + 1] == "0.0.0.0"
    assert {"--tls-cert", "--tls-key"} <= set(command)
    assert "LADING_ROOT_PASSWORD_FILE=/run/secrets/" in container
    serve = command_of(command[0])
    assert serve.make_context(command[0], command[1:]).params["host"] == "0.0.0.0"


def test_every_variable_that_deploy_names_is_one_of_lading() -> None:
    """The unit named LADING_KEY, which nobody reads: who set it had no key of their own."""
    known = {variable_of(each) for group in groups().values() for each in fields(group)}
    assert "LADING_SECRET_KEY" in known
    for name in ("lading.service", "Containerfile"):
        assert set(re.findall(r"\bLADING_[A-Z_]+", (DEPLOY / name).read_text())) <= known, name


def test_every_metric_is_documented(loaded: Rig) -> None:
    page = (DEPLOY.parent / "docs" / "metrics.md").read_text()
    names = set(re.findall(r"^# TYPE (\S+)", exported(loaded), re.MULTILINE))
    assert {name for name in names if f"`{name}`" not in page} == set()
