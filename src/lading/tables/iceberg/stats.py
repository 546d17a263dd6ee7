"""What a staged file tells the driver in `StagedFile.stats`, so that no footer is read there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatsAggregator,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import DoubleType, FloatType

from lading.errors import RecordError
from lading.model.batch import StagedFile
from lading.tables.iceberg.partitions import partition_record
from lading.tables.parquet import FileNotes

VERSION = 1
_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")
_NO_STATISTICS = MetricsMode(MetricModeTypes.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The parsed text."""

    schema_id: int
    spec_id: int
    location: str
    """Where the table was when the file was written: the file's path is relative to it."""
    values: dict[str, Any]
    """Arguments of PyIceberg's DataFile."""


def collect_stats(
    schema: Schema, spec_id: int, properties: dict[str, str], location: str
) -> Callable[[pq.FileMetaData, FileNotes], str]:
    """A function that turns a Parquet footer into the text."""
    plan = compute_statistics_plan(schema, properties)
    paths = parquet_path_to_id_mapping(schema)
    unbounded = _inner_floats(schema)

    def render(footer: pq.FileMetaData, notes: FileNotes) -> str:
        # Their footers say nothing: PyIceberg would warn of each. What can be said of them is counted here.
        silent = {*unbounded, *(paths[name] for name in notes.with_nan)}
        asked = {
            field_id: replace(wanted, mode=_NO_STATISTICS) if field_id in silent else wanted
            for field_id, wanted in plan.items()
        }
        found = data_file_statistics_from_parquet_metadata(footer, asked, paths)
        for name in notes.with_nan:
            if plan[paths[name]].mode != _NO_STATISTICS:
                found.value_counts[paths[name]] = footer.num_rows
                found.null_value_counts[paths[name]] = notes.nulls[name]
        for field_id, upper in list(found.column_aggregates.items()):
            if not _has_upper_bound(upper):
                del found.column_aggregates[field_id]
        return render_stats(schema.schema_id, spec_id, location, found.to_serialized_dict())

    return render


def _inner_floats(schema: Schema) -> set[int]:
    """Numbers inside of others that may be NaN: nobody looks, so their footers have no bounds."""
    top = {field.field_id for field in schema.fields}
    return {
        number
        for number, field in index_by_id(schema).items()
        if number not in top and isinstance(field.field_type, FloatType | DoubleType)
    }


def _has_upper_bound(found: StatsAggregator) -> bool:
    # PyIceberg cuts long text and raises its last character by one. After U+D7FF come the surrogates, which have no
    # UTF-8: it would raise. A column without bounds is only read more often.
    try:
        found.max_as_bytes()
    except UnicodeEncodeError:
        return False
    return True


def render_stats(schema_id: int, spec_id: int, location: str, values: dict[str, Any]) -> str:
    """PyIceberg's statistics as text; bounds are bytes and stand there in base64."""
    body: dict[str, Any] = {"v": VERSION, "schema": schema_id, "spec": spec_id, "location": location}
    for name, value in values.items():
        if name in _BOUNDS:
            body[name] = {key: base64.b64encode(bound).decode() for key, bound in value.items()}
        else:
            body[name] = value
    return json.dumps(body, separators=(",", ":"))


def parse_stats(file: StagedFile) -> FileFacts:
    """Read the text of one file."""
    try:
        body = json.loads(file.stats)
        if body.pop("v") != VERSION:
            raise _unreadable(file, "it is of another version")
        schema_id, spec_id, location = int(body.pop("schema")), int(body.pop("spec")), str(body.pop("location"))
        for name in _COUNTS:
            body[name] = {int(key): count for key, count in body[name].items()}
        for name in _BOUNDS:
            body[name] = {int(key): base64.b64decode(bound) for key, bound in body[name].items()}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise _unreadable(file, str(error)) from error
    if body.get("record_count") != file.rows:
        raise _unreadable(file, f"it says {body.get('record_count')} rows and the file has {file.rows}")
    return FileFacts(schema_id=schema_id, spec_id=spec_id, location=location, values=body)


def data_file(
    file: StagedFile,
    facts: FileFacts,
    spec: PartitionSpec,
    schema: Schema,
    version: TableVersion = 2,
    *,
    partition: Record | None = None,
) -> DataFile:
    """The file as Iceberg knows it: where it was written, also when the table has another location by now.

    `partition` is known when the file takes the place of another one.
    """
    made = DataFile.from_args(
        _table_format_version=version,
        content=DataFileContent.DATA,
        file_path=f"{facts.location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=partition if partition is not None else partition_record(spec, schema, file.partition),
        file_size_in_bytes=file.size_bytes,
        sort_order_id=UNSORTED_SORT_ORDER_ID,  # Rows come in the order of the source, whatever order the table wants.
        equality_ids=None,
        key_metadata=None,
        **facts.values,
    )
    made.spec_id = spec.spec_id
    return made


def _unreadable(file: StagedFile, why: str) -> RecordError:
    msg = f"The statistics of the staged file {file.path} cannot be used: {why}"
    return RecordError(msg, left="Nothing was written to the table.", todo="Stage the batch again.")
