"""Statements about routine loads against topics and streams in memory: what a user of Doris expects."""

from __future__ import annotations

import json
import threading

import pytest

from lading.errors import ConflictError, JobNotFoundError, JobStateError, LadingError, SqlError
from lading.jobs.dialects import ROUTINE_COLUMNS
from lading.service.views.loads import views_of
from lading.tables.base import LakeTable
from lading.tables.delta.resume import LogFolderCopies
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.iceberg.ended import PREFIX as ENDED
from lading.tables.iceberg.table import IcebergTable
from tests.service.routine_fakes import Desk, bench
from tests.service.routine_words import KAFKA, KINESIS, LOGIN, SECRET1, create, paused, progress

__all__ = ["bench"]


def test_a_created_job_is_shown_with_24_columns(bench: Desk) -> None:
    create(bench, f', "property.sasl.password"="{SECRET1}"', clauses="COLUMNS (id, c, city = upper(c)), WHERE id = 8")
    answer = bench.lading.sql("SHOW ROUTINE LOAD")[-1]
    assert answer.columns == ROUTINE_COLUMNS
    assert len(answer.columns) == 24
    row = answer.dicts()[0]
    assert (row["Name"], row["DbName"], row["TableName"], row["State"]) == ("j", "shop", "t", "NEED_SCHEDULE")
    assert (row["PauseTime"], row["EndTime"], row["IsMultiTable"], row["DataSourceType"]) == (
        None,
        None,
        "false",
        "KAFKA",
    )
    properties = json.loads(row["JobProperties"])
    assert properties["whereExpr"] == "(`id` = 8)"
    assert properties["columnToColumnExpr"] == "id,c,city=upper(c)"
    assert (properties["max_batch_interval"], properties["max_error_number"]) == ("60", "0")
    assert properties["column_separator"] == "'\\t'"
    assert json.loads(row["CustomProperties"]) == {
        "kafka_default_offsets": "OFFSET_END",
        "sasl.password": "******",
    }
    assert SECRET1 not in json.dumps(row)
    bench.run()
    row = bench.show()
    assert (row["State"], row["CurrentTaskNum"]) == ("RUNNING", "2")
    assert json.loads(row["Progress"]) == {"0": "99", "1": "49"}
    assert json.loads(row["Lag"]) == {"0": 0, "1": 0}
    assert json.loads(row["DataSourceProperties"])["currentKafkaPartitions"] == "0,1"


def test_secrets_are_in_no_record(bench: Desk) -> None:
    create(bench, f', "property.sasl.password"="{SECRET1}"')
    record = bench.lading.any_job("shop.j")
    assert SECRET1 not in record.definition
    assert bench.world.specs[-1].client["sasl.password"] == SECRET1
    assert SECRET1 not in str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j"))
    assert SECRET1 not in str(bench.sql("SHOW LOAD AUDIT FOR j"))


def test_everything_is_checked_before_the_job_exists(bench: Desk) -> None:
    for more, table, fragment in (
        (', "kafka_partitions"="9"', "t", "custom kafka partition 9"),
        ("", "nosuch", "Unknown table 'nosuch'"),
    ):
        with pytest.raises(LadingError, match=fragment):
            bench.sql(f"CREATE ROUTINE LOAD j ON {table} {KAFKA.format(more)}")
    with pytest.raises(LadingError, match="There is no topic"):
        bench.sql("CREATE ROUTINE LOAD j ON t " + KAFKA.format("").replace("clicks", "nosuch"))
    with pytest.raises(LadingError, match="Unknown database 'nosuch'"):
        create(bench, name="nosuch.j")
    bench.world.is_down = True
    with pytest.raises(LadingError, match="broker is down"):
        create(bench)
    assert bench.sql("SHOW ALL ROUTINE LOAD") == []


