"""A home that an earlier version left behind, with jobs that were kept as texts, goes on as it was."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lading.errors import NotSupportedError
from lading.jobs.record import JobState
from lading.model.load import ColumnSpec
from lading.service.catalog.lost_home import Opening
from lading.service.facade import Lading
from lading.service.recover import recover
from lading.sql.syntax import parse
from lading.testing.marked import secret
from tests.service.routine_fakes import Desk, bench

__all__ = ["bench"]

RECORDED = json.loads((Path(__file__).parent / "recorded" / "home-5.json").read_text())
"""A home of store form 5: routine loads j (Kafka, a sealed password) and k (Kinesis, a key by reference; its ALTER was
cut off after the commit), and job f that loads files. All are PAUSED."""
NO_PARSING = "the text of a job was parsed"


@pytest.fixture
def old(bench: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The recorded home, opened by this version."""
    monkeypatch.setenv("RECORDED_KEY", secret("key"))
    bench.lading.close()
    home = bench.path / "home"
    shutil.rmtree(home)
    for name, text in RECORDED["files"].items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(text.replace("@PLACE@", str(bench.path)))
        file.chmod(0o600)
    with sqlite3.connect(home / "lading.db") as connection:
        connection.executescript(RECORDED["store"].replace("@PLACE@", str(bench.path)))
    connection.close()
    (home / "lading.db").chmod(0o600)
    bench.lading = Lading(home, user="ann")
    bench.sql("USE shop")
    return bench


def bodies(home: Path) -> dict[str, dict[str, Any]]:
    with sqlite3.connect(home / "lading.db") as connection:
        found = connection.execute("SELECT name, body FROM lading_jobs").fetchall()
    connection.close()
    return {name: json.loads(body) for name, body in found}


def test_opening_the_store_reads_every_text_once(old: Desk) -> None:
    kept = bodies(old.path / "home")
    assert {name: body["version"] for name, body in kept.items()} == dict.fromkeys("jkf", 11)
    j, f = old.lading.any_job("shop.j").spec, old.lading.job("f").spec
    assert j is not None
    assert f is not None
    assert (j.name, j.target, j.source.kind, j.source.properties["kafka_topic"]) == ("j", "shop.t", "KAFKA", "clicks")
    assert (j.limits.tasks, j.budget.max_errors, j.session.time_zone) == (3, 7, "Europe/Berlin")
    assert (j.records.csv.column_separator, j.mapping.where) == ("|", "id > 1")
    assert j.mapping.columns is not None
    assert j.mapping.columns[2] == ColumnSpec(name="city", expression="upper(raw)")
    assert (f.target, f.limits.files, f.intake.offset, f.session.time_zone) == ("shop.t", 5, "/a.csv", "Asia/Tokyo")
    assert f.mapping.target_columns == ("id", "city")
    assert (j.mapping.is_select, f.mapping.is_select) == (False, True)


def test_no_secret_is_kept_in_a_record(old: Desk) -> None:
    everything = json.dumps(bodies(old.path / "home"))
    assert not [each for each in (secret("old"), secret("id"), secret("key")) if each in everything]
    assert old.lading.load_of(old.lading.any_job("shop.j")).source.properties["property.sasl.password"] == secret("old")
    k = old.lading.open_source(old.lading.any_job("shop.k"))[0].source.properties
    assert (k["aws.access_key"], k["aws.secret_key"]) == (secret("id"), secret("key"))


def test_old_jobs_are_shown_as_before(old: Desk) -> None:
    assert old.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2] == RECORDED["created"]["j"]
    assert old.sql("SHOW CREATE JOB f")[0][1] == RECORDED["created"]["f"]
    shown = old.show("j")
    assert {name: shown[name] for name in RECORDED["shown"]["j"]} == RECORDED["shown"]["j"]


def test_an_edit_that_was_cut_off_is_finished(old: Desk) -> None:
    old.sql("RESUME ROUTINE LOAD FOR k")
    record = old.lading.any_job("shop.k")
    assert record.spec is not None
    assert record.spec.limits.rows == 300_000
    assert (record.spec.source.properties["kinesis_shards"], record.window.rows if record.window else 0) == (
        "b,c",
        3_000_000,
    )


def test_old_jobs_run(old: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    old.sql("RESUME ROUTINE LOAD FOR j; RESUME JOB WHERE jobName = 'f'")

    def refuse(*parts: object) -> None:
        raise AssertionError(NO_PARSING)

    monkeypatch.setattr(parse, "_statement", refuse)
    old.run()
    assert [old.lading.any_job(name).state for name in ("shop.j", "f")] == [JobState.RUNNING] * 2
    specs = [spec for spec in old.world.specs if hasattr(spec, "topic")]
    assert (specs[-1].topic, specs[-1].client["sasl.password"]) == ("clicks", secret("old"))


def test_old_bills_rebuild_the_jobs(old: Desk) -> None:
    known = {name: old.lading.any_job(name).spec for name in ("shop.j", "f")}
    old.lading.close()
    (old.path / "home" / "lading.db").unlink()
    old.lading = Lading(old.path / "home", user="ann", opening=Opening.RECOVERY)
    findings = recover(old.lading)
    assert not [found for found in findings if found.is_bad]
    assert {name: old.lading.any_job(name).spec for name in known} == known


def test_a_text_that_makes_no_job_stops_its_job_alone(old: Desk) -> None:
    old.lading.close()
    with sqlite3.connect(old.path / "home" / "lading.db") as connection:
        [body] = connection.execute("SELECT body FROM lading_jobs WHERE name = 'f'").fetchone()
        broken = json.loads(body)
        broken["version"], broken["body"]["definition"] = 2, "SELECT 1"
        del broken["body"]["spec"]
        connection.execute("UPDATE lading_jobs SET body = ? WHERE name = 'f'", [json.dumps(broken)])
        connection.execute("DELETE FROM lading_migrations WHERE version = 6")
    connection.close()
    old.lading = Lading(old.path / "home", user="ann")
    assert old.lading.any_job("shop.j").spec is not None
    with pytest.raises(NotSupportedError, match="is not CREATE JOB or CREATE ROUTINE LOAD"):
        old.lading.compile(old.lading.job("f"))
