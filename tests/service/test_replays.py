"""REPLAY ERRORS: bad rows are loaded after the definition was changed, each once. No Spark is started."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from lading.errors import JobStateError, SourceError, StageError
from lading.failpoints import arm, disarm_all
from lading.ids import new_token
from lading.model.batch import BatchPlan, Report
from lading.model.codec import decode
from lading.pipeline.mapping import NOTE
from lading.pipeline.stage import batch_value
from lading.pipeline.vector.task import vector_task
from lading.service.catalog.lost_home import Opening
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.service.recover import recover
from lading.service.runtime.context import CancellableStager
from lading.service.statements import clean
from lading.sql.expressions.vector_nodes import VectorPlan
from tests.console.local import LocalStager
from tests.service.conftest import Desk
from tests.service.test_recover import fates, lose_store

LENIENT = (
    '"session.enable_insert_strict"="false", "session.enable_strict_cast"="true", '
    '"session.insert_max_filter_ratio"="1", "file.settle_seconds"="0"'
)
REPLAY = "REPLAY ERRORS FOR j"


class Died(BaseException):
    """As if the process were gone."""


def die(_step: str) -> None:
    raise Died


class VectorLading(Lading):
    """Stages in this process, with what Spark's tasks are given."""

    def _stager(self, compiled: Compiled) -> CancellableStager:
        return super()._stager(compiled) if compiled.stage is None else VectorStager(compiled.stage)


class VectorStager(LocalStager):
    """The tasks of the vector path, one after the other."""

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        stage = self._stage
        assert isinstance(stage.vector, VectorPlan), stage.vector
        told = {name: batch_value(name, plan) for name in stage.of_batch}
        batch_id = f"{new_token():016x}"
        tools = replace(stage.tools, splits=tuple(plan.splits), batch_id=batch_id, of_batch=told)
        schema = pa.schema([*stage.source, pa.field(NOTE, pa.binary())])
        numbers = pa.record_batch([pa.array(range(len(plan.splits)), pa.int64())], names=["id"])
        batches = vector_task(tools, stage.vector, schema, f"{batch_id}-0", iter([numbers]))
        texts = [row["report"] for batch in batches for row in batch.to_pylist()]
        return [decode(Report, json.loads(text), where="a task") for text in texts]


class LocalDesk(Desk):
    """Without Spark: rows are read, mapped and written in this process."""

    def _open(self) -> Lading:
        return VectorLading(self.path / "home", user="tester", opening=Opening.RECOVERY)

    def alter(self, select: str, **properties: str) -> None:
        given = {"uri": f"{self.inbox}/*.csv", "format": "csv_with_names", "column_separator": ",", **properties}
        source = f"FILE({', '.join(f'{name!r}={value!r}' for name, value in given.items())})"
        if self.show("Status") != "PAUSED":
            self.sql("PAUSE JOB WHERE jobName = 'j'")
        self.sql(f"ALTER JOB j INSERT INTO orders SELECT {select} FROM {source}")

    def resume(self) -> None:
        self.sql("RESUME JOB WHERE jobName = 'j'")
        self.run()

    def replay(self, more: str = "") -> str:
        return self.lading.sql(f"{REPLAY}{more}")[-1].message

    def rows(self) -> list[tuple[object, ...]]:
        """By somebody else's reader, where the table is one of Delta."""
        location = self.lading.catalog.open_table("shop", "orders").location
        return sorted(pl.read_delta(location.removeprefix("file://")).rows())

    def totals(self) -> tuple[int, int, int]:
        rows = self.lading.bills(self.lading.job("j"), 1)[0].totals.rows
        return rows.total, rows.loaded, rows.error


