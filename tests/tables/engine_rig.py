"""A job of Lading and an engine on the JVM at one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan, Report
from lading.pipeline.stage import Stage
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import CancellableStager
from lading.tables.iceberg.table import IcebergTable
from tests.console.local import LocalLading, LocalStager
from tests.service.test_rollbacks import LocalDesk
from tests.support.jvm_engine import JvmEngine

TABLE = "lading.shop.orders"
COLUMNS = "id BIGINT, city STRING"


class Interrupted(LocalLading):
    """Lets something happen once, between the staging of a batch and its commit."""

    meanwhile: Callable[[], object] | None = None

    def _stager(self, compiled: Compiled) -> CancellableStager:
        return _Stager(compiled.stage, self) if compiled.stage is not None else super()._stager(compiled)


class _Stager(LocalStager):
    def __init__(self, stage: Stage, lading: Interrupted) -> None:
        super().__init__(stage)
        self._lading = lading

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        reports = super().stage(plan)
        happens, self._lading.meanwhile = self._lading.meanwhile, None
        if happens is not None:
            happens()
        return reports


class InterruptedDesk(LocalDesk):
    def _open(self) -> LocalLading:
        return Interrupted(self.path / "home", user="tester")


class Shared:
    """The table `orders`, which both write to, and the job `j`, which loads numbers into it."""

    def __init__(self, path: Path, jvm: JvmEngine, made: str = "", *, job: bool = True) -> None:
        """`made`: what the JVM says in CREATE TABLE orders …; without it Lading makes the table."""
        self.desk, self._jvm = InterruptedDesk(path), jvm
        self.home = path / "home"
        self.desk.sql(f"CREATE TABLE orders ({COLUMNS}) USING iceberg")
        self._put = 0
        if made:
            self.spark("DROP TABLE {t}")
            self.spark(f"CREATE TABLE {{t}} {made}")
        if job:
            self.create_job()

    def create_job(self, columns: str = "id, city") -> None:
        self.desk.sql(
            f"CREATE JOB j ON STREAMING DO INSERT INTO orders ({columns}) SELECT {columns} "
            f'FROM FILE("uri"="{self.desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )

    def spark(self, statement: str) -> list[dict[str, Any]]:
        """One statement of the JVM; `{t}` is the table."""
        return self._jvm.sql(statement.replace("{t}", TABLE), self.home)

    def call(self, procedure: str, arguments: str = "") -> list[dict[str, Any]]:
        """One of Iceberg's procedures, for the table."""
        more = f", {arguments}" if arguments else ""
        return self.spark(f"CALL lading.system.{procedure}(table => 'shop.orders'{more})")

    def put(self, *ids: int) -> None:
        """A file with these numbers."""
        self._put += 1
        self.desk.put(f"{self._put:04d}.csv", [f"{number},c{number}" for number in ids], header="id,city")

    def load(self, *ids: int) -> JobRecord:
        """A file with these numbers, and one run of the service. The job must be well after it."""
        self.put(*ids)
        record = self.run()
        assert record.state.value == "RUNNING", record.reason
        assert record.reason is None
        return record

    def load_while(self, happens: Callable[[], object], *ids: int) -> JobRecord:
        """The same; something happens after the rows were staged and before they are committed."""
        assert isinstance(self.desk.lading, Interrupted)
        self.desk.lading.meanwhile = happens
        record = self.load(*ids)
        assert self.desk.lading.meanwhile is None
        return record

    def run(self) -> JobRecord:
        self.desk.run()
        return self.record()

    def record(self) -> JobRecord:
        (stored,) = self.desk.lading.store.list_jobs()
        return stored.record

    def restart(self) -> None:
        self.desk.restart()

    def ids(self) -> list[int]:
        """As the JVM reads them."""
        return [row["id"] for row in self.spark("SELECT id FROM {t} ORDER BY id")]

    def table(self) -> IcebergTable:
        table = self.desk.lading.catalog.open_table("shop", "orders")
        assert isinstance(table, IcebergTable)
        return table

    def verdict(self) -> str:
        """What `lading verify` says; a finding fails the test."""
        verdict = self.desk.lading.verify("j")
        assert verdict.is_clean, verdict.findings
        return verdict.told

    def close(self) -> None:
        self.desk.lading.close()
