"""The laws of `sources/kind.py`, for every kind that the registry has."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lading.errors import NotSupportedError, SqlError
from lading.model.load import LoadSpec
from lading.model.moves import Direction
from lading.model.positions import PartitionState, Positions
from lading.net.addresses import EVERY_PRIVATE
from lading.sources.kind import OpenContext
from lading.sources.registry import STREAMS, kind_of, kinds, stream_kind
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.load_specs import load_with_secrets
from lading.sql.syntax.parse import parse_statement
from lading.testing.clock import ManualClock
from lading.testing.marked import secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a kind must bring to be checked."""

    properties: dict[str, str]
    """Of a source that has no keys, so that the service would sign in as itself if anybody does."""
    keys: dict[str, str]
    """Keys of its own. Empty: it is never signed in to as the service."""
    places: tuple[str, ...]
    """Positions of one partition, in the order in which they are read; the first is the beginning."""
    unordered: tuple[tuple[str, str], ...] = ()
    """Positions of which nobody can say which is before the other."""


AWS = {"aws.access_key": secret("id"), "aws.secret_key": secret("key")}
SAMPLES = {
    "S3": Sample(
        properties={"uri": "s3://b/in/*.csv", "format": "csv"},
        keys={"s3.access_key": secret("id"), "s3.secret_key": secret("key")},
        places=("", "in/1.csv", "in/10.csv", "in/2.csv"),
    ),
    "FILE": Sample(properties={"uri": "/in/*.csv", "format": "csv"}, keys={}, places=("", "/in/1.csv", "/in/2.csv")),
    "KAFKA": Sample(
        properties={"kafka_broker_list": "h:1", "kafka_topic": "clicks"}, keys={}, places=("", "9", "10", "100")
    ),
    "KINESIS": Sample(
        properties={"aws.region": "eu-west-1", "kinesis_stream": "s"},
        keys=AWS,
        places=("TRIM_HORIZON", "AT 9", "AT 9 3", "AFTER 9", "AT 10"),
        unordered=(("LATEST", "AT 10"), ("TIME 2026-01-01T00:00:00+00:00", "AT 10")),
    ),
}
every_kind = pytest.mark.parametrize("name", sorted(kinds()))
every_stream = pytest.mark.parametrize("name", sorted(STREAMS))
OPPOSITE: dict[Direction, Direction] = {"BACK": "FORWARD", "FORWARD": "BACK", "SAME": "SAME", "UNKNOWN": "UNKNOWN"}


def load_of(name: str, properties: dict[str, str] | None = None) -> LoadSpec:
    """The load of a statement with this source."""
    given = SAMPLES[name].properties if properties is None else properties
    source = f"{name}({', '.join(f'{json.dumps(key)}={json.dumps(value)}' for key, value in given.items())})"
    job = f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t SELECT * FROM {source}"
    text = f"CREATE ROUTINE LOAD shop.j ON t FROM {source}" if name in STREAMS else job
    statement = parse_statement(text)
    assert isinstance(statement, CreateJob | CreateRoutineLoad)
    return load_with_secrets(statement)


def at(*places: str, **state: Any) -> Positions:
    return Positions(partitions={str(number): PartitionState(at=place, **state) for number, place in enumerate(places)})


def test_every_kind_is_found_by_its_name_and_has_a_sample() -> None:
    assert {name: kind.name for name, kind in kinds().items()} == {name: name for name in SAMPLES}
    for find in (kind_of, stream_kind):
        with pytest.raises(NotSupportedError, match="PULSAR cannot be the source"):
            find("PULSAR")
    with pytest.raises(NotSupportedError, match="S3 cannot be the source"):
        stream_kind("S3")


@every_kind
def test_positions_have_an_order(name: str) -> None:
    kind, states = kind_of(name), [PartitionState(at=place) for place in SAMPLES[name].places]
    for number, old in enumerate(states):
        assert kind.way(old, old) == "SAME"
        assert [kind.way(old, new) for new in states[number + 1 :]] == ["FORWARD"] * len(states[number + 1 :])
        assert [kind.way(new, old) for new in states[number + 1 :]] == ["BACK"] * len(states[number + 1 :])
        # A partition that was finished and is read again goes back, wherever it is.
        assert kind.way(replace(old, finished=True), old) == "BACK"
        assert kind.way(old, replace(old, finished=True)) == "FORWARD"


