"""A table that somebody put back: what it took is shown, and an operator says how the job goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lading.errors import CommitRefusedError, JobStateError, LadingError
from lading.tables.iceberg.table import IcebergTable
from lading.tables.paimon.table import PaimonTable
from lading.tables.registry import NAMES, kind_of
from tests.console.local import LocalLading
from tests.service.conftest import Desk
from tests.tables.drive import new_job, opening, put_and_commit
from tests.tables.optional import skip_without

LOOK = "SHOW ROLLBACK OF JOB j"
KEEP = "ACCEPT ROLLBACK OF JOB j KEEP POSITION COMMENT 'the load was wrong'"
AGAIN = "ACCEPT ROLLBACK OF JOB j LOAD AGAIN"


class LocalDesk(Desk):
    """Without Spark: rows are read, mapped and written in this process."""

    def _open(self) -> LocalLading:
        return LocalLading(self.path / "home", user="tester")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


def put_back(desk: Desk, form: str, versions: int = 1) -> None:
    """Somebody else's RESTORE, or rollback of the current snapshot."""
    if form == "delta":
        table = deltalake.DeltaTable(f"{desk.path}/home/warehouse/shop/orders")
        table.restore(table.version() - versions)
        return
    if form == "paimon":
        put_back_paimon(desk, versions)
        return
    with theirs(desk) as other:
        history = [entry.snapshot_id for entry in other.history()]
        other.manage_snapshots().set_current_snapshot(history[-1 - versions]).commit()


@contextmanager
def theirs(desk: Desk) -> Iterator[Table]:
    """The Iceberg table, as somebody else finds it in the catalog."""
    ours = desk.lading.catalog.open_table("shop", "orders")
    assert isinstance(ours, IcebergTable)
    catalog = load_catalog(ours.handle.catalog.name, **ours.handle.catalog.properties)
    yield catalog.load_table("shop.orders")
    catalog.close()


def write_and_expire(desk: Desk) -> None:
    """Somebody else's INSERT, then the expiry of every older snapshot, with the files that only they had."""
    with theirs(desk) as table:
        row = [{"id": 50, "city": "theirs", "amount": None}]
        table.append(pa.Table.from_pylist(row, schema=table.schema().as_arrow()))
        old = [each.snapshot_id for each in table.snapshots() if each != table.current_snapshot()]
        table.maintenance.expire_snapshots().by_ids(old).commit()
        kept = {Path(str(path)).name for path in table.inspect.files()["file_path"].to_pylist()}
    for path in (desk.path / "home" / "warehouse" / "shop" / "orders" / "data").rglob("*.parquet"):
        if path.name not in kept:
            path.unlink()


def put_back_paimon(desk: Desk, versions: int) -> None:
    from pypaimon.table.file_store_table import FileStoreTable

    table = FileStoreTable.from_path(f"{desk.path}/home/warehouse/shop/orders")
    table.rollback_to(table.snapshot_manager().get_latest_snapshot().id - versions)


@pytest.fixture(params=NAMES)
def form(request: pytest.FixtureRequest) -> str:
    skip_without(kind_of(str(request.param)))
    return str(request.param)


def loaded(desk: Desk, form: str) -> None:
    desk.table(form=form)
    if form == "paimon":  # A table without a snapshot cannot be put back to before its first one.
        ours = desk.lading.catalog.open_table("shop", "orders")
        put_and_commit(cast("PaimonTable", ours), opening(new_job()))
    if form == "iceberg":
        ours = desk.lading.catalog.open_table("shop", "orders")
        assert isinstance(ours, IcebergTable)
        ours.handle.load().append(ours.handle.load().schema().as_arrow().empty_table())
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    desk.put_orders("b.csv", 10, 2)
    desk.run()
    assert desk.ids() == [0, 1, 2, 10, 11]


def stopped(desk: Desk, form: str, versions: int = 1) -> None:
    loaded(desk, form)
    put_back(desk, form, versions)
    desk.put_orders("c.csv", 20, 1)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "ACCEPT ROLLBACK" in desk.show("ErrorMsg")


def go_on(desk: Desk) -> list[int]:
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    return desk.ids()


def test_it_is_shown_what_was_taken_away(desk: Desk, form: str) -> None:
    stopped(desk, form)
    name, table, committed, _, ends, _, commits, rows, kept, back, remark = desk.sql(LOOK)[0]
    assert (name, table, commits, rows, remark) == ("j", "shop.orders", 1, 2, "")
    assert int(str(committed)) == int(str(ends)) + 1
    assert json.loads(str(kept))["fileName"].endswith("b.csv")
    assert json.loads(str(back))["fileName"].endswith("a.csv")


