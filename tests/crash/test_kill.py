"""SIGKILL in a real process at every step, on real tables; then start again and count."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import kind_of
from tests.support.csv_worker import JOBS, CsvLoaders, create_table, open_table
from tests.tables.optional import skip_without

FILES, ROWS = 12, 50
QUICK = ("start.after=kill", "stage.after=kill:2", "bill.after=kill:3", "commit.before=kill:3", "commit.after=kill:3")
ALL = tuple(f"{name}=kill:{hit}" for name in STEP_NAMES if not name.startswith(("edit", "merge")) for hit in (1, 3))


def write_orders(inbox: Path) -> None:
    inbox.mkdir(parents=True)
    for number in range(FILES):
        lines = [f"{number * ROWS + row},Essen,{'bad' if row == 7 else '1.50'}" for row in range(ROWS)]
        (inbox / f"orders-{number:03d}.csv").write_text("\n".join(["id,city,amount", *lines]) + "\n")


@pytest.fixture(scope="module")
def loaders() -> Iterator[CsvLoaders]:
    with CsvLoaders() as made:
        yield made


def check_crash(loaders: CsvLoaders, home: Path, kind: str, failpoints: tuple[str, ...]) -> None:
    skip_without(kind_of(kind))
    write_orders(home / "inbox")
    create_table(home, kind)
    codes = [loaders.run(home, kind, failpoint) for failpoint in failpoints]
    assert loaders.run(home, kind, "") == 0
    table = open_table(home, kind)
    expected = sorted(n * ROWS + row for n in range(FILES) for row in range(ROWS) if row != 7)
    assert sorted(table.scan()["id"].to_pylist()) == expected
    head = table.read_head(JOBS[kind])
    assert head is not None
    totals = table.bills.read(JOBS[kind], head).totals
    assert (totals.rows.total, totals.rows.loaded, totals.rows.error) == (FILES * ROWS, len(expected), FILES)
    assert -signal.SIGKILL in codes


@pytest.mark.parametrize("kind", list(JOBS))
@pytest.mark.parametrize("failpoint", QUICK)
def test_a_kill_at_a_step_loses_and_doubles_nothing(
    loaders: CsvLoaders, tmp_path: Path, kind: str, failpoint: str
) -> None:
    check_crash(loaders, tmp_path, kind, (failpoint,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(JOBS))
@pytest.mark.parametrize("failpoint", ALL)
def test_a_second_kill_during_the_restart_loses_and_doubles_nothing(
    loaders: CsvLoaders, tmp_path: Path, kind: str, failpoint: str
) -> None:
    check_crash(loaders, tmp_path, kind, (failpoint, "commit.after=kill", failpoint))


def test_the_rows_are_readable_by_pyarrow_alone(loaders: CsvLoaders, tmp_path: Path) -> None:
    write_orders(tmp_path / "inbox")
    create_table(tmp_path, "delta")
    assert loaders.run(tmp_path, "delta", "") == 0
    schema = open_table(tmp_path, "delta").scan().schema
    assert schema.field("amount").type == pa.decimal128(10, 2)
