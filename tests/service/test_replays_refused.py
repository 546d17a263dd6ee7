"""REPLAY ERRORS says why it takes nothing up. No Spark is started."""

from __future__ import annotations

import json

import pytest

from lading.errors import ConfigError, JobNotFoundError, JobStateError
from tests.service.test_replays import FIXED, LENIENT, REPLAY, LocalDesk
from tests.service.test_replays import bad as bad
from tests.service.test_replays import desk as desk


def test_after_a_move_back_the_rows_come_by_reading_and_a_replay_is_refused(bad: LocalDesk) -> None:
    bad.alter(FIXED)
    offset = json.dumps({"fileName": f"{bad.inbox}/a.csv"})
    bad.sql(f"ALTER JOB j PROPERTIES ('offset' = '{offset}')")
    with pytest.raises(JobStateError, match="may be loaded twice, from its source, too"):
        bad.replay()
    bad.resume()
    assert bad.ids() == [97, 98, 98, 101], "b.csv was loaded again, as it was asked for, with its row that was bad"
    bad.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(JobStateError, match="may be loaded twice") as refused:
        bad.replay()
    seq = int(str(refused.value.facts["seq"]))
    with pytest.raises(JobStateError, match="may be loaded twice"):
        bad.sql(f"EXPLAIN {REPLAY} AFTER {seq}")
    assert "no bad rows that wait" in bad.replay(f" AFTER {seq + 1}")
    assert bad.ids() == [97, 98, 98, 101]


def test_a_replay_needs_a_paused_job_that_is_there(bad: LocalDesk) -> None:
    with pytest.raises(JobStateError):
        bad.replay()
    with pytest.raises(JobNotFoundError):
        bad.sql("REPLAY ERRORS FOR other")
    bad.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(ConfigError, match="AFTER 99 is behind the newest commit"):
        bad.replay(" AFTER 99")


def test_a_job_that_has_ended_says_what_to_do_and_that_can_be_done(desk: LocalDesk) -> None:
    desk.table()
    desk.create(properties=f'{LENIENT}, "s3.ingestion_mode"="ONCE"', select="id, city, amount")
    desk.put("a.csv", ["1,essen,1.50", "x,bonn,2.50"])
    desk.run()
    for text in (REPLAY, f"EXPLAIN {REPLAY}"):
        with pytest.raises(JobStateError, match="Job j is FINISHED: a job that has ended loads nothing") as refused:
            desk.lading.sql(text)
        assert "put them, corrected, into a file of another folder, and load that by another job" in refused.value.todo
    ((_, _, _, _, raw),) = desk.lading.sql("SHOW LOAD ERRORS FOR j")[-1].rows
    (desk.path / "corrected").mkdir()
    (desk.path / "corrected" / "a.json").write_text(json.dumps({**json.loads(raw), "id": 2}) + "\n")
    desk.lading.sql(
        f'USE shop; CREATE JOB again PROPERTIES ({LENIENT}, "s3.ingestion_mode"="ONCE") ON STREAMING DO '
        f'INSERT INTO orders SELECT id, city, amount FROM FILE("uri"="{desk.path}/corrected/*.json", "format"="json", '
        '"read_json_by_line"="true")'
    )
    desk.lading.run(["again"])
    assert desk.ids() == [1, 2]


def test_a_job_that_keeps_something_of_its_rows_is_refused(desk: LocalDesk) -> None:
    desk.table()
    given = '"dedup.keys"="id", "watermark.column"="at", "file.settle_seconds"="0"'
    desk.sql("ALTER TABLE orders ADD COLUMN at DATETIME")
    desk.put("a.csv", ["1,essen,1.50,2026-01-01 00:00:00"], header="id,city,amount,at")
    desk.create(properties=given, select="id, city, amount, at")
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(JobStateError, match="it keeps something of its rows between batches"):
        desk.replay()
