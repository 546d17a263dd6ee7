"""Edits of routine loads against topics and streams in memory: looked at, made, taken back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lading.errors import JobNotFoundError, JobStateError, LadingError, SqlError
from lading.service.statements.positions import edit_positions, plan_edit
from tests.service.routine_fakes import Desk, bench
from tests.service.routine_words import KAFKA, KINESIS, SECRET1, SECRET2, create, paused, progress

__all__ = ["bench"]


def test_alter_wants_a_paused_job(bench: Desk) -> None:
    create(bench)
    with pytest.raises(JobStateError, match="Only supports modification of PAUSED jobs"):
        bench.sql('ALTER ROUTINE LOAD FOR j PROPERTIES("max_error_number"="3")')
    with pytest.raises(JobNotFoundError, match="There is not operable"):
        bench.sql('ALTER ROUTINE LOAD FOR k PROPERTIES("max_error_number"="3")')


def test_altered_properties_and_clauses_survive_a_restart(bench: Desk) -> None:
    paused(bench, f', "property.sasl.password"="{SECRET1}"')
    bench.sql(
        'ALTER ROUTINE LOAD FOR j COLUMNS (id, city), WHERE id > 7 PROPERTIES("max_error_number"="3") '
        'FROM KAFKA("kafka_broker_list"="b:2", "property.client.id"="x")'
    )
    bench.restart()
    row = bench.show()
    properties = json.loads(row["JobProperties"])
    assert (properties["whereExpr"], properties["max_error_number"]) == ("(`id` > 7)", "3")
    assert json.loads(row["DataSourceProperties"])["brokerList"] == "b:2"
    assert json.loads(row["CustomProperties"])["client.id"] == "x"
    record = bench.lading.any_job("shop.j")
    assert record.window is not None
    assert record.window.max_errors == 3
    bench.lading.compile(record)
    assert bench.world.specs[-1].client["sasl.password"] == SECRET1


def test_offsets_are_moved_in_one_commit(bench: Desk) -> None:
    paused(bench)
    bench.sql(
        'ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_partitions"="0,1", "kafka_offsets"="10,OFFSET_BEGINNING") '
        "COMMENT 'again'"
    )
    assert progress(bench) == {"0": "9", "1": "OFFSET_ZERO"}
    bill = bench.lading.bills(bench.lading.any_job("shop.j"), 1)[0]
    assert (bill.kind.value, bill.epoch, bill.reason) == ("edit", 1, "ALTER by ann: again")
    bench.restart()
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert progress(bench) == {"0": "9", "1": "OFFSET_ZERO"}
    audit = [(row[2], json.loads(row[4])) for row in bench.sql("SHOW LOAD AUDIT FOR shop.j")]
    assert [action for action, _ in audit] == ["RESUME", "ALTER", "PAUSE", "CREATE"]
    facts = audit[1][1]
    assert facts["positions"] == {"0": ["100", "10"], "1": ["50", "0"]}
    assert facts["why"] == "again"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ('FROM KAFKA("kafka_partitions"="7", "kafka_offsets"="1")', "is not in the consumed partitions"),
        ('FROM KAFKA("kafka_partitions"="0")', "Must set offset or default offset with partition property"),
        ('PROPERTIES("format"="json")', "is invalid property"),
        ('PROPERTIES("max_batch_rows"="1")', "should > 200000"),
        ("WHERE nosuch = 1", "Unknown column 'nosuch'"),
        ('FROM KAFKA("property.discovery"="OFF")', "should be ON, or OFF where partitions are named"),
        ('PROPERTIES("max_error_number"="0")', "No properties or sql changed"),
    ],
)
def test_a_refused_alter_changes_nothing(bench: Desk, change: str, fragment: str) -> None:
    bench.sql(f'CREATE ROUTINE LOAD j ON t PROPERTIES("max_error_number"="0") {KAFKA.format("")}')
    bench.run()
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    before = bench.lading.any_job("shop.j")
    bills = bench.lading.bills(before, 10)
    with pytest.raises(LadingError) as caught:
        bench.sql(f"ALTER ROUTINE LOAD FOR j {change}")
    assert fragment in str(caught.value)
    assert replace(bench.lading.any_job("shop.j"), goodbye=None) == replace(before, goodbye=None)
    assert bench.lading.bills(before, 10) == bills


def test_another_topic_begins_anew_at_the_default(bench: Desk) -> None:
    paused(bench)
    bench.world.topics["orders"] = {"0": 7, "1": 8, "2": 9}
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_topic"="orders")')
    assert progress(bench) == {"0": "6", "1": "7", "2": "8"}
    assert bench.lading.bills(bench.lading.any_job("shop.j"), 1)[0].positions.incarnation == "orders"
    bench.sql("UNDO ALTER ROUTINE LOAD FOR j")
    assert progress(bench) == {"0": "99", "1": "49"}
    assert json.loads(bench.show()["DataSourceProperties"])["topic"] == "clicks"
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert bench.show()["State"] == "RUNNING"


def test_a_change_can_be_looked_at_before_it_is_made(bench: Desk) -> None:
    paused(bench)
    before = bench.lading.any_job("shop.j")
    answer = bench.lading.sql(
        'EXPLAIN ALTER ROUTINE LOAD FOR j PROPERTIES("max_error_number"="3") '
        f'FROM KAFKA("kafka_partitions"="0,1", "kafka_offsets"="10,70", "property.sasl.password"="{SECRET1}")'
    )[-1]
    rows = [row[:6] for row in answer.rows]
    assert rows == [
        ("partition 0", "100", "10", "BACK", "90", "0"),
        ("partition 1", "50", "70", "FORWARD", "0", "20"),
        ("property max_error_number", "", "3", "", "", ""),
        ("kafka property.sasl.password", "", "******", "", "", ""),
    ]
    assert bench.lading.any_job("shop.j") == before
    assert progress(bench) == {"0": "99", "1": "49"}


def test_an_edit_can_be_taken_back_and_that_too(bench: Desk) -> None:
    paused(bench, f', "property.sasl.password"="{SECRET1}"')
    with pytest.raises(JobStateError, match="There is no change of job"):
        bench.sql("UNDO ALTER ROUTINE LOAD FOR j")
    bench.sql(
        'ALTER ROUTINE LOAD FOR j WHERE id > 7 PROPERTIES("max_error_number"="3") FROM KAFKA("kafka_partitions"="0", '
        f'"kafka_offsets"="10", "property.sasl.password"="{SECRET2}")'
    )
    bench.sql("UNDO ALTER ROUTINE LOAD FOR j COMMENT 'wrong job'")
    record = bench.lading.any_job("shop.j")
    assert progress(bench) == {"0": "99", "1": "49"}
    assert json.loads(bench.show()["JobProperties"])["whereExpr"] == "*"
    assert "max_error_number" not in record.properties
    bench.lading.compile(record)
    assert bench.world.specs[-1].client["sasl.password"] == SECRET1
    bench.sql("UNDO ALTER ROUTINE LOAD FOR j")
    assert progress(bench) == {"0": "9", "1": "49"}
    bench.lading.compile(bench.lading.any_job("shop.j"))
    assert bench.world.specs[-1].client["sasl.password"] == SECRET2
    audit = [(row[2], json.loads(row[4])) for row in bench.sql("SHOW LOAD AUDIT FOR j")]
    assert [action for action, _ in audit[:3]] == ["UNDO ALTER", "UNDO ALTER", "ALTER"]
    assert audit[1][1]["why"] == "wrong job"
    assert "secret" not in str(audit).replace("'secrets': 'changed'", "")


def test_positions_can_be_edited_without_sql(bench: Desk) -> None:
    paused(bench)
    session = bench.lading.session("bob", "shop")
    plan = plan_edit(session, "shop.j", {"0": "90"})
    move = plan.moves[0]
    assert (plan.is_done, move.partition, move.start, move.end, move.again, move.skipped) == (
        False,
        "0",
        "100",
        "90",
        10,
        0,
    )
    assert progress(bench)["0"] == "99"
    done = edit_positions(session, "shop.j", {"0": "90"}, reason="bad rows")
    assert (done.is_done, done.epoch) == (True, 1)
    assert progress(bench)["0"] == "89"
    with pytest.raises(LadingError, match="does not read partition 9"):
        plan_edit(session, "shop.j", {"9": "1"})
    bench.sql("RESUME ROUTINE LOAD FOR j")
    with pytest.raises(JobStateError, match="Only supports modification of PAUSED jobs"):
        plan_edit(session, "shop.j", {"0": "90"})


def test_shards_in_alter_become_the_only_ones(bench: Desk) -> None:
    paused(bench, source=KINESIS)
    assert progress(bench) == {"a": "900", "b": "900", "c": "900"}
    statistic = json.loads(bench.show()["Statistic"])
    assert (statistic["openShardNum"], statistic["trackedShardNum"]) == (2, 3)
    rows = bench.sql(
        'EXPLAIN ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="b", "kinesis_shards_pos"="TRIM_HORIZON")'
    )
    assert rows[0][:6] == ("partition b", "AFTER 900", "TRIM_HORIZON", "BACK", "unknown", "0")
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="b", "kinesis_shards_pos"="TRIM_HORIZON")')
    assert progress(bench) == {"b": "TRIM_HORIZON"}
    with pytest.raises(SqlError, match="is not in the consumed shards"):
        bench.sql('ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="z", "kinesis_shards_pos"="LATEST")')
    with pytest.raises(SqlError, match=r"property.discovery cannot be changed"):
        bench.sql('ALTER ROUTINE LOAD FOR j FROM KINESIS("property.discovery"="ON")')
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert (bench.show()["State"], progress(bench)) == ("RUNNING", {"b": "TRIM_HORIZON"})


def test_a_shard_can_be_moved_while_all_are_read(bench: Desk) -> None:
    paused(bench, source=KINESIS)
    bench.sql(
        'ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="b", "kinesis_shards_pos"="77", '
        '"property.discovery"="ON")'
    )
    assert progress(bench) == {"a": "900", "b": "77", "c": "900"}


def test_shards_at_their_end_stay_there_when_the_default_is_altered(bench: Desk) -> None:
    paused(bench, ', "kinesis_shards"="a,b", "kinesis_shards_pos"="SHARD_END,AT 5"', source=KINESIS)
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KINESIS("property.kinesis_default_pos"="TRIM_HORIZON")')
    bench.lading.compile(bench.lading.any_job("shop.j"))
    assert bench.world.specs[-1].shards == ("b",)
