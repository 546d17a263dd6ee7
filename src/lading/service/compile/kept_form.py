"""In which form the bad rows of a load are kept: what stands for the way in which its records are taken apart."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa

from lading.model.codec import encode
from lading.model.load import LoadSpec
from lading.model.rows import REST
from lading.pipeline.kept_rows import RowForm
from lading.service.compile.exploded import explode_of
from lading.sources.kind import OpenSource

_ELSEWHERE = ("s3.", "kafka_", "kinesis_", "aws.", "property.", "use_path_style", "uri", "provider")
"""Properties that begin so say where rows are, and who may read them. All others may say what is in a row."""


def row_form(load: LoadSpec, opened: OpenSource, schema: pa.Schema) -> RowForm | None:
    """None: bad rows are kept for people alone, because they are judged with others, or have fields that no column
    has."""
    is_judged_later = any(
        part is not None for part in (load.watermark, load.dedup, load.window, load.join, load.stream_join)
    )
    if is_judged_later or REST in schema.names:
        return None
    columns = tuple((field.name, str(field.type)) for field in schema if field.name not in opened.of_batch)
    return RowForm(reads=_reads(load, columns), columns=columns, keeps_records=opened.parse is not None)


def _reads(load: LoadSpec, columns: tuple[tuple[str, str], ...]) -> str:
    properties = load.source.properties
    told = {name: value for name, value in properties.items() if not name.lower().startswith(_ELSEWHERE)}
    records = load.records
    parts = [load.source.kind, told, records.format, encode(records.csv), encode(records.json)]
    is_by_place = "jsonpaths" in properties
    if not load.mapping.is_select:
        is_by_place = records.format == "csv" or bool(records.json.jsonpaths)
    if is_by_place:
        # Names are given to fields by their places: with other names the same record gives columns other values.
        parts.append([name for name, _ in columns])
    if (exploded := explode_of(load)) is not None:
        parts.append({"explode": exploded.column, "keeps_empty": exploded.keeps_empty})
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
