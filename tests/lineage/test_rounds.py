"""OpenLineage events of commits and failures, as an endpoint and a file get them."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lading.errors import ConfigError, UnavailableError
from lading.jobs.events import BatchFailed, BatchStarted
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.model.load import SourceSpec
from lading.service.lineage.config import LineageSettings, load_lineage_settings
from lading.service.lineage.rounds import LineageRounds
from lading.service.lineage.run_events import name_place, name_source
from lading.settings_around import LineageVariables
from lading.testing.marked import secret
from tests.http.rig import Rig
from tests.support.hook_server import hook_server

FACET = {"type": "object", "required": ["_producer", "_schemaURL"]}
FACETS = {"type": "object", "additionalProperties": FACET}
DATASET = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": {"type": "string", "minLength": 1},
        "name": {"type": "string", "minLength": 1},
        "facets": FACETS,
        "inputFacets": FACETS,
        "outputFacets": FACETS,
    },
    "additionalProperties": False,
}
RUN_EVENT = {
    "type": "object",
    "required": ["eventTime", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {"runId": {"type": "string"}, "facets": FACETS},
        },
        "job": {"type": "object", "required": ["namespace", "name"], "properties": {"facets": FACETS}},
        "inputs": {"type": "array", "items": DATASET},
        "outputs": {"type": "array", "items": DATASET},
    },
}
"""What the specification (2-0-2) asks of a run event, in our words."""


def settings(**given: object) -> LineageSettings:
    found = load_lineage_settings(replace(LineageVariables(), **given))  # type: ignore[arg-type]  # named by each test
    assert found
    return found


def check(event: dict[str, Any]) -> None:
    jsonschema.validate(event, RUN_EVENT)
    uuid.UUID(event["run"]["runId"])
    assert datetime.fromisoformat(event["eventTime"]).tzinfo


def test_commits_are_runs_with_rows_files_and_columns(rig: Rig) -> None:
    rig.put("0.csv", "0.50")
    record = rig.create()
    rig.load(record)
    with hook_server() as server:
        given = settings(openlineage_url=server.url, openlineage_api_key=secret("marquez"))
        rounds = LineageRounds(rig.lading, given)
        rounds.look()
        assert server.requests == [], "what was before is not told"
        rig.put("a.csv", "1.00", "2.00")
        rig.put("b.csv", "wrong", "3.00")
        rig.load(rig.lading.job("orders"))
        rounds.look()
        rounds.look()
        LineageRounds(rig.lading, given).look()
        events = server.bodies
        assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "COMPLETE"]
        for event in events:
            check(event)
        assert len({event["run"]["runId"] for event in events}) == 2
        last = events[-1]
        assert last["job"]["name"] == "orders"
        assert "CREATE JOB" in last["job"]["facets"]["sql"]["query"]
        assert (last["inputs"][0]["namespace"], last["inputs"][0]["name"]) == ("file", str(rig.inbox))
        assert last["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 2
        [table] = last["outputs"]
        assert table["outputFacets"]["outputStatistics"]["rowCount"] == 1
        assert table["facets"]["symlinks"]["identifiers"][0]["name"] == "shop.orders"
        assert [field["name"] for field in table["facets"]["schema"]["fields"]] == ["id", "city", "amount"]
        assert {headers["authorization"] for _, headers, _ in server.requests} == {f"Bearer {secret('marquez')}"}


def test_what_could_not_be_sent_is_sent_again_with_the_same_run_id(rig: Rig) -> None:
    record = rig.create()
    with hook_server() as server:
        rounds = LineageRounds(rig.lading, settings(openlineage_url=server.url))
        rig.put("a.csv", "1.00")
        rig.load(record)
        server.status = 500
        with pytest.raises(UnavailableError):
            rounds.look()
        server.status = 201
        rounds.look()
        assert [event["eventType"] for event in server.bodies] == ["START", "START", "COMPLETE"]
        assert len({event["run"]["runId"] for event in server.bodies}) == 1


def test_a_failed_batch_is_a_run_that_failed_and_a_file_takes_lines(rig: Rig, tmp_path: Path) -> None:
    record, path = rig.create(), tmp_path / "lineage.jsonl"
    rig.load(record)
    rounds = LineageRounds(rig.lading, settings(openlineage_file=path, openlineage_namespace="shop-prod"))
    runner, now = rig.lading.runner(record.job_id), rig.lading.clock.now()
    task = runner.apply(BatchStarted(at=now)).task
    assert task
    reason = Reason(code=ReasonCode.CANNOT_RESUME_ERR, message="The bucket is gone")
    runner.apply(BatchFailed(task_id=task.task_id, failure=Failure(reason=reason, retry=False), at=now))
    rounds.look()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "FAIL"]
    for event in events:
        check(event)
    assert "The bucket is gone" in events[1]["run"]["facets"]["errorMessage"]["message"]
    assert events[1]["job"]["namespace"] == "shop-prod"
    rig.sql("DROP JOB WHERE jobName = 'orders'")
    rounds.look()
    assert not [key for key in rig.lading.store.list_settings() if key.startswith("lineage/")]


def test_it_goes_round_by_itself_and_ends(rig: Rig, tmp_path: Path) -> None:
    rounds = LineageRounds(rig.lading, settings(openlineage_file=tmp_path / "x.jsonl"), every_s=0.01)
    rounds.start()
    rounds.close()
    rounds.close()


@pytest.mark.parametrize(
    ("kind", "properties", "named"),
    [
        ("KAFKA", {"kafka_broker_list": "a:9092,b:9092", "kafka_topic": "t"}, ("kafka://a:9092", "t")),
        ("KINESIS", {"aws.region": "eu-west-1", "kinesis_stream": "s"}, ("kinesis://eu-west-1", "s")),
        ("S3", {"uri": "s3://shop/orders/2026-*/x.csv"}, ("s3://shop", "orders")),
        ("S3", {"uri": "s3://shop/orders/x.csv"}, ("s3://shop", "orders/x.csv")),
        ("FILE", {"uri": "file:///data/in/*.csv"}, ("file", "/data/in")),
    ],
)
def test_sources_have_the_names_of_the_conventions(
    kind: str, properties: dict[str, str], named: tuple[str, str]
) -> None:
    assert name_source(SourceSpec(kind=kind, properties=properties)) == named


def test_places_of_tables_have_the_names_of_the_conventions() -> None:
    assert name_place("s3a://lake/shop/orders/") == ("s3://lake", "shop/orders")


def test_a_url_and_a_file_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="both set"):
        settings(openlineage_url="http://x", openlineage_file=Path("/x"))
    with pytest.raises(ConfigError, match="LADING_OPENLINEAGE_URL is not a URL"):
        settings(openlineage_url="marquez")
    assert load_lineage_settings(LineageVariables()) is None