def test_a_name_is_used_once_in_a_database_until_its_job_has_ended(bench: Desk) -> None:
    create(bench)
    with pytest.raises(ConflictError, match="already used in db"):
        create(bench)
    bench.sql("CREATE DATABASE other; CREATE TABLE other.t (id BIGINT) USING delta")
    create(bench, name="other.j")
    bench.sql("STOP ROUTINE LOAD FOR j")
    create(bench)
    states = [row[8] for row in bench.sql("SHOW ALL ROUTINE LOAD FOR j")]
    assert states == ["STOPPED", "NEED_SCHEDULE"]
    assert len(bench.sql("SHOW ROUTINE LOAD FOR j")) == 1


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_stop_says_in_the_table_that_the_job_has_ended(bench: Desk, form: str) -> None:
    """Else the head of a job that nobody runs holds up the care of the table, for ever after a rollback."""
    bench.sql("CREATE DATABASE other; CREATE TABLE other.t (id BIGINT, city STRING) USING " + form)
    create(bench, name="other.j")
    bench.run()
    job_id = bench.lading.any_job("other.j").job_id
    table = bench.lading.catalog.open_table("other", "t")
    assert table.job_ids() == {job_id}
    assert ended_jobs(table) == set()
    bench.sql("STOP ROUTINE LOAD FOR other.j")
    assert ended_jobs(bench.lading.catalog.open_table("other", "t")) == {job_id}


def ended_jobs(table: LakeTable) -> set[str]:
    if isinstance(table, DeltaLakeTable):
        return set(LogFolderCopies(table.storage).ended())
    assert isinstance(table, IcebergTable)
    names = table.handle.load().metadata.properties
    return {name.removeprefix(ENDED) for name in names if name.startswith(ENDED)}


def test_the_number_of_jobs_can_be_bounded(bench: Desk) -> None:
    bench.lading.store.write_setting("max_routine_load_job_num", "1")
    create(bench, name="a1")
    create(bench, name="a2")
    with pytest.raises(LadingError, match="exceed limit"):
        create(bench, name="a3")


def test_the_errors_of_control_statements_are_those_of_doris(bench: Desk) -> None:
    for verb in ("PAUSE", "RESUME", "STOP"):
        with pytest.raises(JobNotFoundError, match="There is not operable routine load job with name"):
            bench.sql(f"{verb} ROUTINE LOAD FOR j")
    create(bench)
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    with pytest.raises(JobStateError, match="Could not transform PAUSED to PAUSED"):
        bench.sql("PAUSE ROUTINE LOAD FOR shop.j")
    assert bench.show()["ReasonOfStateChanged"] == (
        "ErrorReason{code=errCode = 100, msg='User ann pauses routine load job'}"
    )
    assert bench.show()["PauseTime"]
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    bench.sql("RESUME ROUTINE LOAD FOR j")
    assert bench.show()["State"] == "NEED_SCHEDULE"
    bench.sql("STOP ROUTINE LOAD FOR j")
    assert (bench.show()["State"], bench.sql("SHOW ROUTINE LOAD")) == ("STOPPED", [])
    with pytest.raises(JobNotFoundError, match="There is no job named"):
        bench.sql("SHOW ROUTINE LOAD FOR j")
    with pytest.raises(JobNotFoundError, match="does not exists"):
        bench.sql("SHOW ROUTINE LOAD TASK FOR j")


def test_all_jobs_of_the_database_are_paused_and_resumed_together(bench: Desk) -> None:
    create(bench, name="a1")
    create(bench, name="a2")
    bench.sql("PAUSE ROUTINE LOAD FOR a1; PAUSE ALL ROUTINE LOAD")
    assert [row[8] for row in bench.sql("SHOW ROUTINE LOAD LIKE 'a_'")] == ["PAUSED", "PAUSED"]
    bench.sql("RESUME ALL ROUTINE LOAD")
    assert [row[8] for row in bench.sql("SHOW ROUTINE LOAD LIKE 'A%'")] == ["NEED_SCHEDULE", "NEED_SCHEDULE"]
    assert bench.sql("SHOW ROUTINE LOAD LIKE 'b%'") == []


