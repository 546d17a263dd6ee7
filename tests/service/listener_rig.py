"""A desk with a clock that the test moves, and a job with listeners."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from lading.service.catalog.lost_home import Opening
from lading.service.facade import Lading
from lading.testing.clock import ManualClock
from tests.service.conftest import Desk

CSV = '"format"="csv_with_names", "column_separator"=","'
IDLE = "'partition.idle_time_to_done'='1 hour'"


class ClockedDesk(Desk):
    """A desk whose clock the test moves."""

    def __init__(self, path: Path, spark: SparkSession | None) -> None:
        self.clock = ManualClock(datetime.now(UTC))
        super().__init__(path, spark)

    def _open(self) -> Lading:
        home = self.path / "home"
        return Lading(home, session=self._spark, user="tester", opening=Opening.RECOVERY, clock=self.clock)

    def create_job(self, listeners: str, form: str = "delta", by: str = "PARTITIONED BY (dt)") -> None:
        self.sql(f"CREATE TABLE t (id BIGINT, dt VARCHAR(20), at DATETIME) USING {form} {by}")
        self.sql(
            f"CREATE JOB j PROPERTIES('file.settle_seconds'='0', {listeners}) ON STREAMING DO "
            f"INSERT INTO t SELECT id, dt, at FROM FILE('uri'='{self.inbox}/*.csv', {CSV})"
        )

    def put_rows(self, name: str, *rows: str) -> None:
        self.put(name, list(rows), header="id,dt,at")

    def load(self, name: str, *rows: str) -> None:
        self.put_rows(name, *rows)
        self.run()

    @property
    def table(self) -> Path:  # type: ignore[override]
        return Path(unquote(urlsplit(self.lading.catalog.open_table("shop", "t").location).path))

    def marks(self, name: str = "_SUCCESS") -> dict[str, dict[str, Any]]:
        """What marker files say, by their folders."""
        found = self.table.rglob(name)
        return {str(each.parent.relative_to(self.table)): json.loads(each.read_text()) for each in found}

    def statistic(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.show("LoadStatistic"))
        return told

    def bill(self) -> Any:
        return self.lading.bills(self.lading.job("j"), 1)[0]
