"""Tables where a soak has them, as others read them: single files as they are, and the whole by another engine."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog.sql import SqlCatalog

from lading.model.s3_access import S3Access
from tests.support.other_readers import read_elsewhere


class Lake(Protocol):
    """One table."""

    @property
    def name(self) -> str: ...

    def read(self, path: str) -> pa.Table:
        """One data file. Raises OSError."""

    def read_all(self) -> pa.Table:
        """What another engine finds."""


@dataclass(frozen=True, slots=True)
class FolderLake:
    """A table that is found by its folder."""

    form: str
    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder)

    def read(self, path: str) -> pa.Table:
        return pq.read_table(self.folder / path)

    def read_all(self) -> pa.Table:
        return read_elsewhere(self.form, self.folder)


@dataclass(frozen=True, slots=True)
class SharedLake:
    """A table of several services: on a disk or in a bucket, and Iceberg in the catalog of their store."""

    form: str
    place: str
    """A folder, or s3://…"""
    access: S3Access
    store: str
    table: str
    """db.name"""

    @property
    def name(self) -> str:
        return f"{self.table} in {self.place}"

    def read(self, path: str) -> pa.Table:
        whole = f"{self.place}/{path}"
        if not whole.startswith("s3://"):
            return pq.read_table(whole)
        access = self.access
        reached = S3FileSystem(
            access_key=access.access_key,
            secret_key=access.secret_key,
            endpoint_override=access.endpoint,
            region=access.region,
        )
        return pq.read_table(whole.removeprefix("s3://"), filesystem=reached)

    def read_all(self) -> pa.Table:
        if self.form == "iceberg":
            with self.open_catalog() as catalog:
                newest = catalog.load_table(self.table).metadata_location
            return pl.scan_iceberg(newest, storage_options=self._reach("s3.", "-")).collect().to_arrow()
        if self.form == "delta" and self.place.startswith("s3://"):
            options = {**self._reach("aws_", "_"), "aws_allow_http": "true"}
            return pl.read_delta(self.place, storage_options=options).to_arrow()
        return read_elsewhere(self.form, Path(self.place))

    def open_catalog(self) -> closing[SqlCatalog]:
        """The one that the services share. It names the newest metadata: beside them lie those that did not land."""
        url = self.store.replace("://", "+psycopg://")
        return closing(SqlCatalog("lading", uri=url, **self._reach("s3.", "-")))

    def _reach(self, prefix: str, dash: str) -> dict[str, str]:
        if not self.place.startswith("s3://"):
            return {}
        access = self.access
        names = {
            f"access{dash}key{dash}id": access.access_key,
            f"secret{dash}access{dash}key": access.secret_key,
            "endpoint": access.endpoint,
            "region": access.region,
        }
        return {prefix + name: str(value) for name, value in names.items()}
