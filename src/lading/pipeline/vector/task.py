"""The one task of the vector path: it reads, maps and writes, and no row leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lading.errors import StageError
from lading.pipeline.reading import read_task
from lading.pipeline.tasks import MAX_BYTES, TaskTools, write_task
from lading.pipeline.vector.arrays import VECTOR_UNSURE, UnsureError
from lading.pipeline.vector.evaluate import map_batch
from lading.sql.expressions.vector_nodes import VectorPlan


def vector_task(
    tools: TaskTools, plan: VectorPlan, schema: pa.Schema, attempt: str, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the splits whose numbers come in, map their rows and write them; reports come out."""
    # Rows are not counted into batches of Spark here: their length is of no matter to it.
    rows = read_task(replace(tools, max_records=1), schema, numbers)
    yield from write_task(tools, attempt, map_batches(plan, rows))


def map_batches(plan: VectorPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches through a mapping, large ones in pieces. Raises StageError when Spark has to do it."""
    for batch in batches:
        for piece in _pieces(batch):
            try:
                yield map_batch(plan, piece)
            except UnsureError as error:
                msg = f"{VECTOR_UNSURE}: {error}"
                raise StageError(
                    msg, left="Nothing was committed.", todo="The batch takes the general path."
                ) from error


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    count = max(1, -(-batch.nbytes // MAX_BYTES))
    size = max(1, -(-batch.num_rows // count))
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)
