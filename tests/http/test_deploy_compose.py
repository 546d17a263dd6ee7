"""deploy/compose.yaml and the Helm chart fit together, and name only what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it has no types

import lading
from lading.cli.main import command_of
from lading.pipeline.cluster import executor_settings
from lading.service.security.bind_policy import check_listening
from lading.settings import groups, read_spark_settings, variable_of
from tests.http.test_deploy_kubernetes import manifests

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CHART = DEPLOY / "helm" / "lading"
VARIABLES = {variable_of(each) for group in groups().values() for each in fields(group)}


def options_of(words: list[str]) -> dict[str, Any]:
    """What `lading serve` makes of these words; it fails on one that it does not know."""
    command = command_of(words[0])
    found: dict[str, Any] = command.make_context(words[0], words[1:]).params
    return found


def test_compose_starts_a_service_that_can_be_reached_and_nothing_names_a_password() -> None:
    made = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = made["services"]["lading"]
    given = options_of(service["command"])
    check_listening(given["host"], has_tls=given["tls_cert"] is not None, insecure=given["insecure"])
    assert given["host"] == "0.0.0.0"
    assert {"/run/secrets/" + name for name in service["secrets"]} >= {str(given["tls_cert"]), str(given["tls_key"])}
    assert service["environment"].keys() <= VARIABLES
    assert re.findall(r"LADING_\w+", str(service["entrypoint"])) == ["LADING_STORE"]
    for name, each in made["services"].items():
        assert set(each.get("secrets", ())) <= made["secrets"].keys(), name
        assert {volume.partition(":")[0] for volume in each.get("volumes", ())} <= made["volumes"].keys(), name
        assert set(each.get("depends_on", ())) <= made["services"].keys(), name
        assert all(port.startswith("127.0.0.1:") for port in each.get("ports", ())), name
        plain = [key for key in each.get("environment", {}) if key.endswith("PASSWORD")]
        assert plain == [], name
    ignored = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    assert "deploy/secrets/" in ignored


def helm(*words: str) -> str:
    # `go install` puts it into a folder that is seldom on the path.
    found = shutil.which("helm") or shutil.which("helm", path=str(Path.home() / "go" / "bin"))
    if found is None:
        pytest.skip("NOT PROVED, no helm: the chart was not rendered (go install helm.sh/helm/v3/cmd/helm@latest)")
    return subprocess.run([found, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def rendered(*words: str) -> dict[tuple[str, str], dict[str, Any]]:
    text = helm("template", "lading", str(CHART), "--namespace", "lading", *words)
    found = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_the_chart_renders_to_the_manifests_of_the_folder() -> None:
    """But for the namespace and the store, which are not its business."""
    plain, chart = manifests(), rendered()
    own = {key for key in plain if key[0] != "Namespace" and key[1] != "store"}
    assert chart.keys() == own
    del chart["StatefulSet", "lading"]["spec"]["template"]["metadata"]["annotations"]
    for port in chart["Service", "lading"]["spec"]["ports"]:
        assert port.pop("targetPort") == port["port"]
    assert chart["Service", "lading"]["spec"].pop("type") == "ClusterIP"
    for key in own - {("ConfigMap", "lading-spark")}:
        assert chart[key] == plain[key], key


def test_the_chart_has_the_same_settings_of_spark(tmp_path: Path) -> None:
    settings = []
    for number, known in enumerate((manifests(), rendered())):
        path = tmp_path / f"{number}.conf"
        path.write_text(known["ConfigMap", "lading-spark"]["data"]["spark.conf"])
        settings.append(read_spark_settings(path))
        assert executor_settings(settings[-1], tmp_path) == {}
    assert settings[0] == settings[1]


def test_values_of_the_chart_reach_the_service() -> None:
    words = ("--set", "allowHosts={lading.example}", "--set", "env.LADING_NOTIFY_WEBHOOK_URL=https://h.example/x")
    pod = rendered(*words)["StatefulSet", "lading"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert options_of(container["args"])["allow_host"] == ["lading.lading.svc", "lading.example"]
    assert {each["name"] for each in container["env"]} <= VARIABLES
    assert {"name": "LADING_NOTIFY_WEBHOOK_URL", "value": "https://h.example/x"} in container["env"]


def leaves(values: dict[str, Any], above: str = "") -> set[str]:
    """Paths of everything that can be set. Lists, empty maps and what templates write whole are taken whole."""
    found = set[str]()
    for name, value in values.items():
        is_deeper = isinstance(value, dict) and value and f"{above}{name}" not in ("resources", "spark.settings")
        found |= leaves(value, f"{above}{name}.") if is_deeper else {f"{above}{name}"}
    return found


def test_templates_use_every_value_of_the_chart_and_no_other() -> None:
    """Also where there is no helm. A name that is not there would be rendered as nothing."""
    texts = [path.read_text() for path in sorted((CHART / "templates").iterdir())]
    used = {name for text in texts for name in re.findall(r"\.Values\.([\w.]+)", text)}
    assert used == leaves(yaml.safe_load((CHART / "values.yaml").read_text()))
    for text in texts:
        opened = re.findall(r"{{-?\s*(?:range|with|if)\b", text)
        assert len(opened) == len(re.findall(r"{{-?\s*end\b", text))
        assert text.count("{{") == text.count("}}")


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == lading.__version__
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["image"].endswith(f":{lading.__version__}")
