"""ADMIN CLEAN ORPHANS and `lading clean`: what killed batches left goes, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

from lading import failpoints
from lading.cli.main import app
from lading.errors import ConfigError, DeniedError, TableNotFoundError
from lading.ids import new_token
from lading.model.batch import StagedFile
from lading.service.scheduling.cleaner import CleaningRounds
from lading.service.statements import clean
from lading.storage.store import ObjectStore
from lading.tables.orphans import storage_now
from lading.tables.registry import NAMES, kind_of
from tests.console.local import LocalLading, PastClock
from tests.service.conftest import Desk
from tests.tables.optional import skip_without

KIND, PATH, REMARK = 1, 2, 4
WEEK_S = 7 * 86400.0


class Killed(BaseException):
    """The process ends here."""


class LocalDesk(Desk):
    """Without Spark."""

    clock = PastClock()

    def _open(self) -> LocalLading:
        return LocalLading(self.path / "home", user="tester", clock=self.clock)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    LocalDesk.clock.behind = timedelta(0)
    made = LocalDesk(tmp_path)
    yield made
    failpoints.disarm_all()
    made.lading.close()


def killed_batch(desk: Desk, where: str = "commit.before") -> None:
    """A batch that is killed before its commit, and everything that it left is a week old."""
    failpoints.arm(where, _kill)
    with pytest.raises(Killed):
        desk.run()
    failpoints.disarm_all()
    desk.restart()
    age_all(desk)


def _kill(_name: str) -> None:
    raise Killed


def age_all(desk: Desk) -> None:
    for path in (desk.path / "home").rglob("*"):
        if path.is_file() and ("warehouse" in path.parts or "quarantine" in path.parts):
            os.utime(path, (time.time() - WEEK_S,) * 2)


@pytest.mark.parametrize("form", NAMES)
def test_what_a_killed_batch_left_is_shown_and_then_removed(desk: Desk, form: str) -> None:
    skip_without(kind_of(form))
    desk.table(form=form)
    LocalDesk.clock.behind = timedelta(days=8)
    desk.create(properties='"session.insert_max_filter_ratio" = "0.5", "session.enable_insert_strict" = "false"')
    desk.put("a.csv", ["1,essen,1.50", "no number,essen,1.50", "2,essen,1.50"])
    LocalDesk.clock.behind = timedelta(0)
    killed_batch(desk)
    # Whether it landed is found out when the job goes on: until then everything stays.
    assert desk.sql("ADMIN CLEAN ORPHANS DRY RUN") == []
    killed_batch(desk, "bill.before")
    desk.run()
    age_all(desk)
    assert desk.ids() == [1, 2]
    shown = desk.sql("ADMIN CLEAN ORPHANS FROM shop.orders OLDER THAN 2 DAYS DRY RUN")
    assert {"data file", "bad rows"} <= {str(row[KIND]) for row in shown}
    assert desk.sql("ADMIN CLEAN ORPHANS") == shown
    assert desk.sql("ADMIN CLEAN ORPHANS") == []
    assert desk.ids() == [1, 2]
    assert desk.lading.verify("j").is_clean
    assert [row[0] for row in desk.sql("SHOW LOAD ERRORS FOR j")], "the bad row of the batch that was committed"


def test_young_files_and_those_of_a_running_batch_stay(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    seen: list[list[tuple[object, ...]]] = []

    def look(_name: str) -> None:
        age_all(desk)  # The batch runs for a week.
        seen.append(desk.sql("ADMIN CLEAN ORPHANS"))

    failpoints.arm("commit.before", look)
    desk.run()
    assert seen == [[]]
    assert desk.ids() == [0, 1, 2]


def test_a_batch_of_a_service_whose_clock_is_ahead_keeps_its_files(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    LocalDesk.clock.behind = timedelta(days=-5)
    seen: list[list[tuple[object, ...]]] = []

    def look(_name: str) -> None:
        LocalDesk.clock.behind = timedelta(0)  # The one who cleans has the right time.
        age_all(desk)
        for path in (desk.path / "home" / "warehouse").rglob("*.parquet"):  # They were written after the last commit.
            os.utime(path, (time.time() - WEEK_S + 3600,) * 2)
        seen.append(desk.sql("ADMIN CLEAN ORPHANS"))

    failpoints.arm("stage.after", look)
    desk.run()
    assert seen == [[]]
    assert desk.ids() == [0, 1, 2]


def with_orphan(desk: Desk) -> Path:
    """A table with rows and an old file that a batch left which was killed before its bill."""
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    killed_batch(desk, "bill.before")
    desk.run()
    age_all(desk)
    (row,) = desk.sql("ADMIN CLEAN ORPHANS DRY RUN")
    return desk.path / "home" / "warehouse" / "shop" / "orders" / str(row[PATH])


def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    folder = with_orphan(desk).parent / "_lading"
    before = folder.stat().st_mtime_ns
    assert len(desk.sql("ADMIN CLEAN ORPHANS DRY RUN")) == 1
    assert folder.stat().st_mtime_ns == before


def test_a_file_that_gets_a_bill_while_orphans_are_looked_for_stays(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that took longer than the limit, of a service with another store."""
    file = with_orphan(desk)
    lake = desk.lading.catalog.open_table("shop", "orders")
    (job_id,) = lake.job_ids()
    head = lake.read_head(job_id)
    assert head is not None
    staged = StagedFile(path=file.name, rows=3, size_bytes=file.stat().st_size)
    last = lake.bills.read(job_id, head)
    bill = replace(last, seq=head.seq + 1, token=new_token(), replaces=head, continues=head, files=(staged,))
    ask = storage_now

    def write_bill(storage: ObjectStore) -> datetime:
        lake.bills.put(bill)
        return ask(storage)

    monkeypatch.setattr(clean, "storage_now", write_bill)
    assert desk.sql("ADMIN CLEAN ORPHANS") == []
    assert file.exists()