FIXED = "coalesce(try_cast(id AS BIGINT), 101), city, amount"
"""What makes rows without a number good."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LocalDesk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


def begin(desk: LocalDesk, form: str = "delta") -> LocalDesk:
    """Two batches, each of one file with a row that has no number."""
    desk.table(form=form)
    desk.create(properties=LENIENT, select="id, city, amount")
    for name in ("a", "b"):
        desk.put(f"{name}.csv", [f"{ord(name)},essen,1.50", f"x{name},{name},2.50"])
        desk.run()
    return desk


@pytest.fixture
def bad(desk: LocalDesk) -> LocalDesk:
    """The same, of Delta."""
    return begin(desk)


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_bad_rows_are_loaded_once_after_the_definition_was_changed(desk: LocalDesk, form: str) -> None:
    desk.table(form=form)
    desk.create(properties=LENIENT, select="id, city, amount")
    desk.put("a.csv", ["1,essen,1.50", "x,bonn,2.50", "y,ulm,3.50"])
    desk.run()
    assert (desk.ids(), desk.totals()) == ([1], (3, 1, 2))
    desk.alter("coalesce(try_cast(id AS BIGINT), 7), city, amount")
    assert "2 bad rows of job j were loaded" in desk.replay()
    assert desk.totals() == (3, 3, 0)
    assert "no bad rows that wait" in desk.replay()
    desk.resume()
    assert desk.ids() == [1, 7, 7]
    assert desk.lading.verify("j").is_clean


def test_the_bill_says_what_was_taken_up_and_the_audit_who_did_it(bad: LocalDesk) -> None:
    assert bad.sql(f"EXPLAIN {REPLAY}")[0][2:4] == (1, 1)
    bad.alter(FIXED)
    before = bad.lading.bills(bad.lading.job("j"), 1)[0]
    assert "2 bad rows of job j were loaded in commit" in bad.replay(" COMMENT 'numbers were missing'")
    assert bad.rows() == [
        (97, "essen", Decimal("1.50")),
        (98, "essen", Decimal("1.50")),
        (101, "a", Decimal("2.50")),
        (101, "b", Decimal("2.50")),
    ]
    bill = bad.lading.bills(bad.lading.job("j"), 1)[0]
    assert (bill.kind.value, bill.positions, bill.replayed_through) == ("replay", before.positions, bill.seq - 1)
    entry = bad.lading.store.list_audit(job_id=bill.job_id)[0]
    assert (entry.action, entry.user) == ("REPLAY ERRORS", "tester")
    told = {"loaded": "2", "bad": "0", "why": "numbers were missing", "through": str(bill.replayed_through)}
    assert told.items() <= entry.facts.items()
    assert bad.sql(f"EXPLAIN {REPLAY}") == []


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_what_was_taken_up_is_known_when_the_store_and_all_bills_are_lost(desk: LocalDesk, form: str) -> None:
    bad = begin(desk, form)
    bad.alter(FIXED)
    bad.replay()
    ids = bad.ids()
    lose_store(bad)
    assert fates(recover(bad.lading))["job j"] == "recovered"
    bad.sql("USE shop")
    bills = bad.path / "home" / "warehouse" / "shop" / "orders" / "_lading"
    gone = [each for each in bills.rglob("*.json") if each.parent.parent == bills]
    for each in gone:
        each.unlink()
    assert gone
    assert "no bad rows that wait" in bad.replay()
    bad.resume()
    assert bad.ids() == ids == [97, 98, 101, 101]


def test_rows_wait_on_when_the_store_was_lost(bad: LocalDesk) -> None:
    lose_store(bad)
    recover(bad.lading)
    bad.sql("USE shop")
    bad.alter(FIXED)
    assert "2 bad rows" in bad.replay()
    assert bad.ids() == [97, 98, 101, 101]


def test_rows_that_are_bad_again_wait_for_the_next_definition(bad: LocalDesk) -> None:
    bad.alter("coalesce(try_cast(replace(id, 'xa', '7') AS BIGINT), try_cast(id AS BIGINT)), city, amount")
    told = bad.replay()
    assert "1 bad row of job j was loaded" in told
    assert "still bad: 1; the first: in quarantine: column id: NULL" in told
    newest = bad.sql("SHOW LOAD ERRORS FOR j")[0]
    assert newest[1:3] == (f"{bad.inbox}/b.csv", 2)
    assert json.loads(str(newest[4])) == {"id": "xb", "city": "b", "amount": "2.50"}
    bad.alter("coalesce(try_cast(id AS BIGINT), 8), city, amount")
    assert "1 bad row of job j was loaded" in bad.replay()
    assert (bad.ids(), bad.totals()) == ([7, 8, 97, 98], (4, 4, 0))
    bad.resume()
    assert bad.lading.verify("j").is_clean


def test_when_nothing_can_be_loaded_nothing_is_changed(bad: LocalDesk) -> None:
    bad.sql("PAUSE JOB WHERE jobName = 'j'")
    assert "none of the 2 bad rows" in bad.replay()
    assert bad.totals() == (4, 2, 2)
    bad.alter(FIXED)
    assert "2 bad rows" in bad.replay()


def test_a_row_is_not_taken_up_that_is_read_in_another_way_now(bad: LocalDesk) -> None:
    """What was read as the city may be something else for the definition of now."""
    bad.alter(FIXED, csv_schema="city:string;id:string;amount:string", format="csv", skip_lines="1")
    assert "none of the 2 bad rows" in bad.replay()
    bad.alter(FIXED)
    assert "2 bad rows" in bad.replay()


def test_files_that_are_named_to_be_loaded_again_are_not_taken_up(bad: LocalDesk) -> None:
    bad.alter(FIXED)
    bad.sql("""ALTER JOB j PROPERTIES ("s3.also_load" = '["a.csv"]')""")
    with pytest.raises(JobStateError, match="files were named since") as refused:
        bad.replay()
    assert "load them by other names if not" in str(refused.value), "nobody may give up what does not come again"


def test_files_that_are_left_out_or_loaded_after_all_bring_no_bad_row_again(desk: LocalDesk) -> None:
    """SKIP FILE and LOAD FILE move no position: nobody is told to give up rows that would never come."""
    desk.table()
    desk.create(properties=f'{LENIENT}, "file.on_error"="SKIP"', select="id, city, amount")
    desk.put("a.csv", ["97,essen,1.50", "xa,a,2.50"])
    desk.run()
    desk.lading.sql("PAUSE JOB WHERE jobName = 'j'; SKIP FILE 'c.csv' FOR JOB j")
    assert desk.sql(f"EXPLAIN {REPLAY}")[0][2] == 1
    desk.sql("LOAD FILE 'c.csv' FOR JOB j; SKIP FILE 'd.csv' FOR JOB j")
    desk.alter(FIXED)
    assert "1 bad row of job j was loaded" in desk.replay()
    desk.put("c.csv", ["99,essen,1.50", "xc,c,2.50"])
    desk.resume()
    assert desk.ids() == [97, 99, 101, 101]
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize("is_again", [False, True])
def test_a_file_that_was_put_aside_and_loaded_after_all(desk: LocalDesk, *, is_again: bool) -> None:
    """The row that stands for it has no values, and stays bad; the rows of other files are taken up."""
    desk.table()
    source = f'FILE("uri"="{desk.inbox}/*.gz", "format"="csv_with_names", "column_separator"=",", "compress_type"="gz")'
    told = f'{LENIENT}, "file.on_error"="SKIP"'
    desk.sql(
        f"CREATE JOB j PROPERTIES({told}) ON STREAMING DO INSERT INTO orders SELECT id, city, amount FROM {source}"
    )
    zipped(desk, "a.gz", "97,essen,1.50", "xa,a,2.50")
    desk.run()
    whole = zipped(desk, "b.gz", *(f"{n},essen,1.50" for n in range(1000, 2000)))
    (desk.inbox / "b.gz").write_bytes(whole[:-20])
    desk.run()
    assert desk.totals() == (3, 1, 2)
    zipped(desk, "b.gz", "98,essen,1.50", "xb,b,2.50")
    desk.sql(f"PAUSE JOB WHERE jobName = 'j'; ALTER JOB j INSERT INTO orders SELECT {FIXED} FROM {source}")
    if is_again:
        desk.sql("SKIP FILE 'b.gz' FOR JOB j")
    desk.sql("LOAD FILE 'b.gz' FOR JOB j")
    assert "1 bad row of job j was loaded in commit" in desk.replay()
    desk.resume()
    assert (desk.ids(), desk.totals()) == ([97, 98, 101, 101], (5, 4, 1))
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    assert "none of the 1 bad rows" in desk.replay()
    newest = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert "no bad rows that wait" in desk.replay(f" AFTER {newest.seq}")
    assert desk.ids() == [97, 98, 101, 101]


def zipped(desk: LocalDesk, name: str, *rows: str) -> bytes:
    content = gzip.compress("\n".join(["id,city,amount", *rows, ""]).encode())
    (desk.path / "draft").write_bytes(content)
    (desk.path / "draft").rename(desk.inbox / name)
    return content


def test_quarantine_that_is_gone_or_cut_is_said_with_its_commits(bad: LocalDesk) -> None:
    bad.alter(FIXED)
    first, second = sorted((bad.path / "home" / "quarantine").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    whole = second.read_bytes()
    second.write_bytes(b"")
    with pytest.raises(StageError, match="has 0 of 1 rows"):
        bad.replay()
    second.write_bytes(whole)
    first.unlink()
    with pytest.raises(SourceError, match=r"Quarantine of job j is gone, of the commits 1; ") as refused:
        bad.replay()
    assert "AFTER 1" in str(refused.value)
    assert "1 bad row of" in bad.replay(" AFTER 1")
    assert (bad.ids(), bad.totals()) == ([97, 98, 101], (4, 3, 1))
    assert "no bad rows that wait" in bad.replay()


def test_rows_say_the_commit_that_took_them_up_and_the_file_that_they_are_from(desk: LocalDesk) -> None:
    desk.sql("CREATE TABLE orders (id BIGINT NOT NULL, origin STRING, batch BIGINT) USING delta")
    desk.create(properties=LENIENT, select="id, concat(_file, ':', _row), _batch")
    desk.put("a.csv", ["x,essen,1.50"])
    desk.run()
    desk.alter("coalesce(try_cast(id AS BIGINT), 5), concat(_file, ':', _row), _batch")
    desk.replay()
    bill = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert desk.rows() == [(5, f"file://{desk.inbox}/a.csv:1", bill.seq)]


def test_orphans_are_cleaned_while_a_replay_takes_long(bad: LocalDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    bad.alter(FIXED)
    entry, later = bad.lading.catalog.entry("shop", "orders"), timedelta(hours=2)
    found = list[str]()

    def clean_up(_step: str) -> None:
        # Two hours later, as far as that is seen from outside.
        monkeypatch.setattr(clean, "_steady_now", lambda lading: lading.clock.now() + later)
        monkeypatch.setattr(clean, "storage_now", lambda storage: datetime.now(UTC) + later)
        cleaned = clean.clean_table(bad.lading, entry, age=timedelta(hours=1), dry_run=False)
        assert not cleaned.remark
        found.extend(each.path for each in cleaned.found)

    arm("stage.after", clean_up)
    try:
        assert "2 bad rows" in bad.replay()
    finally:
        disarm_all()
    assert not found
    assert bad.lading.verify("j").is_clean
    assert bad.ids() == [97, 98, 101, 101]
    assert not [key for key in bad.lading.store.list_settings() if key.startswith("replay")]


@pytest.mark.parametrize("step", ["stage.after", "bill.after", "commit.after", "follow.before"])
def test_a_service_that_dies_in_a_replay_loads_the_rows_once(bad: LocalDesk, step: str) -> None:
    bad.alter(FIXED)
    arm(step, die)
    try:
        with pytest.raises(Died):
            # The first of these is in the takeover that opens the job, where there is one.
            bad.replay()
    finally:
        disarm_all()
    bad.lading.close()
    bad.restart_empty()
    bad.sql("USE shop")
    bad.replay()
    bad.resume()
    assert bad.ids() == [97, 98, 101, 101]
    assert bad.lading.verify("j").is_clean
