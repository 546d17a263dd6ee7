"""Small files of state are put together, as a part of a batch, so that their number does not grow with the batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from lading.ids import NewToken
from lading.model.batch import StateFile
from lading.pipeline.state.files import TARGET_BYTES
from lading.pipeline.state.jobs import FATE, STATE, MergeTools, StateJobs
from lading.pipeline.state.selected import ALL_TIMES, Ranked, Times
from lading.pipeline.tasks import Writer

MOST_FILES = 64
"""From so many small files on they are put together."""
_SMALL_BYTES = TARGET_BYTES // 8
"""What is written of a full file is smaller: its size is that of the rows in memory. A full one is not packed again."""


def pack(
    jobs: StateJobs,
    schema: pa.Schema,
    files: Sequence[StateFile],
    new_token: NewToken,
    merge: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    *,
    most: int | None = None,
    times: Times = ALL_TIMES,
) -> list[StateFile]:
    """The files, or fewer ones with the same content of these times. Those that they replace stay until no bill names
    them."""
    small = [file for file in files if file.size_bytes < _SMALL_BYTES]
    if len(small) < (MOST_FILES if most is None else most):
        return list(files)
    key = jobs.new_key()
    rows = merge(jobs.read([Ranked(file=file) for file in small], schema, key, times=times))
    rows = rows.selectExpr(*schema.names, f"{STATE} AS {FATE}")
    rows = rows.repartitionByRange(max(1, sum(file.size_bytes for file in small) // TARGET_BYTES + 1), "__bucket")
    tools = MergeTools(
        place=jobs.place,
        attempt=f"{new_token():016x}",
        open_writer=_no_table,
        columns=(),
        shown=(),
        remembered=tuple((name, name) for name in schema.names),
        identity=jobs.identity,
    )
    merged = jobs.write(rows, tools, key)
    gone = {file.path for file in small}
    return [file for file in files if file.path not in gone] + [file for part in merged for file in part.state]


def _no_table(attempt: str) -> Writer:
    msg = f"{attempt} has no rows for the table"
    raise AssertionError(msg)