@every_kind
def test_where_nobody_knows_the_order_nobody_says_one(name: str) -> None:
    for one, other in SAMPLES[name].unordered:
        ways = [kind_of(name).way(PartitionState(at=a), PartitionState(at=b)) for a, b in ((one, other), (other, one))]
        assert ways == ["UNKNOWN", "UNKNOWN"]


@every_kind
def test_a_position_is_shown_as_json_and_as_the_same_each_time(name: str) -> None:
    kind = kind_of(name)
    texts = [kind.position_text(at(place)) for place in SAMPLES[name].places]
    assert texts == [kind.position_text(at(place)) for place in SAMPLES[name].places]
    assert all(isinstance(json.loads(text), dict) for text in texts if text)
    assert kind.position_text(Positions()) in ("", "{}")


@every_kind
def test_keys_of_its_own_are_used_instead_of_the_service(name: str) -> None:
    kind, sample = kind_of(name), SAMPLES[name]
    assert kind.uses_service_identity(sample.properties) is bool(sample.keys)
    assert not kind.uses_service_identity({**sample.properties, **sample.keys})
    for key in sample.keys:  # One of two keys, or an empty one, is none: libraries would sign in as the machine.
        assert kind.uses_service_identity({**sample.properties, **sample.keys, key: " "})


def test_kafka_signs_in_as_the_service_only_where_aws_does() -> None:
    properties = {**SAMPLES["KAFKA"].properties, "aws.region": "eu-west-1"}
    assert kind_of("KAFKA").uses_service_identity(properties)
    assert not kind_of("KAFKA").uses_service_identity({**properties, **AWS})


def test_only_files_on_a_disk_are_local() -> None:
    assert [name for name in kinds() if kind_of(name).is_local(SAMPLES[name].properties)] == ["FILE"]
    assert not kind_of("FILE").is_local(SAMPLES["S3"].properties)


@every_stream
def test_what_goes_on_from_a_position_begins_there(name: str) -> None:
    kind, sample = STREAMS[name], SAMPLES[name]
    positions = at(*sample.places)
    properties = kind.beginning_at(sample.properties, positions)
    load = load_of(name, properties)
    kind.check(load)
    written = [value.split(",") for key, value in properties.items() if key not in sample.properties and "," in value]
    assert written == [list(kind.words(positions)), list(kind.words(positions).values())]
    assert kind.given_up_by(properties, properties, positions) == ()
    # And again: SHOW CREATE of the new job tells the same.
    assert kind.beginning_at(properties, positions) == properties


@every_stream
def test_opening_asks_nothing_and_says_which_columns_there_are(name: str) -> None:
    kind = STREAMS[name]
    told = kind.metadata.names[0]
    context = OpenContext(consumer="c", clock=ManualClock(), addresses=EVERY_PRIVATE)
    reading = replace(context, reads_rows=True, columns=("id", "city"), metadata=(told,))
    stream = kind.open(load_of(name), reading)
    assert stream.schema is not None
    assert stream.schema.names == ["id", "city", told]
    assert stream.start
    stream.close()


@every_stream
def test_what_makes_no_stream_is_refused(name: str) -> None:
    load = load_of(name)
    broken = replace(load, source=replace(load.source, properties={"no such property": "1"}))
    avro = replace(load, records=replace(load.records, format="avro"))
    for each in (broken, avro):
        with pytest.raises(SqlError):
            STREAMS[name].check(each)


@every_stream
def test_what_show_tells_needs_no_answer_of_the_stream(name: str) -> None:
    kind, sample = STREAMS[name], SAMPLES[name]
    positions = at(*sample.places)
    assert kind.progress(positions).keys() == positions.partitions.keys()
    shown = {**kind.shown_source(sample.properties, positions, None), **kind.shown_default(sample.properties)}
    assert all(isinstance(value, str) for value in shown.values())
    assert all(isinstance(value, int) for value in kind.shown_counts(positions, None).values())
    given_up = kind.plan_move(None, "0", PartitionState(at=sample.places[-1]), None)  # type: ignore[arg-type]  # asks nothing
    assert (given_up.direction, given_up.end) == ("GIVEN UP", None)
