"""A home for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lading.service.catalog.lost_home import Opening
from lading.service.facade import Lading


class Desk:
    """A home, an inbox, and the words to use them."""

    def __init__(self, path: Path, spark: SparkSession | None = None) -> None:
        self.path = path
        self.inbox = path / "in"
        self.inbox.mkdir()
        self._spark = spark
        self.lading = self._open()
        self.sql("CREATE DATABASE shop; USE shop")

    def restart(self) -> None:
        """Another incarnation in the same home; the session of Spark stays."""
        self.lading.close()
        self.restart_empty()
        self.sql("USE shop")

    def restart_empty(self) -> None:
        """The same of one that was closed, whatever its store has lost."""
        self.lading = self._open()

    def _open(self) -> Lading:
        return Lading(self.path / "home", session=self._spark, user="tester", opening=Opening.RECOVERY)

    def put(self, name: str, rows: list[str], header: str = "id,city,amount") -> None:
        """Let a file appear, whole at once."""
        draft = self.path / f"{name}.draft"
        draft.write_text("\n".join([header, *rows]) + "\n")
        draft.rename(self.inbox / name)

    def put_orders(self, name: str, first: int, count: int) -> None:
        self.put(name, [f"{order},essen,{order % 100}.50" for order in range(first, first + count)])

    def sql(self, text: str) -> list[tuple[object, ...]]:
        """The rows of the last statement."""
        return list(self.lading.sql(text)[-1].rows)

    def table(self, name: str = "orders", form: str = "delta", more: str = "") -> None:
        self.sql(
            f"CREATE TABLE {name} (id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2)) USING {form} {more}"
        )

    def create(self, name: str = "j", target: str = "orders", *, properties: str = "", select: str = "*") -> None:
        said = f"PROPERTIES({properties})" if properties else ""
        self.sql(
            f"CREATE JOB {name} {said} ON STREAMING DO INSERT INTO {target} SELECT {select} "
            f'FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )

    def run(self) -> None:
        self.lading.run()

    def show(self, column: str, job: str = "j") -> str:
        rows = self.sql(f'SELECT {column} FROM jobs("type"="insert") WHERE Name = \'{job}\'')
        return str(rows[0][0])

    def ids(self, table: str = "orders") -> list[int]:
        return sorted(self.lading.catalog.open_table("shop", table).scan()["id"].to_pylist())


@pytest.fixture
def desk(tmp_path: Path, spark: SparkSession) -> Iterator[Desk]:
    made = Desk(tmp_path, spark)
    yield made
    made.lading.close()