def test_the_position_is_kept_and_what_was_taken_stays_away(desk: Desk, form: str) -> None:
    stopped(desk, form)
    desk.sql(KEEP)
    assert desk.show("Status") == "PAUSED"
    assert "User tester accepted the rollback" in desk.show("ErrorMsg")
    assert go_on(desk) == [0, 1, 2, 20]
    assert desk.lading.verify("j").is_clean
    assert desk.lading.verify("j").rows == 4
    action, facts = next((row[2], row[4]) for row in desk.sql("SHOW LOAD AUDIT FOR j") if row[2] == "ACCEPT ROLLBACK")
    assert action == "ACCEPT ROLLBACK"
    assert json.loads(str(facts))["why"] == "the load was wrong"


def test_what_was_taken_is_loaded_again(desk: Desk, form: str) -> None:
    stopped(desk, form)
    desk.sql(AGAIN)
    assert go_on(desk) == [0, 1, 2, 10, 11, 20]
    assert desk.lading.verify("j").is_clean
    with pytest.raises(JobStateError, match="was not rolled back behind job j"):
        desk.sql(LOOK)


@pytest.mark.parametrize(("way", "ids"), [("KEEP POSITION", [0, 1, 2, 20]), ("LOAD AGAIN", [0, 1, 2, 10, 11, 20])])
def test_alter_job_accepts_it_too(desk: Desk, way: str, ids: list[int]) -> None:
    stopped(desk, "delta")
    desk.sql(f"ALTER JOB j ACCEPT ROLLBACK {way} COMMENT 'said so'")
    assert desk.show("Status") == "PAUSED"
    assert go_on(desk) == ids
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize(("way", "ids"), [("KEEP POSITION", [0, 1, 2, 20]), ("LOAD AGAIN", [0, 1, 2, 10, 11, 20])])
def test_the_snapshot_of_its_newest_commit_has_expired_since(desk: Desk, way: str, ids: list[int]) -> None:
    """Neither that snapshot nor its files are there any more, and others have gone on."""
    loaded(desk, "iceberg")
    put_back(desk, "iceberg")
    write_and_expire(desk)
    desk.put_orders("c.csv", 20, 1)
    desk.restart()
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("PAUSED", [0, 1, 2, 50])
    assert "ACCEPT ROLLBACK" in desk.show("ErrorMsg")
    assert desk.sql(LOOK)[0][6:8] == (1, 2)
    desk.sql(f"ALTER JOB j ACCEPT ROLLBACK {way}")
    assert go_on(desk) == [*ids, 50]
    assert desk.lading.verify("j").is_clean


def test_the_whole_job_was_taken_away(desk: Desk, form: str) -> None:
    """To before its opening commit."""
    stopped(desk, form, versions=3)
    assert "begins where the job began" in str(desk.sql(LOOK)[0][-1])
    desk.sql(AGAIN)
    assert go_on(desk) == [0, 1, 2, 10, 11, 20]
    assert desk.lading.verify("j").is_clean


def test_a_second_rollback_needs_a_second_word(desk: Desk, form: str) -> None:
    stopped(desk, form)
    desk.sql(AGAIN)
    put_back(desk, form, 1)
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert desk.show("Status") == "PAUSED"
    desk.sql(AGAIN)
    assert go_on(desk) == [0, 1, 2, 10, 11, 20]


@pytest.mark.parametrize("form", ["delta", "iceberg"])  # A rollback of Paimon deletes what it goes back behind.
def test_rows_that_came_back_are_not_loaded_twice(desk: Desk, form: str) -> None:
    """The first rollback was a mistake that was accepted; the second one undoes it."""
    stopped(desk, form)
    desk.sql(AGAIN)
    put_back(desk, form, 2)
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("PAUSED", [0, 1, 2, 10, 11])
    assert "only LOAD AGAIN loads none of them twice" in str(desk.sql(LOOK)[0][-1])
    with pytest.raises(CommitRefusedError, match="an earlier rollback had taken away"):
        desk.sql(KEEP)
    desk.sql(AGAIN)
    assert go_on(desk) == [0, 1, 2, 10, 11, 20]
    assert desk.lading.verify("j").is_clean


