"""Streaming jobs from files, end to end on Spark: what a user of Doris expects, and no row lost."""

from __future__ import annotations

import json

import pytest

from lading.errors import (
    ConflictError,
    JobNotFoundError,
    JobStateError,
    LadingError,
    NotSupportedError,
    SqlError,
    TableNotFoundError,
)
from lading.service.facade import Lading
from tests.service.conftest import Desk

LENIENT = '"session.enable_insert_strict"="false"'


def statistic(desk: Desk) -> dict[str, int]:
    found: dict[str, int] = json.loads(desk.show("LoadStatistic"))
    return found


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_files_become_rows_once_and_keep_coming(desk: Desk, form: str) -> None:
    desk.table(form=form)
    desk.put_orders("a.csv", 0, 100)
    desk.create(select="id, upper(city), amount * 2")
    desk.run()
    desk.put_orders("b.csv", 100, 50)
    desk.run()
    desk.run()
    assert desk.ids() == list(range(150))
    assert desk.sql("SELECT DISTINCT city FROM orders") == [("ESSEN",)]
    assert desk.lading.verify("j").is_clean
    assert desk.show("CurrentOffset") == json.dumps({"fileName": f"{desk.inbox}/b.csv"})
    assert statistic(desk)["scannedRows"] == 150
    assert statistic(desk)["fileNumber"] == 2


