"""Whether the mapping of a job can be done in Arrow, and why not."""

from __future__ import annotations

import pyarrow as pa

from lading.errors import ConfigError
from lading.pipeline.mapping import NOTE, WATERMARK, select_lists
from lading.pipeline.stage import Stage
from lading.pipeline.vector.arrays import arrow_type
from lading.sql.expressions.vector_compile import compile_lists
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan
from lading.sql.expressions.vector_types import type_named
from lading.tables.types import spark_type


def vector_plan(stage: Stage) -> VectorPlan | Refusal:
    """The plan of a stage for the vector path, or the first reason against it."""
    if stage.state is not None:
        return Refusal(part="job", why="it keeps state, or joins")
    if stage.reads_as_service != stage.writes_as_service:
        return Refusal(part="job", why="its source and its table are read and written with different identities")
    source: dict[str, str] = {}
    for field in stage.source:
        name = _spark_name(field.type)
        if name is None:
            return Refusal(part=f"source column {field.name}", why=f"{field.type} is not in the vector set")
        source[field.name] = name
    if stage.mapping.event is not None:
        source[WATERMARK] = "bigint"
    source[NOTE] = "binary"
    parts = {f"__v{n}": f"column {column.name}" for n, column in enumerate(stage.mapping.columns)}
    parts |= {f"__c{n}": f"column {column.name}" for n, column in enumerate(stage.mapping.columns)}
    parts |= {"__where": "where", "__undecided": "where", "__unread": "columns", "__reason": "checks", NOTE: "notes"}
    lists = select_lists(stage.mapping, tuple(stage.source.names), hidden=stage.of_batch)
    return compile_lists(lists, source, parts)


def _spark_name(kind: pa.DataType) -> str | None:
    """What Spark calls a type of Arrow that the path has exactly."""
    try:
        name = spark_type(kind)
    except ConfigError:
        return None
    found = type_named(name)
    return name if found is not None and arrow_type(found).equals(kind) else None
