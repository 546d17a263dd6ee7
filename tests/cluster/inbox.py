"""Files to load, and the statements for them."""

from __future__ import annotations

from pathlib import Path

JOB = """CREATE JOB {job} PROPERTIES("s3.max_batch_files"="{files}", "session.enable_insert_strict"="false")
ON STREAMING DO INSERT INTO shop.{table} SELECT * FROM {source}"""
FILES = 'FILE("uri"="{}/*.csv", "format"="csv_with_names", "column_separator"=",")'


WIDE = 230
"""Letters of a row, so that two files of 20,000 are worth three tasks."""


class Inbox:
    """A folder of CSV files with ids that nobody else has, and one bad row in each."""

    def __init__(self, folder: Path, files: int, rows: int) -> None:
        folder.mkdir()
        city = "essen".ljust(WIDE, "-")
        self.folder, self.files, self.rows = folder, files, rows
        for number in range(files):
            first = number * rows
            lines = [f"bad,{city}", *(f"{row},{city}" for row in range(first + 1, first + rows))]
            (folder / f"{number:03d}.csv").write_text("\n".join(["id,city", *lines]) + "\n")

    @property
    def ids(self) -> list[int]:
        """What must be in the table, each once."""
        return [row for row in range(self.files * self.rows) if row % self.rows]

    def job(self, job: str, table: str, *, files: int = 1, source: str = "") -> str:
        return JOB.format(job=job, table=table, source=source or FILES.format(self.folder), files=files)


def create_table(name: str, form: str = "delta", more: str = "") -> str:
    return f"CREATE TABLE shop.{name} (id BIGINT NOT NULL, city STRING) USING {form} {more}"