def test_it_says_why_a_table_was_not_looked_at(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    (desk.path / "home" / "warehouse" / "shop" / "orders" / "_delta_log" / "00000000000000000001.json").unlink()
    row = desk.sql("ADMIN CLEAN ORPHANS")[0]
    assert row[KIND] is None
    assert row[REMARK]
    assert desk.lading.catalog.entry("shop", "orders")


def test_wrong_words_are_refused(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="at least an hour old"):
        desk.sql("ADMIN CLEAN ORPHANS OLDER THAN 0 HOURS")
    with pytest.raises(TableNotFoundError):
        desk.sql("ADMIN CLEAN ORPHANS FROM shop.nothing")


def test_only_admins_may(desk: Desk) -> None:
    desk.table()
    desk.sql("CREATE USER jack; GRANT LOAD, SELECT ON shop TO jack; CREATE USER anna; GRANT ADMIN ON shop TO anna")
    with pytest.raises(DeniedError):
        desk.lading.session("jack").sql("ADMIN CLEAN ORPHANS FROM shop.orders")
    with pytest.raises(DeniedError):
        desk.lading.session("anna").sql("ADMIN CLEAN ORPHANS")
    assert desk.lading.session("anna").sql("ADMIN CLEAN ORPHANS FROM shop.orders")[0].rows == ()


def test_a_service_does_it_by_itself(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    killed_batch(desk)
    desk.run()
    age_all(desk)
    left = [str(row[PATH]) for row in desk.sql("ADMIN CLEAN ORPHANS DRY RUN")]
    assert left
    rounds = CleaningRounds(desk.lading, first_s=0)
    rounds.start()
    until = time.monotonic() + 60
    while desk.sql("ADMIN CLEAN ORPHANS DRY RUN") and time.monotonic() < until:
        time.sleep(0.01)
    rounds.close()
    table = desk.path / "home" / "warehouse" / "shop" / "orders"
    assert not [path for path in left if (table / path).exists()]
    assert desk.ids() == [0, 1, 2]


def test_the_command_tells_and_removes(desk: Desk) -> None:
    desk.table()
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    killed_batch(desk)
    desk.run()
    age_all(desk)
    desk.lading.close()
    home = ["--home", str(desk.path / "home")]
    dry = CliRunner().invoke(app, ["clean", "--dry-run", *home])
    assert dry.exit_code == 0, dry.output
    assert "shop.orders: data file " in dry.output
    assert "would be removed" in dry.output
    done = CliRunner().invoke(app, ["clean", "shop.orders", "--older-than", "12 hours", *home])
    assert "were removed" in done.output
    again = CliRunner().invoke(app, ["clean", *home])
    assert again.output.startswith("0 files")
    desk.restart_empty()
    assert desk.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    "words", [["shop.orders` ; DROP TABLE shop.orders; --"], ["--older-than", "3 DAYS; DROP TABLE shop.orders"]]
)
def test_the_command_runs_nothing_but_itself(desk: Desk, words: list[str]) -> None:
    desk.table()
    desk.lading.close()
    done = CliRunner().invoke(app, ["clean", *words, "--home", str(desk.path / "home")])
    assert done.exit_code != 0
    desk.restart_empty()
    assert [row[0] for row in desk.sql("SHOW TABLES FROM shop")] == ["orders"]


def test_bad_rows_of_commits_stay_when_the_home_has_another_name(desk: Desk) -> None:
    desk.table()
    LocalDesk.clock.behind = timedelta(days=8)
    desk.create(properties='"session.insert_max_filter_ratio" = "0.9", "session.enable_insert_strict" = "false"')
    desk.put("a.csv", ["1,essen,1.50", "no number,essen,1.50"])
    desk.run()
    LocalDesk.clock.behind = timedelta(0)
    desk.lading.close()
    (desk.path / "home").rename(desk.path / "moved")
    (desk.path / "home").symlink_to(desk.path / "moved")
    desk.restart_empty()
    age_all(desk)
    kept = list((desk.path / "moved" / "quarantine").rglob("*.jsonl"))
    assert kept
    desk.sql("ADMIN CLEAN ORPHANS")
    assert all(path.exists() for path in kept)


def test_files_that_only_another_catalog_names_stay(desk: Desk) -> None:
    """The catalog `dev` branched off, loaded a file under a name of Lading's, and has a lower number than ours now."""
    desk.table(form="iceberg")
    desk.create()
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    place = desk.path / "home" / "warehouse" / "shop" / "orders"
    dev = SqlCatalog("dev", uri=f"sqlite:///{desk.path}/dev.db", warehouse=f"file://{desk.path}/lake")
    dev.create_namespace("shop")
    theirs = dev.register_table("shop.orders", f"file://{max(place.glob('metadata/*.metadata.json'))}")
    file = place / "data" / "0123456789abcdef-0-0-0123456789abcdef.parquet"
    fields = [field.remove_metadata() for field in theirs.schema().as_arrow()]
    pq.write_table(pa.Table.from_pylist([{"id": 77}], schema=pa.schema(fields)), file)
    theirs.add_files([f"file://{file}"])
    for number in range(3):
        desk.put_orders(f"b{number}.csv", 10 + number, 1)
        desk.run()
    age_all(desk)
    assert desk.sql("ADMIN CLEAN ORPHANS FROM shop.orders") == []
    assert sorted(dev.load_table("shop.orders").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 77]
    assert desk.ids() == [0, 1, 2, 10, 11, 12]
