"""Compaction keeps every row, value, head and place in the order; and gives up when another writer was there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lading.model.outcome import NotLanded
from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.compaction.model import CompactionPolicy, LiveFile
from lading.tables.compaction.notes import read_notes
from lading.tables.compaction.run import compact_table
from lading.tables.orphans import find_orphans, remove_orphans
from lading.testing.clock import ManualClock
from tests.tables.compacting import EAGER, LATER, Filled, compact, filled, in_order, outcomes, plan
from tests.tables.drive import SPEC, some_rows
from tests.tables.rig import Rig
from tests.tables.test_contract_files import SCHEMA, WIDE, wide_row

COMPACTS = ("delta", "iceberg")


@pytest.fixture
def small(local_lake: Rig) -> Filled:
    """A table of six small files."""
    if not local_lake.name.startswith(COMPACTS):
        pytest.skip("Lading does not compact this format")
    return filled(local_lake)


def test_small_files_become_one_with_the_same_rows_in_the_same_order(small: Filled) -> None:
    before, version = small.read(), small.table.version()
    done = small.compact()
    assert outcomes(done) == ["compacted"]
    assert (done[0].files, done[0].rows, done[0].files_after) == (6, 18, 1)
    assert len(small.lake.files()) == 1
    assert small.read() == before
    assert [row["id"] for row in in_order(small.lake)] == list(range(18))
    assert (small.table.version() or 0) > (version or 0)


def test_the_head_stays_and_a_load_that_was_prepared_before_lands_behind(small: Filled) -> None:
    head = small.table.read_head(small.job.job_id)
    other = small.rig.reopen(small.name)
    assert outcomes(compact(other)) == ["compacted"]  # type: ignore[arg-type]
    assert small.table.read_head(small.job.job_id) == head
    small.add_numbers(1)
    assert [row["id"] for row in in_order(small.lake)] == list(range(21))


def test_compacting_again_keeps_the_order(small: Filled) -> None:
    small.compact()
    small.add_numbers(4)
    small.compact()
    small.add_numbers(2)
    assert [row["id"] for row in in_order(small.lake)] == list(range(36))
    assert len(small.lake.files()) == 3


def test_every_value_survives(local_lake: Rig) -> None:
    if not local_lake.name.startswith(COMPACTS):
        pytest.skip("Lading does not compact this format")
    made = filled(local_lake, batches=0, spec=WIDE)
    odd = [
        wide_row(1, amount=float("nan"), name=None),
        wide_row(2, amount=-0.0, name="", raw=b""),
        wide_row(3, amount=float("inf"), name="\U0010ffff" * 40),
        wide_row(4, day=date(1, 1, 1), at=datetime(1582, 10, 4, tzinfo=UTC)),
        wide_row(5, **dict.fromkeys(("small", "amount", "price", "day", "at", "flag", "raw"))),
        wide_row(6, price=Decimal("-999999999.999"), at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ]
    for row in odd:
        made.add(pa.Table.from_pylist([row], schema=SCHEMA))
    before = in_order(made.lake)
    assert set(outcomes(made.compact())) == {"compacted"}
    assert str(in_order(made.lake)) == str(before)
    assert len(made.lake.files()) < len(odd)


def test_partitions_are_compacted_each_for_itself(local_lake: Rig) -> None:
    if not local_lake.name.startswith(COMPACTS):
        pytest.skip("Lading does not compact this format")
    spec = TableSpec(
        columns=(Column(name="id", type="bigint"), Column(name="day", type="date")),
        partition_by=(PartitionField(column="day"),),
    )
    made = filled(local_lake, batches=0, spec=spec)
    days = [date(2026, 1, 1), date(2026, 1, 2), None]
    for number in range(4):
        rows = [{"id": 10 * number + at, "day": day} for at, day in enumerate(days)]
        made.add(pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("day", pa.date32())])))
    before = made.read()
    assert outcomes(made.compact()) == ["compacted"] * 3
    assert made.read() == before
    partitions = {file.partition for file in made.lake.live_files().files}
    assert (len(partitions), len(made.lake.files())) == (3, 3)


def test_a_file_that_another_writer_took_out_ends_the_compaction(small: Filled) -> None:
    groups = plan(small.lake)
    small.rig.others_maintain(small.name)  # Its own compaction, and then a vacuum.
    before, files = small.read(), set(small.lake.files())
    done = list(compact_table(small.lake, groups, EAGER, ManualClock(LATER)))
    assert outcomes(done) == ["given up"]
    assert (small.read(), set(small.lake.files())) == (before, files)
    assert not read_notes(small.lake.bills.storage)


def test_two_compactions_of_one_table_do_not_double_rows(small: Filled) -> None:
    """Two services chose the same files."""
    groups = plan(small.lake)
    other = small.rig.reopen(small.name)
    first = list(compact_table(small.lake, groups, EAGER, ManualClock(LATER)))
    second = list(compact_table(other, groups, EAGER, ManualClock(LATER)))  # type: ignore[arg-type]
    assert (outcomes(first), outcomes(second)) == (["compacted"], ["given up"])
    assert [row["id"] for row in in_order(small.lake)] == list(range(18))


def test_what_was_copied_and_not_committed_is_an_orphan(small: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill between the copy and the commit."""
    monkeypatch.setattr(type(small.table), "discard", lambda self, staged: None)
    monkeypatch.setattr(type(small.table), "replace_files", lambda *args: NotLanded(why="killed"))
    assert outcomes(small.compact()) == ["given up"]
    monkeypatch.undo()
    old = datetime.now(UTC) + timedelta(hours=1)
    orphans = [orphan.path for orphan in find_orphans(small.lake, older_than=old) if orphan.what == "data file"]
    assert len(orphans) == 1
    assert "compact-" in orphans[0]


