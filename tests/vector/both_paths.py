"""The same SELECT lists by Spark and by the vector path, compared bit by bit."""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lading.pipeline.vector.arrays import UnsureError
from lading.pipeline.vector.evaluate import map_batch
from lading.sql.expressions.vector_compile import compile_lists
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan
from lading.tables.types import spark_type

_PER_QUERY = 60


@dataclass
class Outcome:
    """What became of expressions."""

    same: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of all that were tried, those that took the vector path to the end."""
        return self.same / max(1, self.same + self.refused.total() + self.unsure.total() + len(self.wrong))


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows in Spark, where times without a zone stay so."""
    local = {field.name for field in rows.schema if field.type == pa.timestamp("us")}
    frame = spark.createDataFrame(rows)
    return frame.selectExpr(
        *(f"CAST({name} AS timestamp_ntz) AS {name}" if name in local else name for name in rows.schema.names)
    )


def told_by(frame: DataFrame) -> pa.Table:
    """What Spark gives."""
    return frame.toArrow().combine_chunks()


@contextmanager
def forgotten_sockets() -> Iterator[None]:
    """PySpark leaves the socket open over which Arrow goes. To look for them after each query takes too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@forgotten_sockets()
def compare_expressions(spark: SparkSession, rows: pa.Table, texts: Sequence[str]) -> Outcome:
    """Each expression over the rows, by both."""
    outcome, plans = Outcome(), dict[str, VectorPlan]()
    source = {field.name: spark_type(field.type) for field in rows.schema}
    for text in dict.fromkeys(texts):
        plan = compile_lists([[f"({text}) AS e"]], source)
        if isinstance(plan, Refusal):
            outcome.refused[plan.why] += 1
        else:
            plans[text] = plan
    frame, names = frame_of(spark, rows), list(plans)
    for start in range(0, len(names), _PER_QUERY):
        for text, told in _answers(frame, names[start : start + _PER_QUERY]):
            if isinstance(told, str):
                _judge_raised(outcome, text, plans[text], rows, told)
            else:
                _judge(outcome, text, plans[text], rows, told)
    return outcome


def _answers(frame: DataFrame, texts: list[str]) -> list[tuple[str, pa.Array | str]]:
    """What Spark gives for each; a text for one that it cannot compute: all others are asked without it."""
    try:
        told = told_by(frame.selectExpr(*(f"({text}) AS e{n}" for n, text in enumerate(texts))))
    except (PySparkException, Py4JError) as error:
        if len(texts) == 1:
            return [(texts[0], str(error))]
        middle = len(texts) // 2
        return _answers(frame, texts[:middle]) + _answers(frame, texts[middle:])
    columns = [column.combine_chunks() for column in told.columns]
    return list(zip(texts, columns, strict=True))


def _judge_raised(outcome: Outcome, text: str, plan: VectorPlan, rows: pa.Table, told: str) -> None:
    """Where Spark ends with an error, the vector path is not sure: the general path then says what is wrong."""
    try:
        map_batch(plan, rows.combine_chunks().to_batches()[0])
    except UnsureError as error:
        outcome.unsure[str(error)] += 1
    else:
        outcome.wrong.append(f"{text}: Spark said {told[:200]}")


def _judge(outcome: Outcome, text: str, plan: VectorPlan, rows: pa.Table, told: pa.Array) -> None:
    # Row by row groups: one text of which nobody is sure must not hide the others.
    taken, is_sure = 0, False
    for start in range(0, rows.num_rows, 10):
        batch = rows.slice(start, 10).combine_chunks().to_batches()[0]
        try:
            found = map_batch(plan, batch).column(0)
        except UnsureError as error:
            outcome.unsure[str(error).partition(":")[0]] += 0
            continue
        is_sure = True
        taken += 1
        if (why := difference(found, told.slice(start, 10))) is not None:
            outcome.wrong.append(f"{text}: {why}; rows {batch.to_pylist()[int(why.split()[1])]}")
            return
    if is_sure:
        outcome.same += 1
    else:
        outcome.unsure["all rows"] += 1


def difference(found: pa.Array, told: pa.Array) -> str | None:
    """Where two arrays differ, in any bit; None: nowhere. Of NaN there is only one."""
    if found.type != told.type:
        return f"row 0 type {found.type}, Spark has {told.type}"
    if found.type == pa.null():
        return None
    ours, theirs = _bits(found), _bits(told)
    for row in range(len(found)):
        if ours[row] != theirs[row]:
            return f"row {row} is {ours[row]!r}, Spark has {theirs[row]!r}"
    return None


def _bits(array: pa.Array) -> list[Any]:
    if pa.types.is_floating(array.type):
        width = {16: np.int16, 32: np.int32, 64: np.int64}[array.type.bit_width]
        numbers = np.where(np.isnan(values := pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)), np.nan, values)
        bits = numbers.astype(array.type.to_pandas_dtype()).view(width).tolist()
        return [None if not each.is_valid else bit for each, bit in zip(array, bits, strict=True)]
    if pa.types.is_date(array.type):
        return array.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    if pa.types.is_string(array.type):
        return array.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    return array.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
