"""Options of Java that Lading adds: where they help, and never beside those of somebody else."""

from __future__ import annotations

import os

import pytest

from lading.pipeline.session import _collector

SERIAL = "-XX:+UseSerialGC"
OWN = {"spark.driver.extraJavaOptions": '"-Dlog4j2.configurationFile=/a home/log4j2.properties"'}


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_a_small_machine_gets_the_collector_that_takes_little_memory() -> None:
    assert _collector({}, OWN, {}) == {"spark.driver.extraJavaOptions": f"{next(iter(OWN.values()))} {SERIAL}"}


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        ({"spark.driver.memory": "8g"}, {}),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}, {}),
        ({"spark.driver.extraJavaOptions": "-XX:+UseZGC -Dx=y"}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseParallelGC"}),
    ],
)
def test_who_has_chosen_gets_what_they_chose(given: dict[str, str], variables: dict[str, str]) -> None:
    assert _collector(given, {**OWN, **given}, variables) == {}


def test_many_cores_get_javas_own_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert _collector({}, OWN, {}) == {}
