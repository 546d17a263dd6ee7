"""What becomes of the state when a job is moved, taken back, rolled back or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import deltalake
import pytest
from pyspark.sql import SparkSession

from lading.errors import SqlError
from lading.service.facade import Lading
from lading.service.statements import clean
from tests.console.local import PastClock
from tests.service.conftest import Desk
from tests.service.test_watermarks import CSV, create, ids, put

DEDUP = "'watermark.column'='at', 'dedup.keys'='id'"
PAUSE, RESUME = "PAUSE JOB WHERE jobName = 'j'", "RESUME JOB WHERE jobName = 'j'"


class PassingClock(PastClock):
    """Time passes, and nobody sets the clock."""

    def monotonic_s(self) -> float:
        return super().monotonic_s() - self.behind.total_seconds()


class TimedDesk(Desk):
    """Time can pass."""

    clock: PassingClock

    def _open(self) -> Lading:
        self.clock = PassingClock()
        return Lading(self.path / "home", session=self._spark, user="tester", clock=self.clock)


@pytest.fixture
def desk(tmp_path: Path, spark: SparkSession) -> Iterator[TimedDesk]:
    made = TimedDesk(tmp_path, spark)
    yield made
    made.lading.close()


def state_files(desk: Desk) -> list[Path]:
    return sorted(Path(desk.lading.catalog.open_table("shop", "t").location).rglob("state/*"))


def test_undo_asks_about_the_state_and_a_dropped_job_leaves_none(
    desk: TimedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(desk, DEDUP)
    desk.sql(f"{PAUSE}; ALTER JOB j PROPERTIES('dedup.keys'='id,at'); {RESUME}")  # Nothing is kept yet.
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "1,2026-01-01 12:00:01")
    desk.run()
    desk.sql(PAUSE)
    with pytest.raises(SqlError, match=r'its keys, .* cannot be changed.*ALTER the job .* "state" = "RESET"'):
        desk.sql("UNDO ALTER JOB j")
    kept, seq = state_files(desk), desk.lading.bills(desk.lading.job("j"), 1)[0].seq
    desk.sql("ALTER JOB j PROPERTIES('state'='RESET')")
    lost = {path: path.read_bytes() for path in kept}
    for path in kept:
        path.unlink()
    for statement in ("UNDO ALTER JOB j", f"ALTER JOB j PROPERTIES('state'='COMMIT {seq}')"):
        with pytest.raises(SqlError, match=rf"cannot go back to commit {seq}: its state file _lading/.* is gone"):
            desk.sql(statement)
    for path, content in lost.items():
        path.write_bytes(content)
    desk.sql(f"UNDO ALTER JOB j; {RESUME}")
    put(desk, "b.csv", "1,2026-01-01 12:00:01", "2,2026-01-01 12:00:01")
    desk.run()
    assert ids(desk) == [1, 1, 2]
    desk.clock.behind = -timedelta(days=4)
    monkeypatch.setattr(clean, "storage_now", lambda storage: desk.clock.now())  # Time passes for the disk, too.
    assert desk.sql("ADMIN CLEAN ORPHANS DRY RUN") == []  # Bills that are kept need all of it.
    desk.sql("DROP JOB WHERE jobName = 'j'")
    assert {row[1] for row in desk.sql("ADMIN CLEAN ORPHANS")} == {"state"}
    assert state_files(desk) == []
    assert desk.lading.verify("j").is_clean
    assert ids(desk) == [1, 1, 2]


def test_rows_that_were_written_again_before_are_told_once(desk: TimedDesk) -> None:
    create(desk, DEDUP)
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    seq = desk.lading.bills(desk.lading.job("j"), 1)[0].seq
    put(desk, "b.csv", "1,2026-01-01 12:00:01", "2,2026-01-01 12:00:00", "3,2026-01-01 12:00:00")
    alter = f"ALTER JOB j PROPERTIES('state'='COMMIT {seq}')"
    for times in (1, 2):
        desk.run()
        assert ids(desk) == [1, *([2] * times), *([3] * times)]
        desk.sql(PAUSE)
        [position, state] = desk.sql(f"EXPLAIN {alter}")
        assert position[-1] == f"2 rows that were written since commit {seq} are written again"
        assert state[:3] == ("state", "of now", f"of commit {seq}")
        desk.sql(f"{alter}; {RESUME}")
    desk.run()
    assert ids(desk) == [1, 2, 2, 2, 3, 3, 3]


def test_a_rollback_that_keeps_the_position_keeps_the_windows_of_it(desk: TimedDesk) -> None:
    desk.sql("CREATE TABLE t (minute DATETIME, many BIGINT) USING delta")
    desk.sql(
        "CREATE JOB j PROPERTIES('watermark.column'='at') ON STREAMING DO INSERT INTO t SELECT window_start, count(*) "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) GROUP BY window(at, \'1 minute\')'
    )
    put(desk, "a.csv", "1,2026-01-01 12:00:10")
    desk.run()
    before = deltalake.DeltaTable(f"{desk.path}/home/warehouse/shop/t").version()
    put(desk, "b.csv", "2,2026-01-01 12:00:20", "3,2026-01-01 12:03:00")
    desk.run()
    assert counts(desk) == [(12, 0, 2)]
    deltalake.DeltaTable(f"{desk.path}/home/warehouse/shop/t").restore(before)
    desk.run()
    assert "ACCEPT ROLLBACK" in desk.show("ErrorMsg")
    desk.sql(f"ACCEPT ROLLBACK OF JOB j KEEP POSITION; {RESUME}")
    put(desk, "c.csv", "4,2026-01-01 12:10:00")
    desk.run()
    # What was taken away on purpose stays away. The row of 12:03 was read before, and its window was open.
    assert counts(desk) == [(12, 3, 1)]


def counts(desk: Desk) -> list[tuple[int, int, int]]:
    rows = desk.lading.catalog.open_table("shop", "t").scan().to_pylist()
    return sorted((row["minute"].hour, row["minute"].minute, row["many"]) for row in rows)
