"""Delta tables that Spark on the JVM made and keeps on changing, and jobs of Lading that load into them."""

from __future__ import annotations

from pathlib import Path

from tests.console.local import LocalLading
from tests.support.jvm_engine import JvmEngine


class Lake:
    """One table of the JVM, adopted as `t`, and a job `j` that loads what is put into a folder."""

    def __init__(self, path: Path, jvm: JvmEngine, place: str = "") -> None:
        self.path = path
        self.jvm = jvm
        self.place = place or str(path / "lake" / "t")
        self.inbox = path / "in"
        self.inbox.mkdir()
        self.lading = LocalLading(path / "home", user="tester")
        self._files = 0

    @property
    def name(self) -> str:
        """The table as Spark calls it."""
        return f"delta.`{self.place}`"

    def spark(self, text: str) -> list[dict[str, object]]:
        """One statement of Spark; {} is the table."""
        return self.jvm.sql(text.replace("{}", self.name))

    def make(self, columns: str = "id BIGINT, city STRING", more: str = "", **properties: str) -> None:
        said = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.spark(f"CREATE TABLE {{}} ({columns}) USING delta {more} " + (f"TBLPROPERTIES ({said})" if said else ""))

    def adopt(self, more: str = "") -> None:
        self.lading.sql(f"CREATE TABLE t USING delta LOCATION '{self.place}' {more}")

    def create_job(self, columns: str = "id, city", select: str = "*", *, properties: str = "") -> None:
        said = f"PROPERTIES({properties}) " if properties else ""
        self.lading.sql(
            f"CREATE JOB j {said}ON STREAMING DO INSERT INTO t ({columns}) SELECT {select} "
            f'FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )

    def put(self, *ids: int) -> None:
        """A file with these rows."""
        self._files += 1
        rows = "".join(f"{number},essen\n" for number in ids)
        draft = self.path / "draft"
        draft.write_text(f"id,city\n{rows}")
        draft.rename(self.inbox / f"{self._files:05d}.csv")

    def load(self, *ids: int) -> None:
        """One batch with these rows, which must be loaded."""
        self.put(*ids)
        record = self.lading.run()["j"]
        assert record.state.value == "RUNNING", record.reason

    def ids(self) -> list[int]:
        """What Spark reads."""
        return sorted(int(str(row["id"])) for row in self.spark("SELECT id FROM {}"))

    def status(self) -> tuple[str, str]:
        rows = list(self.lading.sql('SELECT Status, ErrorMsg FROM jobs("type"="insert") WHERE Name = \'j\'')[-1].rows)
        return str(rows[0][0]), str(rows[0][1])

    def restart(self) -> None:
        self.lading.close()
        self.lading = LocalLading(self.path / "home", user="tester")