def test_show_survives_brokers_that_are_down_or_hang(bench: Desk) -> None:
    create(bench)
    bench.run()
    views_of(bench.lading).watch.forget(bench.lading.any_job("shop.j").job_id)
    bench.world.is_down = True
    assert json.loads(bench.show()["Lag"]) == {"0": -1, "1": -1}
    views = views_of(bench.lading)
    views.watch._patience_s = 0.05
    views.watch.forget(bench.lading.any_job("shop.j").job_id)
    bench.world.hangs = threading.Event()
    assert json.loads(bench.show()["Progress"]) == {"0": "99", "1": "49"}
    bench.world.hangs.set()


def test_what_was_seen_of_jobs_is_not_kept_for_ever(bench: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.service.views.loads.MOST_SEEN", 2)
    for number in range(5):
        create(bench, name=f"j{number}")
    bench.run()
    shown = [bench.show(f"j{number}")["Progress"] for number in range(5)]
    assert len(set(shown)) == 1
    assert len(views_of(bench.lading)._seen) == 2


@pytest.mark.parametrize(("interval_s", "timeout_s"), [(5, 600), (60, 600), (90, 900)])
def test_a_batch_is_given_up_when_it_takes_longer_than_its_task_is_shown_with(
    bench: Desk, interval_s: int, timeout_s: int
) -> None:
    create(bench, clauses=f'PROPERTIES("max_batch_interval"="{interval_s}")')
    bench.run()
    task = bench.lading.sql("SHOW ROUTINE LOAD TASK WHERE JobName = 'j'")[-1].dicts()[0]
    compiled, _ = bench.lading.compile(bench.lading.any_job("shop.j"))
    assert compiled.stage is not None
    assert (task["Timeout"], compiled.stage.timeout_s) == (str(timeout_s), timeout_s)
    compiled.close()


def test_tasks_and_the_information_schema(bench: Desk) -> None:
    create(bench)
    bench.run()
    tasks = bench.lading.sql("SHOW ROUTINE LOAD TASK WHERE JobName = 'j'")[-1].dicts()
    assert (tasks[0]["TxnId"], tasks[0]["Timeout"], tasks[0]["TxnStatus"]) == ("-1", "600", None)
    query = "SELECT JOB_NAME, STATE, IS_ABNORMAL_PAUSE, PROGRESS FROM information_schema.routine_load_jobs r"
    assert bench.sql(query) == [("j", "RUNNING", "false", '{"0":"99","1":"49"}')]
    assert bench.sql(f"{query} WHERE r.job_name = 'x'") == []
    with pytest.raises(LadingError, match=r"information_schema.tables does not exist"):
        bench.sql("SELECT * FROM information_schema.tables")


def test_show_create_makes_a_job_that_goes_on(bench: Desk) -> None:
    paused(bench)
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_partitions"="0,1", "kafka_offsets"="10,OFFSET_BEGINNING")')
    text = str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert '"kafka_partitions" = "0,1"' in text
    bench.sql("STOP ROUTINE LOAD FOR j")
    bench.world.topics["clicks"]["2"] = 5
    bench.sql(text)
    bench.run()
    assert progress(bench) == {"0": "9", "1": "OFFSET_ZERO", "2": "OFFSET_ZERO"}


def test_show_create_of_a_pinned_job_stays_pinned(bench: Desk) -> None:
    paused(bench, ', "kafka_partitions"="1", "kafka_offsets"="3"')
    text = str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert "discovery" not in text
    bench.sql(f"STOP ROUTINE LOAD FOR j; {text}")
    bench.run()
    assert progress(bench) == {"1": "2"}


def test_times_are_those_of_the_zone_of_the_job(bench: Desk) -> None:
    bench.sql(
        'CREATE ROUTINE LOAD j ON t PROPERTIES("timezone"="Asia/Tokyo") '
        + KAFKA.format(', "property.kafka_default_offsets"="2026-01-01 09:00:00"')
    )
    compiled, _ = bench.lading.compile(bench.lading.any_job("shop.j"))
    assert json.loads(compiled.job.start)["default"] == "2026-01-01T00:00:00+00:00"


def test_a_recreated_job_does_not_read_finished_shards_again(bench: Desk) -> None:
    paused(bench, source=KINESIS)
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="a", "kinesis_shards_pos"="SHARD_END", '
              '"property.discovery"="ON")')  # fmt: skip
    text = str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert '"kinesis_shards_pos" = "SHARD_END,AFTER 900,AFTER 900"' in text
    bench.sql("STOP ROUTINE LOAD FOR j")
    bench.world.shards["d"] = ("b",)
    bench.sql(text)
    bench.run()
    assert progress(bench) == {"b": "900", "c": "900", "d": "TRIM_HORIZON"}
    positions = bench.lading.bills(bench.lading.any_job("shop.j"), 1)[0].positions
    assert positions.partitions["a"].finished