def test_nothing_is_accepted_of_a_job_that_runs_or_was_not_put_back(desk: Desk) -> None:
    loaded(desk, "delta")
    with pytest.raises(JobStateError, match="PAUSE it first"):
        desk.sql(KEEP)
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(JobStateError, match="was not rolled back"):
        desk.sql(KEEP)
    for wrong in ("ACCEPT ROLLBACK OF JOB j", "ACCEPT ROLLBACK OF JOB j KEEP", "SHOW ROLLBACK", f"{LOOK} KEEP"):
        with pytest.raises(LadingError):
            desk.sql(wrong)
    put_back(desk, "delta")
    desk.sql(KEEP)
    assert go_on(desk) == [0, 1, 2]


def test_a_copy_of_an_old_folder_is_a_rollback_too(desk: Desk) -> None:
    """Heads and bills went back as well; only the record of the job remembers."""
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    folder = desk.path / "home" / "warehouse" / "shop" / "orders"
    copy = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    desk.put_orders("b.csv", 10, 2)
    desk.run()
    for path in folder.rglob("*"):
        if path.is_file() and path not in copy:
            path.unlink()
    for path, content in copy.items():
        path.write_bytes(content)
    desk.restart()
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "only LOAD AGAIN" in str(desk.sql(LOOK)[0][-1])
    with pytest.raises(JobStateError, match="KEEP POSITION is not possible"):
        desk.sql(KEEP)
    desk.sql(AGAIN)
    assert go_on(desk) == [0, 1, 2, 10, 11]
    assert desk.lading.verify("j").is_clean


def test_a_table_that_was_made_again_leads_to_a_new_job(desk: Desk) -> None:
    """With its folder went the bills: neither way is left, and neither is named."""
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    folder = desk.path / "home" / "warehouse" / "shop" / "orders"
    there = deltalake.DeltaTable(folder)
    schema, none = there.schema(), there.to_pyarrow_table().slice(0, 0)
    shutil.rmtree(folder)
    deltalake.write_deltalake(folder, none, name="again")
    assert deltalake.DeltaTable(folder).schema() == schema
    desk.put_orders("b.csv", 10, 2)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    told = "Restore the table with its folder _lading, or DROP the job and CREATE it again."
    assert str(desk.sql(LOOK)[0][-1]).endswith(f"as one that was made again. {told}")
    for way in (KEEP, AGAIN):
        with pytest.raises(JobStateError, match="is not possible") as caught:
            desk.sql(way)
        assert caught.value.todo == told
    desk.sql("DROP JOB WHERE jobName = 'j'")
    desk.create()
    desk.run()
    assert desk.ids() == [0, 1, 2, 10, 11]
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize("choice", ["keep", "again"])
def test_a_death_after_the_commit_leaves_a_job_that_can_be_resumed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    stopped(desk, "delta")

    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("lading.service.edits.rollbacks.apply", dies)
        with pytest.raises(KeyboardInterrupt):
            desk.sql(KEEP if choice == "keep" else AGAIN)
    desk.restart()
    assert go_on(desk) == ([0, 1, 2, 20] if choice == "keep" else [0, 1, 2, 10, 11, 20])
    assert desk.lading.verify("j").is_clean


@pytest.mark.parametrize("lost", [1, 3])
def test_a_database_that_is_restored_from_an_old_copy_sets_store_and_catalog_back_and_no_row_is_twice(
    desk: Desk, lost: int
) -> None:
    """The store remembers no newer head then; the bills beside the table do."""
    loaded(desk, "iceberg")
    desk.lading.close()
    home, copy = desk.path / "home", desk.path / "copy"
    copy.mkdir()
    for file in home.glob("*.db"):
        shutil.copy(file, copy)
    desk.restart()
    for number in range(lost):
        desk.put_orders(f"d{number}.csv", 30 + number, 1)
        desk.run()
    desk.lading.close()
    for file in home.glob("*.db*"):
        file.unlink()
    for file in copy.iterdir():
        shutil.copy(file, home)
    desk.restart()
    desk.run()
    if lost > 1:
        assert desk.ids() == [0, 1, 2, 10, 11]
        assert "The table was rolled back" in desk.show("ErrorMsg")
        desk.sql(AGAIN)
        go_on(desk)
    # One commit alone nobody can tell from one that never landed: it is loaded again by itself, and its rows are gone.
    assert desk.ids() == [0, 1, 2, 10, 11, *range(30, 30 + lost)]
    assert desk.lading.verify("j").is_clean
