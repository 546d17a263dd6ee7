"""The executors' side of an Iceberg table."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.model.s3_access import S3Access
from lading.storage.renewed import RenewedStore
from lading.storage.store import ObjectStore
from lading.tables.base import WriterSpec
from lading.tables.iceberg.defaults import default_text
from lading.tables.iceberg.features import check_appendable, data_folder, is_for_object_storage
from lading.tables.iceberg.partitions import partition_columns, partition_folder, written_fields
from lading.tables.iceberg.place import open_place
from lading.tables.iceberg.schema import plain_arrow_schema
from lading.tables.iceberg.stats import collect_stats
from lading.tables.parquet import Layout, ParquetWriter

METRICS = "write.metadata.metrics."


def iceberg_writer_spec(table: Table, options: S3Access) -> WriterSpec:
    """What tasks need: the schema with its field ids, the partition spec and the metrics settings travel in `extra`.

    Raises TableError for a table that Lading must not write to.
    """
    metadata = table.metadata
    check_appendable(table, where=".".join(table.name()))
    schema, spec = metadata.schema(), metadata.spec()
    extra = {
        "schema": schema.model_dump_json(),
        "spec": spec.model_dump_json(),
        "properties": {key: value for key, value in metadata.properties.items() if key.startswith(METRICS)},
        "folder": data_folder(metadata),
        "spread": is_for_object_storage(metadata),
    }
    return WriterSpec(
        format="iceberg",
        location=metadata.location.rstrip("/"),
        schema=plain_arrow_schema(schema),
        partition_by=tuple(
            (schema.find_column_name(field.source_id) or field.name, str(field.transform)) for field in spec.fields
        ),
        partition_fields=written_fields(spec, schema),
        options=options,
        extra=json.dumps(extra),
        defaults={field.name: text for field in schema.fields if (text := default_text(field))},
    )


def open_store_of(spec: WriterSpec) -> ObjectStore:
    """The place of a table, letter by letter as PyIceberg takes it."""
    if spec.keys is None:
        return open_place(spec.location, spec.options)
    return RenewedStore(partial(open_place, spec.location), spec.keys)


class IcebergWriter:
    """Stages Parquet files of one attempt. Partition columns are in the files too, as Iceberg wants them."""

    def __init__(self, spec: WriterSpec, attempt: str) -> None:
        told = json.loads(spec.extra)
        schema = Schema.model_validate_json(told["schema"])
        partitions = PartitionSpec.model_validate_json(told["spec"])
        file_schema = schema_to_pyarrow(schema)
        layout = Layout(
            location=spec.location,
            file_schema=file_schema,
            partition_names=tuple(field.name for field in partitions.fields),
            partition_columns=partition_columns(partitions, schema, file_schema),
            folder=partition_folder(partitions, schema, base=told["folder"], is_spread=told["spread"]),
            stats=collect_stats(schema, partitions.spec_id, told["properties"], spec.location),
            target_bytes=spec.target_bytes,
        )
        filesystem, root = open_store_of(spec).arrow()
        self._files = ParquetWriter(layout, filesystem, root, attempt)

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            self._files.write(batch)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, KeyError, ValueError) as error:
            msg = f"Rows do not fit the columns of the table: {error}"
            raise SchemaMismatchError(
                msg, left="Nothing was committed.", todo="Change the mapping of the job, or the table."
            ) from error

    def close(self) -> tuple[StagedFile, ...]:
        """Finish all files and say what they hold."""
        return self._files.close()

    def abort(self) -> None:
        """Delete what was written: the attempt failed."""
        self._files.abort()