def test_avro_is_for_kafka_alone(bench: Desk) -> None:
    with pytest.raises(SqlError, match="Invalid format type: avro"):
        bench.sql(f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="avro") {KINESIS.format("")}')
    with pytest.raises(SqlError, match=r"property.schema.registry.url is a required property"):
        bench.sql(f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="avro") {KAFKA.format("")}')
    more = f', "property.schema.registry.url"="http://r", "property.schema.registry.basic.auth.user.info"="{LOGIN}"'
    bench.sql(f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="avro") {KAFKA.format(more)}')
    spec = bench.world.specs[-1]
    assert spec.format.registry.url == "http://r"
    assert spec.format.registry.settings == {"basic.auth.user.info": LOGIN}
    assert not [name for name in spec.client if name.startswith("schema.")]


def test_explain_says_what_is_done_with_a_row(bench: Desk) -> None:
    create(bench, clauses="COLUMNS (id, c, city = upper(c)), WHERE id > 1")
    rows = dict(bench.sql("EXPLAIN ROUTINE LOAD j"))
    assert rows["column city"] == "UPPER(`c`) → string"
    assert rows["limits"] == "20000000 rows, 1073741824 bytes, 60 seconds"
    assert dict(bench.sql("EXPLAIN JOB shop.j")) == rows == dict(bench.sql("EXPLAIN JOB j"))


def test_a_table_is_not_dropped_under_a_job(bench: Desk) -> None:
    create(bench)
    with pytest.raises(LadingError, match=r"loaded by shop.j"):
        bench.sql("DROP TABLE t")


def test_shards_that_are_given_up_are_told_and_not_missed(bench: Desk) -> None:
    paused(bench, source=KINESIS)
    change = 'ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="b")'
    assert [row[:4] for row in bench.sql(f"EXPLAIN {change}")] == [
        ("partition a", "AFTER 900", None, "GIVEN UP"),
        ("partition c", "AFTER 900", None, "GIVEN UP"),
        ("kinesis kinesis_shards", "", "b", ""),
    ]
    bench.sql(change)
    facts = json.loads(str(bench.sql("SHOW LOAD AUDIT FOR shop.j")[0][4]))
    assert facts["positions"] == {"a": ["AFTER 900", None], "c": ["AFTER 900", None]}
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert (bench.show()["State"], progress(bench)) == ("RUNNING", {"b": "900"})
    bench.sql("PAUSE ROUTINE LOAD FOR j; UNDO ALTER ROUTINE LOAD FOR j")
    assert progress(bench) == {"a": "900", "b": "900", "c": "900"}


@pytest.mark.parametrize("more", ["", ', "kafka_partitions"="0,1", "kafka_offsets"="20,30"'])
def test_a_recreated_job_does_not_read_partitions_that_were_given_up(bench: Desk, more: str) -> None:
    paused(bench, more)
    bench.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_partitions"="0,1", "kafka_offsets"="60,PARTITION_END")')
    text = str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert '"kafka_offsets" = "60,PARTITION_END"' in text
    bench.sql(f"STOP ROUTINE LOAD FOR j; {text}")
    bench.run()
    states = bench.lading.bills(bench.lading.any_job("shop.j"), 1)[0].positions.partitions
    assert [name for name, state in states.items() if not state.finished] == ["0"]
    assert states["0"].at == "60"
    bench.sql(
        'PAUSE ROUTINE LOAD FOR j; ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_default_offsets"="OFFSET_BEGINNING")'
    )
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert bench.lading.bills(bench.lading.any_job("shop.j"), 1)[0].positions.partitions == states
