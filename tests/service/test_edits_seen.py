"""Edits of jobs that load files: what was shown is what is done; names of files are those of the job."""

from __future__ import annotations

import json

import pytest

from lading.errors import JobChangedError
from lading.service.edits.edit import check_seen, plan_of
from lading.service.edits.undo import prepare_undo
from lading.service.statements.positions import edit_positions, plan_edit
from tests.service.file_edit_rig import paused
from tests.service.routine_fakes import Desk as Bench

__all__ = ["paused"]


@pytest.mark.parametrize(
    "meanwhile", ["UNDO ALTER JOB j", "ALTER JOB j PROPERTIES('max_interval'='3')"], ids=["head", "definition"]
)
def test_a_plan_is_not_done_once_the_job_was_changed(paused: Bench, meanwhile: str) -> None:
    session = paused.lading.session("bob", "shop")
    edit_positions(session, "j", {f"file://{paused.path}/in/": "c.csv"})
    plan = plan_edit(session, "j", {f"file://{paused.path}/in/": "a.csv"})
    paused.sql(meanwhile)
    before = paused.lading.bills(paused.lading.job("j"), 9)
    with pytest.raises(JobChangedError, match="changed since this was shown"):
        edit_positions(session, "j", {f"file://{paused.path}/in/": "a.csv"}, seen=plan.seen)
    assert paused.lading.bills(paused.lading.job("j"), 9) == before
    again = plan_edit(session, "j", {f"file://{paused.path}/in/": "a.csv"})
    assert edit_positions(session, "j", {f"file://{paused.path}/in/": "a.csv"}, seen=again.seen).is_done


def test_another_change_is_not_taken_back_than_the_one_that_was_shown(paused: Bench) -> None:
    session = paused.lading.session("bob", "shop")
    edit_positions(session, "j", {f"file://{paused.path}/in/": "c.csv"})
    shown = plan_of(prepare_undo(session, paused.lading.job("j"))).seen
    check_seen(prepare_undo(session, paused.lading.job("j")), shown)
    paused.sql("ALTER JOB j PROPERTIES('max_interval'='3')")
    with pytest.raises(JobChangedError):
        check_seen(prepare_undo(session, paused.lading.job("j")), shown)


def test_a_name_alone_is_one_in_the_folder_of_the_job(paused: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paused.path)
    session = paused.lading.session("bob", "shop")
    whole = f"{paused.path}/in/a.csv"
    for name in ("a.csv", "in/a.csv", "./in/a.csv", whole, f"file://{whole}", json.dumps({"fileName": "a.csv"})):
        assert plan_edit(session, "j", {f"file://{paused.path}/in/": name}).moves[0].end == whole, name
    paused.sql("ALTER JOB j PROPERTIES('offset'='{\"fileName\": \"a.csv\"}')")
    assert json.loads(paused.lading.job("j").properties["offset"]) == {"fileName": whole}


@pytest.mark.parametrize(
    ("name", "effect"),
    [("/a.csv", "all of them are loaded"), ("/zzz/a.csv", "none of them is loaded, now or later")],
)
def test_a_file_that_lies_elsewhere_is_taken_as_doris_takes_it_with_a_warning(
    paused: Bench, name: str, effect: str
) -> None:
    session = paused.lading.session("bob", "shop")
    warning = f"{name} is not in {paused.path}/in/, where the files of the job are: {effect}"
    assert plan_edit(session, "j", {f"file://{paused.path}/in/": name}).moves[0].remark == warning
    offset = json.dumps({"fileName": name})
    altered = paused.lading.sql(f"USE shop; ALTER JOB j PROPERTIES('offset'='{offset}')")[-1]
    assert altered.message == f"job j altered; it stays PAUSED; warning: {warning}"
    created = paused.lading.sql(
        f"CREATE JOB k PROPERTIES('offset'='{offset}') ON STREAMING DO INSERT INTO t SELECT * "
        f'FROM FILE("uri"="{paused.path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )[-1]
    assert created.message == f"job k created; warning: {warning}"


def test_undo_says_which_way_it_goes(paused: Bench) -> None:
    session = paused.lading.session("bob", "shop")
    edit_positions(session, "j", {f"file://{paused.path}/in/": "a.csv"})
    move = plan_of(prepare_undo(session, paused.lading.job("j"))).moves[0]
    assert (move.direction, move.again, move.skipped) == ("FORWARD", None, None)
    paused.sql("UNDO ALTER JOB j")
    assert plan_of(prepare_undo(session, paused.lading.job("j"))).moves[0].direction == "BACK"
