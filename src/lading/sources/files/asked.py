"""From what a statement says about files to what the source reads by. Pure: texts were read and checked by `sql`."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lading.model.load import FileIntake
from lading.model.row_formats import CsvOptions
from lading.model.s3_access import S3Access
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.sources.files.place import parse_uri
from lading.sources.files.spec import (
    MAX_RECORD_BYTES,
    Compression,
    FilesSpec,
    Format,
    Ingestion,
    LateFiles,
    MissingColumns,
)
from lading.sql.properties.files import FileProperties, S3Properties

_COMPRESSIONS = {"gzip": "gz", "none": "plain", "snappyblock": "snappy", "lz4frame": "lz4"}


def files_spec_of(
    source: S3Properties | FileProperties,
    intake: FileIntake,
    addresses: AddressRules = EVERY_PRIVATE,
    settle_s: float = 0.0,
) -> FilesSpec:
    """Where the files are and how they are written; without columns, unless the statement names them."""
    files = source.files
    form = Format(files.format)
    return FilesSpec(
        place=parse_uri(source.uri),
        format=form,
        s3=replace(source.access, addresses=addresses) if isinstance(source, S3Properties) else S3Access(),
        compression=Compression(_COMPRESSIONS.get(files.compress_type, files.compress_type)),
        csv=files.csv,
        json=files.json,
        path_partition_keys=files.path_partition_keys,
        missing_columns=MissingColumns(files.missing_columns.lower()),
        ingestion=Ingestion(intake.ingestion_mode.lower()),
        late_files=LateFiles(intake.late_files.lower()),
        late_window=intake.late_window or 0,
        also_load=frozenset(intake.also_load),
        settle_s=settle_s if intake.settle_s is None else intake.settle_s,
        max_record_bytes=files.max_record_bytes or MAX_RECORD_BYTES,
        schema=_schema(files.csv) if form.is_csv else None,
    )


def _schema(asked: CsvOptions) -> pa.Schema | None:
    """Every column is read as a string; types are the mapping's business."""
    return pa.schema([pa.field(name, pa.string()) for name, _ in asked.schema]) if asked.schema else None