def test_a_restart_changes_nothing_that_is_shown(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.create(properties=LENIENT)
    desk.run()
    columns = "Status, CurrentOffset, LoadStatistic, SucceedTaskCount, ErrorMsg"
    before = desk.sql(f'SELECT {columns} FROM jobs("type"="insert")')
    desk.restart()
    assert desk.sql(f'SELECT {columns} FROM jobs("type"="insert")') == before
    desk.run()
    assert desk.ids() == list(range(10))


def test_a_job_may_be_created_before_the_first_file(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.run()
    desk.put_orders("a.csv", 0, 5)
    desk.run()
    assert desk.ids() == list(range(5))


def test_the_first_file_of_a_job_is_loaded_at_the_first_look(desk: Desk) -> None:
    """Its columns are learnt in the same turn: one that only learnt them waited another interval."""
    desk.table()
    desk.create()
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    assert not runner.run_once()
    assert runner.is_idle()
    desk.put_orders("a.csv", 1, 3)
    assert not runner.is_idle()
    runner.run_once()
    assert desk.ids() == [1, 2, 3]


def test_a_warm_up_changes_nothing(desk: Desk) -> None:
    desk.lading.warm_up()
    desk.lading.warm_up()
    assert desk.lading.store.list_jobs() == []


def test_in_strict_mode_one_bad_row_commits_nothing_and_pauses_the_job(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.0", "x,essen,2.0"])
    desk.create()
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "Insert has filtered data in strict mode" in desk.show("ErrorMsg")
    assert "row 2: column id: cannot read 'x' as bigint" in desk.show("ErrorMsg")
    assert desk.ids() == []
    desk.restart()
    assert "cannot read 'x'" in desk.show("ErrorMsg")
    desk.sql(f"ALTER JOB j PROPERTIES({LENIENT}); RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == [1]


def test_bad_rows_go_to_quarantine_with_their_place_text_and_reason(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.0", ",essen,2.0", "3,a,b,c", "4,oslo,zzz"])
    desk.create(properties=LENIENT)
    desk.run()
    assert desk.ids() == [1, 4]
    errors = [(row[2], row[3]) for row in desk.sql("SHOW LOAD ERRORS FOR j")]
    assert (2, "column id: NULL in a column that is NOT NULL") in errors
    assert any(row == 3 and "Column count mismatch" in str(reason) for row, reason in errors)
    assert len(desk.sql("SHOW LOAD ERRORS FOR j LIMIT 1")) == 1
    assert statistic(desk)["filteredRows"] == 2
    assert desk.sql("SELECT amount FROM orders WHERE id = 4") == [(None,)]


def test_a_strict_cast_makes_a_bad_row_instead_of_null(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.0", "4,oslo,zzz", "5,a city that is too long,1.0"])
    desk.create(properties=f'{LENIENT}, "session.enable_strict_cast"="true"')
    desk.run()
    assert desk.ids() == [1]


def test_a_text_that_is_too_long_is_cut_when_nothing_is_strict(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["5,a city that is too long,1.0"])
    desk.create(properties=LENIENT)
    desk.run()
    assert desk.sql("SELECT city FROM orders") == [("a city tha",)]


def test_more_bad_rows_than_the_ratio_allows_pause_the_job(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.0", ",x,1.0", ",y,1.0"])
    desk.create(properties=f'{LENIENT}, "session.insert_max_filter_ratio"="0.5"')
    desk.run()
    assert "too many filtered" in desk.show("ErrorMsg")
    assert desk.ids() == []


def test_rows_that_where_leaves_out_are_counted_as_unselected_and_the_position_moves(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.sql(
        f'CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM FILE("uri"="{desk.inbox}/*.csv", '
        f'"format"="csv_with_names", "column_separator"=",") WHERE id > 1000'
    )
    desk.run()
    assert desk.ids() == []
    assert desk.show("CurrentOffset") == json.dumps({"fileName": f"{desk.inbox}/a.csv"})
    assert (statistic(desk)["scannedRows"], statistic(desk)["filteredRows"]) == (10, 0)


def test_moving_the_position_back_loads_rows_again_and_forward_leaves_them_out(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.put_orders("b.csv", 10, 10)
    desk.create()
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName='j'")
    desk.sql('ALTER JOB j PROPERTIES("offset"=\'' + json.dumps({"fileName": f"{desk.inbox}/a.csv"}) + "')")
    desk.sql("RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == sorted([*range(20), *range(10, 20)])
    assert statistic(desk)["scannedRows"] == 30
    desk.sql("PAUSE JOB WHERE jobName='j'")
    desk.sql('ALTER JOB j PROPERTIES("offset"=\'' + json.dumps({"fileName": f"{desk.inbox}/no-such-file"}) + "')")
    desk.put_orders("c.csv", 100, 5)
    desk.put_orders("zz.csv", 200, 5)
    desk.sql("RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids()[-5:] == list(range(200, 205))
    assert 100 not in desk.ids()


def test_an_offset_may_be_a_relative_path_and_set_at_create(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.path)
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.put_orders("b.csv", 10, 3)
    desk.put_orders("c.csv", 20, 3)
    desk.sql(
        'CREATE JOB j PROPERTIES("offset"=\'{"fileName": "in/a.csv"}\') ON STREAMING DO INSERT INTO orders SELECT * '
        'FROM FILE("uri"="in/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    desk.run()
    assert desk.ids() == [10, 11, 12, 20, 21, 22]
    desk.sql("PAUSE JOB WHERE jobName='j'")
    desk.sql('ALTER JOB j PROPERTIES("offset"=\'{"fileName": "in/b.csv"}\')')
    desk.sql("RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == [10, 11, 12, 20, 20, 21, 21, 22, 22]


def test_a_job_that_loads_once_finishes(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.create(properties='"s3.ingestion_mode"="ONCE"')
    found = desk.lading.run()
    assert found["j"].state.value == "FINISHED"
    assert desk.ids() == list(range(10))


def test_siblings_that_do_not_match_the_glob_are_left_alone(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.put_orders("a.csv.bak", 100, 3)
    desk.create()
    desk.run()
    assert desk.ids() == [0, 1, 2]


def test_late_files_are_counted_and_shown_when_the_job_says_so(desk: Desk) -> None:
    desk.table()
    desk.put_orders("b.csv", 0, 3)
    desk.create(properties='"s3.late_files"="SHOW"')
    desk.run()
    desk.put_orders("a.csv", 100, 3)
    desk.run()
    assert desk.ids() == [0, 1, 2]
    assert "not loaded: 1 file before the position" in desk.show("JobRuntimeMsg")


def test_files_are_loaded_once_in_whatever_order_they_come(desk: Desk) -> None:
    desk.table()
    desk.put_orders("b.csv", 0, 3)
    desk.create()
    desk.run()
    desk.put_orders("a.csv", 100, 3)
    desk.run()
    desk.put_orders("aa.csv", 200, 1)
    desk.put_orders("c.csv", 300, 1)
    desk.run()
    desk.restart()
    desk.run()
    assert desk.ids() == [0, 1, 2, 100, 101, 102, 200, 300]


def test_a_batch_takes_no_more_files_than_it_may(desk: Desk) -> None:
    desk.table()
    for number in range(5):
        desk.put_orders(f"{number}.csv", number * 10, 10)
    desk.create(properties='"s3.max_batch_files"="2"')
    desk.run()
    assert desk.show("SucceedTaskCount") == "3"
    assert desk.ids() == list(range(50))


def test_a_file_replaced_after_it_was_listed_or_truncated_is_never_silent(desk: Desk) -> None:
    desk.table()
    (desk.inbox / "a.csv.gz").write_bytes(b"\x1f\x8b\x08\x00 this is no gzip")
    with pytest.raises(LadingError, match=r"a\.csv\.gz"):
        desk.sql(
            f'CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM FILE("uri"="{desk.inbox}/*.gz", '
            f'"format"="csv_with_names", "column_separator"=",")'
        )


def test_a_task_that_keeps_failing_is_tried_four_times_and_then_pauses_the_job(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    (desk.inbox / "b.csv").write_bytes(b"id;town\n1;essen\n")
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "b.csv" in desk.show("ErrorMsg")
    assert desk.ids() == []
    (desk.inbox / "b.csv").unlink()
    desk.sql("RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == [0, 1, 2]


def test_two_jobs_run_at_once(desk: Desk) -> None:
    desk.table("one")
    desk.table("two", "iceberg")
    desk.put_orders("a.csv", 0, 20)
    desk.create("j1", "one")
    desk.create("j2", "two")
    desk.run()
    assert desk.ids("one") == desk.ids("two") == list(range(20))


def test_a_partitioned_table_keeps_its_rows_apart(desk: Desk) -> None:
    desk.table(more="PARTITIONED BY (city)")
    desk.put("a.csv", ["1,essen,1.0", "2,oslo,2.0", "3,,3.0"])
    desk.create()
    desk.run()
    assert desk.sql("SELECT id FROM orders WHERE city = 'oslo'") == [(2,)]
    assert desk.ids() == [1, 2, 3]


def test_the_printed_definition_makes_the_same_job(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create(properties='"max_interval"="3"', select="id, city, amount")
    text = str(desk.sql("SHOW CREATE JOB j")[0][1])
    desk.sql("DROP JOB WHERE jobName='j'")
    desk.sql(text)
    assert desk.sql("SHOW CREATE JOB j")[0][1] == text


def test_a_second_process_is_refused_with_the_pid_of_the_first(desk: Desk) -> None:
    with pytest.raises(ConflictError, match=r"in use by process \d+"):
        Lading(desk.path / "home")


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ("CREATE JOB x ON STREAMIN DO INSERT INTO t SELECT 1 FROM FILE('uri'='a')", SqlError, "STREAMING"),
        ("PAUSE JOB WHERE jobName='nope'", JobNotFoundError, "job not exist"),
        ("SELECT * FROM nowhere", TableNotFoundError, "nowhere"),
        ("DESCRIBE nowhere", TableNotFoundError, "Unknown table"),
        ("CREATE TABLE nodb.t (a INT) USING delta", TableNotFoundError, "Unknown database"),
        ("PAUSE ROUTINE LOAD FOR nowhere", JobNotFoundError, "There is not operable routine load job"),
    ],
)
def test_bad_statements_get_a_clear_answer(desk: Desk, text: str, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        desk.sql(text)


def test_a_job_is_checked_before_it_exists(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    with pytest.raises(SqlError, match="Unknown column 'nope'"):
        desk.create(select="id, nope, amount")
    with pytest.raises(SqlError, match="insert into cols should be corresponding"):
        desk.create(select="id, city")
    with pytest.raises(NotSupportedError, match="frobnicate"):
        desk.create(select="frobnicate(id), city, amount")
    assert desk.sql('SELECT * FROM jobs("type"="insert")') == []
    desk.create()
    with pytest.raises(ConflictError, match="job name exist"):
        desk.create()


def test_states_change_only_as_they_may(desk: Desk) -> None:
    desk.table()
    desk.create()
    with pytest.raises(JobStateError, match="Only PAUSED job can be altered"):
        desk.sql(f"ALTER JOB j PROPERTIES({LENIENT})")
    desk.sql("PAUSE JOB WHERE jobname='j'")
    with pytest.raises(JobStateError, match="Can't change job status to the same status"):
        desk.sql("PAUSE JOB WHERE jobName='j'")
    with pytest.raises(SqlError, match="uri property cannot be modified"):
        desk.sql('ALTER JOB j INSERT INTO orders SELECT * FROM FILE("uri"="other/*.csv", "format"="csv_with_names")')
    desk.sql("DROP JOB WHERE jobName='j'")
    with pytest.raises(JobNotFoundError):
        desk.sql("DROP JOB WHERE jobName='j'")
    desk.sql("DROP JOB IF EXISTS WHERE jobName='j'")


def test_people_can_see_who_changed_what(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.sql("PAUSE JOB WHERE jobName='j'; RESUME JOB WHERE jobName='j'")
    assert [row[2] for row in desk.sql("SHOW LOAD AUDIT FOR j")] == ["RESUME", "PAUSE", "CREATE"]


def test_a_name_in_a_file_cannot_ask_for_a_secret_of_the_service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark puts ${env:NAME} into every SQL text, and the names of columns come from files."""
    desk.table()
    desk.lading.spark().conf.set("spark.sql.variable.substitute", "true")
    desk.put("a.csv", ["1,essen,2.5"], header="id,${env:HOME},amount")
    desk.sql(
        f"""CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM FILE("uri"="{desk.inbox}/*.csv",
        "format"="csv_with_names", "column_separator"=",")"""
    )
    desk.run()
    rows = desk.lading.catalog.open_table("shop", "orders").scan().to_pylist()
    assert [(row["id"], row["city"]) for row in rows] == [(1, "essen")]
