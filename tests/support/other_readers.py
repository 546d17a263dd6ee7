"""Tables as other engines read them: Polars for Delta and Iceberg, pypaimon for Paimon."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import polars as pl
import pyarrow as pa

_METADATA = re.compile(r"(\d+)-.*\.metadata\.json")


def read_elsewhere(form: str, folder: Path) -> pa.Table:
    """All rows of the table in a local folder, without a line of Lading."""
    if form == "delta":
        return pl.read_delta(str(folder)).to_arrow()
    if form == "iceberg":
        return pl.scan_iceberg(str(newest_metadata(folder))).collect().to_arrow()
    return _read_paimon(folder)


def newest_metadata(folder: Path) -> Path:
    """The file that the catalog of an Iceberg table names: the last one, as one writer commits after the other."""
    found = [(match, path) for path in (folder / "metadata").iterdir() if (match := _METADATA.fullmatch(path.name))]
    return max(found, key=lambda each: (int(each[0][1]), each[1].stat().st_mtime_ns))[1]


def _read_paimon(folder: Path) -> pa.Table:
    from pypaimon import CatalogFactory

    # Its catalog wants folders of databases to end in .db.
    with tempfile.TemporaryDirectory() as warehouse:
        (Path(warehouse) / "lake.db").symlink_to(folder.parent)
        table = CatalogFactory.create({"warehouse": warehouse}).get_table(f"lake.{folder.name}")
        builder = table.new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())
