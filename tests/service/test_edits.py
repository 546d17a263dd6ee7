"""Edits of jobs that load files: looked at, made, taken back."""

from __future__ import annotations

import json

import pytest

from lading.errors import ConfigError, JobStateError, LadingError
from lading.service.statements.positions import edit_positions, plan_edit
from tests.service.conftest import Desk
from tests.service.file_edit_rig import paused
from tests.service.routine_fakes import Desk as Bench

__all__ = ["paused"]


def move(bench: Bench, name: str, verb: str = "ALTER JOB") -> list[tuple[object, ...]]:
    offset = json.dumps({"fileName": f"{bench.path}/in/{name}.csv"})
    return bench.sql(f"{verb} j PROPERTIES('offset'='{offset}') COMMENT 'try {name}'")


def test_the_files_between_two_positions_are_counted(paused: Bench) -> None:
    where = f"{paused.path}/in"
    back = move(paused, "0", "EXPLAIN ALTER JOB")[0]
    assert back[1:6] == (f"{where}/b.csv", f"{where}/0.csv", "BACK", "2 (32 bytes)", "0")
    forward = move(paused, "d", "EXPLAIN ALTER JOB")[0]
    assert forward[3:6] == ("FORWARD", "0", "1 (16 bytes)")
    assert move(paused, "b", "EXPLAIN ALTER JOB")[0][3:6] == ("SAME", "0", "0")
    assert [bill.seq for bill in paused.lading.bills(paused.lading.job("j"), 9)] == [0]


def test_a_plan_and_an_edit_without_sql(paused: Bench) -> None:
    session = paused.lading.session("bob", "shop")
    plan = plan_edit(session, "j", {f"file://{paused.path}/in/": f"{paused.path}/in/a.csv"})
    assert (plan.moves[0].again, plan.moves[0].again_bytes, plan.moves[0].unit) == (1, 16, "files")
    assert [bill.seq for bill in paused.lading.bills(paused.lading.job("j"), 9)] == [0]
    edit_positions(session, "j", {f"file://{paused.path}/in/": f"{paused.path}/in/a.csv"}, reason="why not")
    bill = paused.lading.bills(paused.lading.job("j"), 1)[0]
    assert bill.reason == "ALTER by bob: why not"
    with pytest.raises(ConfigError, match="No position is named"):
        plan_edit(session, "j", {})


def test_the_audit_tells_who_when_from_where_to_where_and_why(paused: Bench) -> None:
    move(paused, "a")
    _, user, action, subject, facts = paused.sql("SHOW LOAD AUDIT FOR j")[0]
    assert (user, action, subject) == ("ann", "ALTER", "j")
    told = json.loads(str(facts))
    partition = next(iter(told["positions"]))
    assert told["positions"][partition] == [f"{paused.path}/in/b.csv", f"{paused.path}/in/a.csv"]
    assert told["why"] == "try a"
    assert list(told["changed"]) == ["property offset"]


def test_undo_puts_back_position_and_definition(paused: Bench) -> None:
    before = paused.lading.job("j")
    move(paused, "a")
    paused.sql("UNDO ALTER JOB j")
    record = paused.lading.job("j")
    assert (record.definition, record.properties) == (before.definition, before.properties)
    assert json.loads(record.current_offset)["fileName"].endswith("b.csv")
    paused.sql("UNDO ALTER JOB j")
    assert json.loads(paused.lading.job("j").current_offset)["fileName"].endswith("a.csv")
    paused.restart()
    paused.sql("RESUME JOB WHERE jobName = 'j'")
    with pytest.raises(JobStateError, match="Only PAUSED job can be altered"):
        paused.sql("UNDO ALTER JOB j")


def test_a_failed_edit_leaves_the_secrets_as_they_were(paused: Bench) -> None:
    with pytest.raises(LadingError):
        paused.sql(
            f"ALTER JOB j INSERT INTO t SELECT nosuch, city FROM FILE('uri'='{paused.path}/in/*.csv', "
            "'format'='csv_with_names', 'column_separator'=',')"
        )
    assert paused.lading.job("j").definition.count("nosuch") == 0


def test_an_edit_is_not_taken_back_once_rows_were_loaded_since(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName='j'")
    offset = json.dumps({"fileName": f"{desk.inbox}/0.csv"})
    desk.sql(f"ALTER JOB j PROPERTIES('offset'='{offset}'); RESUME JOB WHERE jobName='j'")
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName='j'")
    with pytest.raises(JobStateError, match="3 rows were read in 1 commits since"):
        desk.sql("UNDO ALTER JOB j")
    assert desk.ids() == [0, 0, 1, 1, 2, 2]