def hooked(made: Filled, monkeypatch: pytest.MonkeyPatch, hook: Callable[[], None]) -> None:
    """Something happens after the compaction looked at its files for the last time before the commit."""
    replace_files = type(made.table).replace_files  # type: ignore[attr-defined]

    def stopped(*given: Any) -> Any:
        hook()
        return replace_files(*given)

    monkeypatch.setattr(type(made.table), "replace_files", stopped)


def cleaned(made: Filled, age: timedelta) -> list[str]:
    """Another service cleans, so long after what was written now."""
    found = find_orphans(made.lake, older_than=datetime.now(UTC) + age)
    remove_orphans(made.lake, found)
    return [orphan.path for orphan in found if orphan.what == "data file"]


def test_a_compaction_that_was_stopped_before_its_commit_keeps_its_files(
    small: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small.read()
    hooked(small, monkeypatch, lambda: assert_equal(cleaned(small, timedelta(hours=23)), []))
    assert outcomes(small.compact()) == ["compacted"]
    assert small.read() == before


def test_a_compaction_that_slept_for_days_is_given_up(small: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    before, files, gone, clock = small.read(), set(small.lake.files()), list[str](), ManualClock(LATER)
    hooked(small, monkeypatch, lambda: gone.extend(cleaned(small, timedelta(days=2))))
    done = list(compact_table(small.lake, plan(small.lake), EAGER, clock))
    assert (outcomes(done), len(gone)) == (["given up"], 1)
    assert "is gone" in done[0].remark
    hooked(small, monkeypatch, lambda: clock.suspend(3600))
    done = list(compact_table(small.lake, plan(small.lake), EAGER, clock))
    assert (outcomes(done), done[0].remark) == (["given up"], "it took longer than 0:30:00")
    assert (small.read(), set(small.lake.files())) == (before, files)


def assert_equal(found: object, expected: object) -> None:
    assert found == expected


def test_replaced_files_stay_while_the_history_names_them(small: Filled) -> None:
    """Time travel: the version before the compaction is still there."""
    name = small.lake.snapshot_name()
    before = set(small.lake.files())
    small.compact()
    old = datetime.now(UTC) + timedelta(hours=1)
    assert not [orphan for orphan in find_orphans(small.lake, older_than=old) if orphan.what == "data file"]
    there = small.lake.snapshot_named(name)
    assert there is not None
    assert set(there.files) == before


def test_strangers_files_are_left_alone(small: Filled) -> None:
    small.rig.append_unrelated(small.name, some_rows(100, 3))
    strangers = set(small.lake.files()) - {file.path for bill in small.bills for file in bill.files}
    small.compact()
    assert strangers < set(small.lake.files())
    assert len(small.lake.files()) == 2


def test_the_history_tells_of_a_compaction(small: Filled) -> None:
    small.compact()
    paths = {file.path for bill in small.bills for file in bill.files}
    removals = small.lake.removals(paths)
    assert removals.found.keys() == paths
    assert all(removal.is_rewrite for removal in removals.found.values())
    assert all(removal.by.startswith("compaction by Lading") for removal in removals.found.values())


def test_files_of_another_form_are_not_mixed(local_lake: Rig) -> None:
    """A column was added by somebody: files from before it stay without it."""
    if not local_lake.name.startswith(COMPACTS):
        pytest.skip("Lading does not compact this format")
    made = filled(local_lake, batches=4)
    add_column(made)
    made.table = local_lake.reopen(made.name)
    for number in range(12, 20):
        rows = some_rows(number, 1).append_column("more", pa.array([number], pa.int64()))
        made.add(rows)
    before = made.read()
    assert outcomes(made.compact()) == ["compacted", "compacted"]
    assert made.read() == before
    assert len(made.lake.files()) == 2


def add_column(made: Filled) -> None:
    stranger = made.rig.stranger(made.name)  # type: ignore[attr-defined]
    if made.rig.name.startswith("delta"):
        import deltalake

        stranger.alter.add_columns([deltalake.Field("more", deltalake.schema.PrimitiveType("long"))])
    else:
        from pyiceberg.types import LongType

        with stranger.update_schema() as update:
            update.add_column("more", LongType())


def live(number: int, **changes: Any) -> LiveFile:
    made = LiveFile(
        path=f"f{number}",
        partition="",
        line="",
        order=(number, 0),
        rows=1,
        size_bytes=1_000,
        written_at=datetime(2026, 1, 1, tzinfo=UTC),
        is_ours=True,
    )
    return replace(made, **changes)


def test_paimon_says_no_by_name(local_lake: Rig) -> None:
    if not local_lake.name.startswith("paimon"):
        pytest.skip("it compacts")
    made = filled(local_lake, batches=2, spec=SPEC)
    found = made.lake.live_files()
    assert "Paimon" in found.why_not
    assert len(found.files) == 2
    assert all(file.size_bytes > 0 for file in found.files)


def test_policy_is_what_it_says() -> None:
    assert CompactionPolicy().small_bytes < CompactionPolicy().target_bytes
