"""A row of a file that ends the workers which read it is found, and named or put aside; else its file is."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lading.errors import WORKER_LOST, StageError
from lading.jobs import pace
from lading.model.batch import BatchPlan, Report
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import CancellableStager
from tests.console.local import LocalLading, LocalStager
from tests.faults.rig import Service


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else kills workers here."""
    monkeypatch.setattr(pace, "SUSPECT_WAIT_S", 0.01)


class FrailStager(LocalStager):
    """Says of a batch with a deadly row what Spark says of a worker that was killed."""

    deadly: frozenset[str] = frozenset()
    staged = 0

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        type(self).staged += 1
        for split in plan.splits:
            for item in self._stage.tools.read([split]):
                if isinstance(item, pa.RecordBatch) and self.deadly & set(item.column("id").to_pylist()):
                    raise StageError("A worker of the batch was killed", code=WORKER_LOST)
        return super().stage(plan)


class FrailLading(LocalLading):
    def _stager(self, compiled: Compiled) -> CancellableStager:
        return FrailStager(compiled.stage) if compiled.stage is not None else super()._stager(compiled)


class FrailService(Service):
    def _open(self) -> LocalLading:
        return FrailLading(self.home, user="tester", clock=self.clock)


class Shop:
    """A service on files, some of which have rows that kill."""

    def __init__(self, path: Path, *deadly: int) -> None:
        FrailStager.deadly, FrailStager.staged = frozenset(map(str, deadly)), 0
        self.inbox, self.lake, self.service = path / "in", path / "lake", FrailService(path / "home")
        self.inbox.mkdir()

    def put(self, number: int, rows: int = 100) -> None:
        ids = range(number * rows, (number + 1) * rows)
        (self.inbox / f"{number}.csv").write_text("id,city\n" + "".join(f"{id},essen\n" for id in ids))

    def create(self, choice: str, form: str = "csv_with_names", ending: str = "csv", more: str = "") -> None:
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{self.lake}';"
            f'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0", "on_poison_record"="{choice}"'
            f"{more}) ON STREAMING DO INSERT INTO t SELECT id, city FROM "
            f'FILE("uri"="{self.inbox}/*.{ending}", "format"="{form}"{_words(form)})'
        )

    def ids(self) -> list[int]:
        """As another reader sees them."""
        return sorted(polars.read_delta(str(self.lake))["id"].to_list())

    def errors(self) -> list[dict[str, object]]:
        return self.service.lading.sql("SHOW LOAD ERRORS FOR j")[-1].dicts()


def _words(form: str) -> str:
    return ', "column_separator"=","' if form.startswith("csv") else ', "read_json_by_line"="true"'


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path, 257)
    yield made
    made.service.close()


def test_a_row_of_a_file_goes_to_quarantine_by_its_position_and_the_rest_is_loaded(shop: Shop) -> None:
    for number in range(4):
        shop.put(number)
    shop.create("QUARANTINE")
    shop.service.run_until(shop.service.is_loaded(399))
    assert shop.ids() == [number for number in range(400) if number != 257]
    (error,) = shop.errors()
    assert (str(error["File"]).rpartition("/")[2], error["Row"], error["Raw"]) == ("2.csv", 58, "257,essen")
    assert "It ended 3 workers that read it alone" in str(error["Reason"])
    told = str(shop.service.sql("SHOW LOAD AUDIT FOR j"))
    assert "QUARANTINE" in told
    assert "2.csv, the row at byte" in told
    assert shop.service.lading.verify("j").is_clean
    named = {uri.rpartition("/")[2] for uri in DeltaTable(str(shop.lake)).file_uris()}
    assert {path.name for path in shop.lake.glob("*.parquet")} == named, "parts that were read alone are thrown away"


def test_a_job_that_pauses_names_the_row(shop: Shop) -> None:
    shop.put(2)
    shop.create("PAUSE")
    for _ in range(12):
        shop.service.turn()
        if "PAUSED" in (told := shop.service.shown()):
            break
    assert "PAUSED" in told
    assert "2.csv, the row at byte" in told
    assert shop.ids() == []
    shop.service.sql('PAUSE JOB WHERE jobname = "j"')
    shop.service.sql('ALTER JOB j PROPERTIES("on_poison_record"="QUARANTINE")')
    shop.service.sql('RESUME JOB WHERE jobname = "j"')
    shop.service.run_until(shop.service.is_loaded(99))
    assert shop.ids() == [number for number in range(200, 300) if number != 257]


