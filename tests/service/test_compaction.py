"""Compaction from the door: statements, rounds of a service, what is shown, and what verify says afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pytest

from lading import failpoints
from lading.errors import ConfigError, DeniedError, TableError, TableNotFoundError
from lading.service.scheduling.compactor import CompactionRounds
from lading.service.telemetry.metrics import Metrics
from lading.tables.compaction.notes import PREFIX
from lading.tables.registry import kind_of
from tests.console.local import LocalLading, PastClock
from tests.service.conftest import Desk
from tests.tables.optional import skip_without

FORMS = ("delta", "iceberg")


class Killed(BaseException):
    """The process ends here."""


class LocalDesk(Desk):
    """Without Spark, and a clock that can be put back."""

    clock = PastClock()

    def _open(self) -> LocalLading:
        return LocalLading(self.path / "home", user="tester", clock=self.clock)

    def load(self, batches: int, first: int = 0, rows: int = 2) -> None:
        """So many commits of the job; and then an hour goes by."""
        self.clock.behind = timedelta(0)
        for number in range(batches):
            self.put_orders(f"{first + number:04d}.csv", (first + number) * rows, rows)
            self.run()
        self.clock.behind = timedelta(hours=-1)

    def files(self, table: str = "orders") -> int:
        return len(self.lading.catalog.open_table("shop", table).files())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LocalDesk]:
    LocalDesk.clock.behind = timedelta(0)
    made = LocalDesk(tmp_path)
    yield made
    failpoints.disarm_all()
    made.lading.close()


def loaded(desk: LocalDesk, form: str = "delta", *, batches: int = 12, more: str = "") -> None:
    desk.table(form=form, more=more)
    desk.create()
    desk.load(batches)


@pytest.mark.parametrize("form", FORMS)
def test_by_hand_and_other_readers_see_the_same(desk: LocalDesk, form: str) -> None:
    loaded(desk, form, batches=4)
    planned = desk.sql("ADMIN COMPACT TABLE shop.orders DRY RUN")
    assert [(row[2], row[3], row[5], row[7]) for row in planned] == [(4, 8, None, "planned")]
    assert desk.files() == 4
    done = desk.sql("OPTIMIZE orders")
    assert [(row[0], row[2], row[5], row[7]) for row in done] == [("shop.orders", 4, 1, "compacted")]
    assert desk.files() == 1
    assert desk.ids() == list(range(8))
    assert sorted(other_reader(desk, form)) == list(range(8))
    assert desk.sql("ADMIN COMPACT TABLE shop.orders") == []
    verdict = desk.lading.verify("j")
    assert (verdict.is_clean, verdict.told, verdict.rows) == (True, "clean", 8)
    desk.load(2, first=4)
    assert desk.ids() == list(range(12))


def other_reader(desk: LocalDesk, form: str) -> list[int]:
    place = desk.path / "home" / "warehouse" / "shop" / "orders"
    if form == "delta":
        return pl.read_delta(str(place))["id"].to_list()
    newest = max((place / "metadata").glob("*.metadata.json"))
    return pl.scan_iceberg(str(newest)).collect()["id"].to_list()


@pytest.mark.parametrize("form", FORMS)
def test_a_service_does_it_by_itself_and_tells(desk: LocalDesk, form: str) -> None:
    loaded(desk, form)
    shown = desk.sql("SHOW COMPACTION")
    assert [row[:6] for row in shown] == [("shop.orders", "AUTO", 1, 12, 12, 12)]
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    CompactionRounds(desk.lading, metrics).look()
    assert (desk.files(), desk.ids()) == (1, list(range(24)))
    row = desk.sql("SHOW COMPACTION")[0]
    assert (row[3:6], row[8:10]) == ((1, 1, 0), (12, 1))
    assert [row[1:4] for row in desk.sql("SHOW COMPACTION FROM orders")] == [(1, 1, 0)]
    told = metrics.render().decode()
    assert 'lading_table_files{table="shop.orders"} 1.0' in told
    assert 'lading_compactions_total{outcome="compacted",table="shop.orders"} 1.0' in told
    assert 'lading_compacted_files_total{table="shop.orders"} 12.0' in told
    assert desk.lading.verify("j").told == "clean"


def test_young_files_and_few_files_wait(desk: LocalDesk) -> None:
    loaded(desk, batches=9)
    rounds = CompactionRounds(desk.lading, Metrics(desk.lading.store, desk.lading.clock))
    rounds.look()
    assert desk.files() == 9
    desk.put_orders("young.csv", 100, 2)
    desk.run()
    rounds.look()
    assert desk.files() == 10


def test_it_is_off_when_the_table_says_so(desk: LocalDesk) -> None:
    loaded(desk, more='TBLPROPERTIES ("lading.compaction" = "off")')
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    rounds = CompactionRounds(desk.lading, metrics)
    rounds.look()
    assert desk.files() == 12
    assert desk.sql("SHOW COMPACTION")[0][1] == "OFF"
    assert 'lading_table_small_files{table="shop.orders"} 12.0' in metrics.render().decode()
    desk.sql('ALTER TABLE orders SET ("compaction" = "AUTO")')
    desk.restart()
    CompactionRounds(desk.lading, metrics).look()
    assert desk.files() == 1
    desk.sql('ALTER TABLE orders SET TBLPROPERTIES ("lading.compaction" = "OFF")')
    assert desk.sql("SHOW COMPACTION")[0][1] == "OFF"


def test_wrong_words_are_refused(desk: LocalDesk) -> None:
    desk.table()
    with pytest.raises(ConfigError, match=r"lading\.compaction is 'maybe'"):
        desk.table("other", more='TBLPROPERTIES ("lading.compaction" = "maybe")')
    with pytest.raises(ConfigError, match="compaction is 'on'"):
        desk.sql('ALTER TABLE orders SET ("compaction" = "on")')
    with pytest.raises(ConfigError, match="cannot set the property owner"):
        desk.sql('ALTER TABLE orders SET ("owner" = "me")')
    with pytest.raises(TableNotFoundError):
        desk.sql("OPTIMIZE nothing")


def test_only_admins_may(desk: LocalDesk) -> None:
    desk.table()
    desk.sql("CREATE USER jack; GRANT LOAD, SELECT ON shop TO jack; CREATE USER anna; GRANT ADMIN ON shop TO anna")
    desk.sql("CREATE USER nobody")
    for text in ("OPTIMIZE shop.orders", 'ALTER TABLE shop.orders SET ("compaction" = "OFF")'):
        with pytest.raises(DeniedError):
            desk.lading.session("jack").sql(text)
    assert len(desk.lading.session("jack").sql("SHOW COMPACTION")[0].rows) == 1
    assert desk.lading.session("nobody").sql("SHOW COMPACTION")[0].rows == ()
    with pytest.raises(DeniedError):
        desk.lading.session("nobody").sql("SHOW COMPACTION FROM shop.orders")
    assert desk.lading.session("anna").sql("OPTIMIZE shop.orders")[0].rows == ()


def test_paimon_is_refused_by_name(desk: LocalDesk) -> None:
    skip_without(kind_of("paimon"))
    desk.table(form="paimon")
    with pytest.raises(TableError, match="does not compact Paimon"):
        desk.sql("OPTIMIZE orders")
    assert "Paimon" in str(desk.sql("SHOW COMPACTION")[0][-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", ["copy.before", "copy.after", "note.after", "commit.after"])
def test_killed_at_any_step_the_rows_are_there_once(desk: LocalDesk, form: str, step: str) -> None:
    loaded(desk, form, batches=4)

    def kill(_name: str) -> None:
        raise Killed

    failpoints.arm(f"compact.{step}", kill)
    with pytest.raises(Killed):
        desk.sql("OPTIMIZE orders")
    failpoints.disarm_all()
    desk.restart()
    assert desk.ids() == list(range(8))
    assert desk.lading.verify("j").told == "clean"
    desk.load(1, first=4)
    desk.sql("OPTIMIZE orders")
    assert (desk.files(), desk.ids()) == (1, list(range(10)))
    assert desk.lading.verify("j").told == "clean"


@pytest.mark.parametrize("form", FORMS)
def test_verify_finds_a_compaction_that_dropped_rows(desk: LocalDesk, form: str) -> None:
    """And what is said without the notes, which another engine may remove."""
    loaded(desk, form, batches=4)
    desk.sql("OPTIMIZE orders")
    storage = desk.lading.catalog.open_table("shop", "orders").bills.storage
    key = next(iter(storage.keys(PREFIX)))
    note = storage.get(key) or b""
    storage.delete([key])
    assert "compaction by Lading" in desk.lading.verify("j").told
    storage.put_if_absent(key, note.replace(b'"rows":8', b'"rows":7'))
    findings = " ".join(desk.lading.verify("j").findings)
    assert "LOSS: compaction" in findings
    assert "CORRUPT" in findings


def test_a_table_that_was_adopted_is_left_alone(desk: LocalDesk) -> None:
    place = desk.path / "lake" / "orders"
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("amount", pa.decimal128(10, 2))])
    deltalake.write_deltalake(str(place), schema.empty_table())
    desk.sql(f"CREATE TABLE orders USING delta LOCATION '{place}'")
    desk.create()
    desk.load(12)
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    for _ in range(2):
        CompactionRounds(desk.lading, metrics).look()
    assert len(deltalake.DeltaTable(str(place)).file_uris()) == 12
    assert [row[1:6] for row in desk.sql("SHOW COMPACTION")] == [("OFF", 1, 12, 12, 12)]
    assert 'lading_table_small_files{table="shop.orders"} 12.0' in metrics.render().decode()
    # It is done when the table says so.
    desk.sql('ALTER TABLE orders SET ("compaction" = "AUTO")')
    CompactionRounds(desk.lading, metrics).look()
    assert len(deltalake.DeltaTable(str(place)).file_uris()) == 1


def test_a_budget_that_runs_out_goes_on_with_the_next_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADING_COMPACTION_BUDGET_MB", "1")
    monkeypatch.setenv("LADING_COMPACTION_MIN_FILES", "2")
    LocalDesk.clock.behind = timedelta(0)
    desk = LocalDesk(tmp_path)
    chance = random.Random(1)
    names = ("a", "b", "c")
    for name in names:
        desk.sql(f"CREATE TABLE {name} (id BIGINT, note STRING) USING delta")
        desk.create(name, name)
    for batch in range(2):
        rows = [f"{number},{chance.randbytes(150_000).hex()}" for number in range(8)]
        desk.put(f"{batch}.csv", rows, "id,note")
        desk.run()
    desk.clock.behind = timedelta(hours=-1)
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    rounds = CompactionRounds(desk.lading, metrics)
    for left in (["b", "c"], ["c"], []):
        rounds.look()
        assert [name for name in names if desk.files(name) == 2] == left
        # Those that wait are looked at all the same.
        told = metrics.render().decode()
        assert all(f'lading_table_files{{table="shop.{name}"}} {desk.files(name)}.0' in told for name in names)
    desk.lading.close()
