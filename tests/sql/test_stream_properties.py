"""Properties of KAFKA(…) and KINESIS(…)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lading.errors import SqlError
from lading.sources.kafka.properties import KAFKA_NAMES, read_kafka_properties
from lading.sources.kinesis.properties import KINESIS_NAMES, read_kinesis_properties
from lading.sources.starts import start_time_or_none
from tests.sql.kept import check_each_is_kept

KAFKA = {"kafka_broker_list": "b:9092", "kafka_topic": "t"}
KINESIS = {"aws.region": "eu-west-1", "kinesis_stream": "s"}
MSK = {"aws.region": "eu-west-1", "property.security.protocol": "SASL_SSL", "property.sasl.mechanism": "OAUTHBEARER"}


def test_kafka_begins_at_the_end_unless_told_otherwise() -> None:
    assert read_kafka_properties(KAFKA).default_offset == "OFFSET_END"
    assert (
        read_kafka_properties({**KAFKA, "kafka_default_offsets": "offset_beginning"}).default_offset
        == "OFFSET_BEGINNING"
    )
    found = read_kafka_properties({**KAFKA, "property.kafka_default_offsets": "2026-08-01 00:00:00"})
    assert found.default_offset == "2026-08-01 00:00:00"


def test_kafka_offsets_belong_to_partitions() -> None:
    found = read_kafka_properties(
        {**KAFKA, "kafka_partitions": "0, 1,2", "kafka_offsets": "101,offset_end, OFFSET_BEGINNING"}
    )
    assert found.partitions == (0, 1, 2)
    assert found.offsets == ("101", "OFFSET_END", "OFFSET_BEGINNING")


@pytest.mark.parametrize(
    ("extra", "fragment"),
    [
        ({"kafka_topic": ""}, "kafka_topic is a required property"),
        ({"kafka_broker_list": " "}, "kafka_broker_list is a required property"),
        ({"nosuch": "1"}, "is invalid kafka property or can not be set"),
        ({"property.": "1"}, "is invalid kafka property or can not be set"),
        ({"kafka_partitions": "a"}, "Invalid kafka partition"),
        ({"kafka_partitions": "1,1"}, "twice"),
        ({"kafka_partitions": "0,1", "kafka_offsets": "1"}, "Partitions number should be equals to offsets number"),
        ({"kafka_offsets": "1"}, "Partitions number should be equals to offsets number"),
        ({"kafka_partitions": "0", "kafka_offsets": "x"}, "must be an integer or a date time"),
        ({"kafka_partitions": "0,1", "kafka_offsets": "1,2026-08-01 00:00:00"}, "at the same time"),
        ({"kafka_partitions": "0", "kafka_offsets": "1", "kafka_default_offsets": "OFFSET_END"}, "Only one of"),
        ({"kafka_default_offsets": "7"}, "can only be set to"),
        ({"kafka_default_offsets": "OFFSET_END", "property.kafka_default_offsets": "OFFSET_BEGINNING"}, "Only one of"),
        ({"kafka_table_name_location": "key"}, "name their own table"),
        ({"property.on_data_loss": "IGNORE"}, "should be one of PAUSE, CONTINUE"),
        ({"aws.access_key": "a"}, "aws.region is a required property"),
        ({"aws.region": "eu-west-1"}, "property.security.protocol must be SASL_SSL"),
        ({**MSK, "aws.access_key": "a"}, "must also be set"),
        ({**MSK, "kafka_broker_list": "b-1-public.x:9198"}, "need aws.access_key and aws.secret_key"),
    ],
)
def test_a_wrong_property_of_kafka_is_refused(extra: dict[str, str], fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_kafka_properties({**KAFKA, **extra})
    assert fragment in str(caught.value)


def test_every_kafka_property_that_is_accepted_is_kept() -> None:
    pinned = {**KAFKA, "kafka_partitions": "0,1", "kafka_offsets": "1,2", "property.on_data_loss": "CONTINUE"}
    pinned["property.discovery"] = "ON"
    default = {
        **KAFKA,
        **MSK,
        "property.kafka_default_offsets": "OFFSET_BEGINNING",
        "property.on_data_loss": "CONTINUE",
        "property.group.id": "g",
        "aws.access_key": "env:A",
        "aws.secret_key": "env:B",
        "aws.session_key": "env:C",
        "aws.role_arn": "r",
        "aws.external_id": "e",
    }
    for given in (pinned, default):
        check_each_is_kept(read_kafka_properties, given)
    refused = {name for name in KAFKA_NAMES if "table_name" in name}
    assert pinned.keys() | default.keys() >= KAFKA_NAMES - refused - {"kafka_default_offsets"}


@pytest.mark.parametrize(
    ("extra", "fragment"),
    [
        ({"aws.region": "Europe"}, "Invalid AWS region format"),
        ({"aws.region": ""}, "aws.region is a required property"),
        ({"kinesis_stream": ""}, "kinesis_stream is a required property"),
        ({"aws.access_key": "a"}, "aws.secret_key must also be set"),
        ({"aws.secret_key": "a"}, "aws.access_key must also be set"),
        ({"aws.session_key": "a"}, "must also be set"),
        ({"property.aws.external.id": "a"}, "aws.role_arn must also be set"),
        ({"aws.external.id": "a"}, "is invalid Kinesis property or cannot be set"),
        ({"property.aws.kinesis.timestamp": "1"}, "is invalid Kinesis property or cannot be set"),
        ({"property.aws.credentials.provider": "magic"}, "should be one of"),
        ({"property.aws.kinesis.max_records": "10001"}, "should between 1 and 10000"),
        ({"kinesis_shards": "a,b", "kinesis_shards_pos": "LATEST"}, "Number of shards must equal number of positions"),
        ({"kinesis_shards_pos": "LATEST"}, "Number of shards must equal number of positions"),
        ({"kinesis_shards": "a,a"}, "twice"),
        (
            {"kinesis_shards": "a", "kinesis_shards_pos": "LATEST", "property.kinesis_default_pos": "LATEST"},
            "Only one of",
        ),
        ({"kinesis_endpoint": "a", "aws.endpoint": "b"}, "Only one of"),
        ({"property.kinesis_default_pos": "soon"}, "must be TRIM_HORIZON, LATEST, or a valid sequence number"),
        (
            {"property.kinesis_default_pos": "AT_TIMESTAMP(soon)"},
            "must be TRIM_HORIZON, LATEST, or a valid sequence number",
        ),
        ({"property.kinesis_default_pos": "SHARD_END"}, "must be TRIM_HORIZON, LATEST, or a valid sequence number"),
        ({"property.discovery": "OFF"}, "should be ON, or OFF where partitions are named"),
        ({"property.kpl": "SOME"}, "should be one of ON, OFF, HASH_RANGE"),
    ],
)
def test_a_wrong_property_of_kinesis_is_refused(extra: dict[str, str], fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        read_kinesis_properties({**KINESIS, **extra})
    assert fragment in str(caught.value)


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1", "cn-north-1", "ap-southeast-2"])
def test_regions_of_amazon_are_regions(region: str) -> None:
    assert read_kinesis_properties({**KINESIS, "aws.region": region}).region == region


def test_every_kinesis_property_that_is_accepted_is_kept() -> None:
    common = {
        **KINESIS,
        "aws.endpoint": "http://localhost:4567",
        "aws.access_key": "env:A",
        "aws.secret_key": "env:B",
        "aws.session_key": "env:C",
        "aws.role_arn": "r",
        "kinesis_shards": "shardId-0,shardId-1",
        "property.aws.external.id": "e",
        "property.aws.credentials.provider": "simple",
        "property.aws.request.timeout.ms": "1",
        "property.aws.connection.timeout.ms": "2",
        "property.aws.kinesis.max_records": "3",
        "property.aws.kinesis.max_results": "4",
        "property.aws.kinesis.stream_arn": "arn",
        "property.on_data_loss": "CONTINUE",
        "property.kpl": "HASH_RANGE",
    }
    starts = (
        {"kinesis_shards_pos": "TRIM_HORIZON,49", "property.discovery": "ON"},
        {"kinesis_shards_pos": "SHARD_END,AT 49 3"},
        {"property.kinesis_default_pos": "AT_TIMESTAMP(2026-08-01 00:00:00)"},
    )
    for start in starts:
        check_each_is_kept(read_kinesis_properties, {**common, **start})
    assert {*common, *starts[0], *starts[2], "kinesis_endpoint"} == KINESIS_NAMES


def test_the_alias_of_the_endpoint_is_the_endpoint() -> None:
    assert read_kinesis_properties({**KINESIS, "kinesis_endpoint": "http://x"}).endpoint == "http://x"


@pytest.mark.parametrize(
    ("start", "zone", "moment"),
    [
        ("2026-08-01 12:00:00", "Asia/Shanghai", datetime(2026, 8, 1, 4, tzinfo=UTC)),
        ("2026-08-01 12:00:00", "-02:30", datetime(2026, 8, 1, 14, 30, tzinfo=UTC)),
        ("2026-08-01 12:00:00", "", datetime(2026, 8, 1, 12, tzinfo=UTC)),
        ("AT_TIMESTAMP(2026-08-01T12:00:00+02:00)", "Asia/Shanghai", datetime(2026, 8, 1, 10, tzinfo=UTC)),
        ("LATEST", "UTC", None),
        ("49590338271490256608559692538361571095921575989136588898", "UTC", None),
        ("20260801", "UTC", None),
    ],
)
def test_a_start_that_is_a_time_is_a_moment(start: str, zone: str, moment: datetime | None) -> None:
    assert start_time_or_none(start, zone) == moment


def test_a_time_alone_is_a_start() -> None:
    found = read_kinesis_properties({**KINESIS, "property.kinesis_default_pos": "2026-08-01 00:00:00"})
    assert found.default_position == "AT_TIMESTAMP(2026-08-01 00:00:00)"
