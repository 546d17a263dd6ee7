"""Is the right thing in the table? Nobody is fast by being wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import duckdb
from deltalake import DeltaTable

from bench.compare.cases import Result
from bench.compare.server import FailedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A table that holds what it must."""

    bytes: int
    """Of its data files."""


def check(name: str, out: Path, wanted: Result) -> Checked:
    """Compare what was written with what must be there. Raises FailedError."""
    files = data_files(out)
    listed = ", ".join(f"'{file}'" for file in files)
    query = (
        "SELECT count(*), sum(id), sum(amount), count(*) FILTER (city = 'CITY ' || (id % 100)) "
        f"FROM read_parquet([{listed}])"
    )
    with duckdb.connect() as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    found = Result(rows=int(row[0]), ids=int(row[1]), amounts=Decimal(row[2]), cities=int(row[3]))
    if found != wanted:
        raise FailedError(f"{name} wrote {found}, and not {wanted}")
    return Checked(bytes=sum(file.stat().st_size for file in files))


def data_files(out: Path) -> list[Path]:
    """The files of the table, as its readers see them."""
    if (out / "_delta_log").is_dir():
        return [Path(unquote(uri.removeprefix("file://"))) for uri in DeltaTable(str(out.resolve())).file_uris()]
    if (out / "_spark_metadata").is_dir():
        logs = sorted((out / "_spark_metadata").iterdir())
        lines = [line for log in logs if not log.name.startswith(".") for line in log.read_text().splitlines()[1:]]
        # Every tenth log repeats those before it, which are still there.
        return [
            Path(unquote(path.removeprefix("file://"))) for path in {json.loads(line)["path"]: "" for line in lines}
        ]
    return sorted(out.glob("*.parquet"))
