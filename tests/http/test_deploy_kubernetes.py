"""The manifests of deploy/kubernetes fit together, and name only what there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # it has no types

from lading.cli.main import command_of
from lading.pipeline.cluster import ARCHIVE, PYTHON, QUERIES, executor_settings
from lading.pipeline.protection import protected
from lading.settings import groups, read_spark_settings, variable_of

FOLDER = Path(__file__).parent.parent.parent / "deploy" / "kubernetes"


def manifests() -> dict[tuple[str, str], dict[str, Any]]:
    found = [each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(by_name) == len(found) == 11
    return by_name


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for (kind, name), each in manifests().items():
        if kind == "StatefulSet":
            assert each["spec"]["selector"]["matchLabels"] == each["spec"]["template"]["metadata"]["labels"]
            assert ("Service", each["spec"]["serviceName"]) in manifests()
            yield name, each["spec"]["template"]["spec"]


def test_everything_is_in_one_namespace_and_every_name_leads_somewhere() -> None:
    known = manifests()
    assert {each["metadata"].get("namespace", "") for each in known.values() if each["kind"] != "Namespace"} == {
        "lading"
    }
    for (kind, _), each in known.items():
        if kind == "Service":
            assert ("StatefulSet", each["spec"]["selector"]["app"]) in known
        if kind == "RoleBinding":
            assert ("Role", each["roleRef"]["name"]) in known
            assert {("ServiceAccount", subject["name"]) for subject in each["subjects"]} <= known.keys()
    for name, pod in pods():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        claims = {claim["metadata"]["name"] for claim in known["StatefulSet", name]["spec"]["volumeClaimTemplates"]}
        mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert mounted == volumes.keys() | claims
        maps = {volume["configMap"]["name"] for volume in volumes.values() if "configMap" in volume}
        assert all(("ConfigMap", each) in known for each in maps)


def test_no_pod_is_root_and_no_secret_is_written_down() -> None:
    for name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            secret = [each for each in container["env"] if re.search("PASSWORD$|SECRET|STORE", each["name"])]
            assert all("valueFrom" in each for each in secret), name
    assert not [each for each in manifests() if each[0] == "Secret"]


def test_the_role_of_the_driver_is_for_pods_and_what_belongs_to_them() -> None:
    rules = manifests()["Role", "lading-driver"]["rules"]
    assert {name for rule in rules for name in rule["resources"]} == {"pods", "configmaps", "persistentvolumeclaims"}
    assert "*" not in str(rules)


def test_the_service_is_started_with_options_and_variables_that_there_are() -> None:
    container = dict(pods())["lading"]["containers"][0]
    command, *words = container["args"]
    serve = command_of(command)
    assert str(serve.make_context(command, words).params["spark_settings"]) == "/etc/lading/spark.conf"
    known = {variable_of(each) for group in groups().values() for each in fields(group)}
    assert {each["name"] for each in container["env"]} <= known


def test_the_settings_of_spark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "spark.conf"
    path.write_text(manifests()["ConfigMap", "lading-spark"]["data"]["spark.conf"])
    settings = read_spark_settings(path)
    assert {ARCHIVE, PYTHON, QUERIES, "spark.kubernetes.container.image"} <= settings.keys()
    assert executor_settings(settings, tmp_path) == {}
    assert protected(settings)["spark.authenticate"] == "true"
    account = settings["spark.kubernetes.authenticate.executor.serviceAccountName"]
    assert ("ServiceAccount", account) in manifests()
    host, _, rest = settings["spark.driver.host"].partition(".")
    assert manifests()["Service", host]["spec"]["clusterIP"] == "None"
    assert rest == f"{settings['spark.kubernetes.namespace']}.svc"