def test_several_rows_of_one_file_are_found_one_after_the_other(tmp_path: Path) -> None:
    shop = Shop(tmp_path, 0, 30, 31, 99)
    shop.put(0)
    shop.create("QUARANTINE", more=', "session.enable_insert_strict"="true"')
    shop.service.run_until(shop.service.is_loaded(96))
    assert shop.ids() == [number for number in range(100) if number not in (0, 30, 31, 99)]
    assert sorted(int(str(error["Row"])) for error in shop.errors()) == [1, 31, 32, 100]
    shop.service.close()


def test_rows_of_lines_of_json(shop: Shop) -> None:
    lines = [json.dumps({"id": number, "city": "essen"}) for number in range(250, 260)]
    (shop.inbox / "a.json").write_text("\n".join(lines))
    shop.create("QUARANTINE", "json", "json")
    shop.service.run_until(shop.service.is_loaded(9))
    assert shop.ids() == [number for number in range(250, 260) if number != 257]
    (error,) = shop.errors()
    assert (error["Row"], error["Raw"]) == (8, lines[7])


def test_a_file_whose_rows_cannot_be_told_apart_goes_to_quarantine_as_a_whole(shop: Shop) -> None:
    for number in (1, 2, 3):
        shop.put(number)
        packed = shop.inbox / f"{number}.csv.gz"
        packed.write_bytes(gzip.compress((shop.inbox / f"{number}.csv").read_bytes()))
    shop.create("QUARANTINE", ending="csv.gz")
    shop.service.run_until(shop.service.is_loaded(200))
    shop.service.turn()
    assert shop.ids() == [*range(100, 200), *range(300, 400)]
    (error,) = shop.errors()
    assert (str(error["File"]).rpartition("/")[2], error["Row"], error["Raw"]) == ("2.csv.gz", 0, "")
    assert "It ended 3 workers that read it alone" in str(error["Reason"])
    assert shop.service.lading.verify("j").is_clean


def test_a_search_that_is_stopped_leaves_everything_as_it_is(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put(2)
    shop.create("QUARANTINE")
    runner = shop.service.lading.runner(shop.service._job_id())

    def stage_and_halt(self: FrailStager, plan: BatchPlan) -> Sequence[Report]:
        if FrailStager.staged == 6:
            runner.halt()
        return whole(self, plan)

    whole = FrailStager.stage
    monkeypatch.setattr(FrailStager, "stage", stage_and_halt)
    for _ in range(6):
        shop.service.turn()
    assert FrailStager.staged < 12
    assert shop.ids() == []
    shop.service.restart()
    shop.service.run_until(shop.service.is_loaded(99))
    assert shop.ids() == [number for number in range(200, 300) if number != 257]


QUOTED = ['250,"es,sen"', "251,x", '257,"a ""b"""', "258,y"]


def test_a_row_with_quotes_is_put_aside_when_it_is_one_line(shop: Shop) -> None:
    (shop.inbox / "a.csv").write_text("\n".join(["id,city", *QUOTED]) + "\n")
    shop.create("QUARANTINE")
    shop.service.run_until(shop.service.is_loaded(3))
    assert shop.ids() == [250, 251, 258]
    (error,) = shop.errors()
    assert (error["Row"], error["Raw"]) == (3, QUOTED[2])


@pytest.mark.parametrize("where", range(4))
def test_a_csv_file_with_line_ends_in_a_field_goes_as_a_whole_and_no_half_of_a_row_is_loaded(
    shop: Shop, where: int
) -> None:
    """Before the row that kills, in it, and behind it."""
    rows = [*QUOTED]
    rows[where] = f'{rows[where].partition(",")[0]},"first\n257,second\nthird"'
    (shop.inbox / "0.csv").write_text("\n".join(["id,city", *rows]) + "\n")
    shop.put(3)
    shop.create("QUARANTINE")
    shop.service.run_until(shop.service.is_loaded(100))
    shop.service.turn()
    assert shop.ids() == list(range(300, 400))
    (error,) = shop.errors()
    assert (str(error["File"]).rpartition("/")[2], error["Row"]) == ("0.csv", 0)
    assert shop.service.lading.verify("j").is_clean
