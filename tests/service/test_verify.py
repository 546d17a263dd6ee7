"""`verify` tells what others removed from what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from lading.tables.iceberg.table import IcebergTable
from tests.service.test_rollbacks import LocalDesk

STRANGE = pa.table({"id": pa.array(range(100, 120), pa.int64()), "city": pa.array(["ulm"] * 20)})


class Bench:
    """A table that a job and others write to."""

    def __init__(self, path: Path, form: str) -> None:
        self.desk, self.form = LocalDesk(path), form
        self.desk.sql(f"CREATE TABLE orders (id BIGINT, city VARCHAR(10)) USING {form}")
        self.desk.put("a.csv", ["1,essen", "2,ulm"], header="id,city")
        self.desk.put("b.csv", ["3,ulm"], header="id,city")
        self.desk.create(properties="'s3.max_batch_files'='1'")
        self.desk.run()
        self.others_append()

    def delta(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(f"{self.desk.path}/home/warehouse/shop/orders")

    def iceberg(self) -> Table:
        ours = self.desk.lading.catalog.open_table("shop", "orders")
        assert isinstance(ours, IcebergTable)
        return load_catalog(ours.handle.catalog.name, **ours.handle.catalog.properties).load_table("shop.orders")

    def others_append(self) -> None:
        if self.form == "delta":
            deltalake.write_deltalake(self.delta(), STRANGE, mode="append")
        else:
            self.iceberg().append(STRANGE)

    def others_delete(self, rows: str) -> None:
        if self.form == "delta":
            self.delta().delete(rows)
        else:
            self.iceberg().delete(rows)

    def ours(self) -> str:
        """A file of the job that the table names."""
        table = self.desk.lading.catalog.open_table("shop", "orders")
        record = self.desk.lading.store.list_jobs()[0].record
        head = table.read_head(record.job_id)
        assert head is not None
        return table.bills.read(record.job_id, head).files[0].path

    def told(self) -> str:
        verdict = self.desk.lading.verify("j")
        assert verdict.is_clean, verdict.findings
        return verdict.told


@pytest.fixture(params=["delta", "iceberg"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, str(request.param))
    yield made
    made.desk.lading.close()


def test_clean_is_clean(bench: Bench) -> None:
    assert bench.told() == "clean"


def test_an_honest_delete_is_no_loss(bench: Bench) -> None:
    bench.others_delete("id = 3")
    told = bench.told()
    assert "nothing lost by Lading; others removed 1 rows (" in told
    assert "delete in" in told.lower()


def test_all_rows_of_a_job_are_gone_from_a_shared_table(bench: Bench) -> None:
    """There are more rows in the table than the job ever loaded: their number proves nothing."""
    bench.others_delete("id < 100")
    assert "others removed 3 rows (" in bench.told()
    assert bench.desk.lading.catalog.open_table("shop", "orders").scan().num_rows == 20


def test_an_overwrite_is_no_loss(bench: Bench) -> None:
    if bench.form == "delta":
        deltalake.write_deltalake(bench.delta(), STRANGE, mode="overwrite")
    else:
        bench.iceberg().overwrite(STRANGE)
    assert "others removed 3 rows (" in bench.told()


def test_a_rewrite_is_no_loss(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "delta")
    bench.delta().optimize.compact()
    assert "others rewrote 3 rows (OPTIMIZE in version" in bench.told()
    bench.desk.lading.close()


def test_what_nobody_removed_is_lost(tmp_path: Path) -> None:
    """A log that never had a file of the bills."""
    bench = Bench(tmp_path, "delta")
    log = tmp_path / "home" / "warehouse" / "shop" / "orders" / "_delta_log"
    for entry in sorted(log.glob("*.json")):
        lines = entry.read_text().splitlines()
        kept = [line for line in lines if not ('"add"' in line and '"numRecords":1' in line.replace("\\", ""))]
        entry.write_text("\n".join(kept) + "\n")
    bench.desk.restart()
    (finding,) = bench.desk.lading.verify("j").findings
    assert finding.startswith("LOSS: 1 files with 1 rows")
    bench.desk.lading.close()


def test_history_that_is_not_kept_is_said(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "delta")
    bench.others_delete("id = 3")
    table = bench.delta()
    table.create_checkpoint()
    log = tmp_path / "home" / "warehouse" / "shop" / "orders" / "_delta_log"
    for entry in log.glob("*.json"):
        entry.unlink()
    bench.desk.restart()
    assert bench.told().startswith("cannot be told of 1 rows: their files are gone")
    bench.desk.lading.close()


def test_what_came_after_the_oldest_kept_history_is_lost_and_not_untold(tmp_path: Path) -> None:
    """Every table that is older than its log would otherwise be told clean, whatever it lost yesterday."""
    bench = Bench(tmp_path, "delta")
    bench.delta().create_checkpoint()
    log = tmp_path / "home" / "warehouse" / "shop" / "orders" / "_delta_log"
    for entry in log.glob("*.json"):
        entry.unlink()
    bench.desk.put("c.csv", ["4,bonn"], header="id,city")
    bench.desk.run()
    newest = max(log.glob("*.json"))
    lines = [line for line in newest.read_text().splitlines() if not line.startswith('{"add"')]
    newest.write_text("\n".join(lines))
    bench.desk.restart()
    (finding,) = bench.desk.lading.verify("j").findings
    assert finding.startswith("LOSS: 1 files with 1 rows")
    bench.desk.lading.close()


def test_an_honest_rewrite_whose_history_expired_is_no_loss(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "iceberg")
    table = bench.iceberg()
    table.overwrite(table.scan().to_arrow())
    table = bench.iceberg()
    old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != table.metadata.current_snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert bench.told().startswith("cannot be told of 3 rows: their files are gone")
    bench.desk.lading.close()


def test_a_file_that_the_table_names_and_that_is_not_there_is_lost(bench: Bench) -> None:
    folder = bench.desk.path / "home" / "warehouse" / "shop" / "orders"
    ours = bench.ours()
    (folder / ours).unlink()
    (finding,) = bench.desk.lading.verify("j").findings
    assert finding.startswith(f"LOSS: the table names {ours} with ")
    assert finding.endswith("rows of the job and it is not there")


def test_a_file_of_the_job_that_was_cut_is_found(bench: Bench) -> None:
    folder = bench.desk.path / "home" / "warehouse" / "shop" / "orders"
    ours = bench.ours()
    (folder / ours).write_bytes(b"PAR1")
    (finding,) = bench.desk.lading.verify("j").findings
    assert finding.startswith(f"CORRUPT: {ours} holds no readable (")


def test_the_command_says_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "delta")
    bench.others_delete("id = 3")
    bench.desk.lading.close()
    from typer.testing import CliRunner

    from lading.cli.main import app

    done = CliRunner().invoke(app, ["verify", "j", "--home", str(tmp_path / "home")])
    assert done.exit_code == 0
    assert "others removed 1 rows (DELETE in version" in done.output
    assert "clean" not in done.output
