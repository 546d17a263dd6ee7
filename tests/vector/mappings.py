"""Whole mappings, strict and not, with notes between the rows: by Spark and by the vector path."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from lading.pipeline.mapping import RowMapping, TargetColumn, select_lists
from lading.pipeline.vector.arrays import UnsureError
from lading.pipeline.vector.evaluate import map_batch
from lading.sql.expressions.vector_compile import compile_lists
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan
from lading.tables.types import spark_type
from tests.vector.both_paths import Outcome, difference, forgotten_sockets, frame_of, told_by
from tests.vector.odd_rows import odd_rows
from tests.vector.random_sql import TYPES, SqlMaker

_FROM_TEXT = ["string", "bigint", "int", "decimal(10,2)", "date", "timestamp_ntz", "timestamp", "double", "boolean"]
_NOTES = [b'P1["f", 1]', b"B000000003bad raw", b"E{}"]


def random_mapping(random: Random, maker: SqlMaker) -> RowMapping:
    """Five columns, some of them NOT NULL or short, and most often a WHERE."""
    columns = []
    for number in range(5):
        kind = random.choice(TYPES)
        target = random.choice(_FROM_TEXT) if kind == "string" else kind
        columns.append(
            TargetColumn(
                name="it's" if number == 1 else f"c{number}",
                type=target,
                nullable=random.random() < 0.7,
                expression=maker.of(kind, random.choice([0, 0, 1, 2])),
                is_text=kind == "string",
                max_length=random.choice([None, 3]) if target == "string" else None,
            )
        )
    where = maker.of("boolean", 2) if random.random() < 0.7 else None
    return RowMapping(columns=tuple(columns), where=where, strict=random.random() < 0.6)


def noted(rows: pa.Table, random: Random) -> pa.Table:
    """Rows with notes of the reader among them."""
    notes = [random.choice(_NOTES) if number % 17 == 0 else None for number in range(rows.num_rows)]
    return rows.append_column("__note", pa.array(notes, pa.binary()))


@forgotten_sockets()
def compare_mappings(spark: SparkSession, seed: int, count: int) -> Outcome:
    """Random mappings over odd rows."""
    outcome, random, maker = Outcome(), Random(seed), SqlMaker(seed + 1000)
    rows = noted(odd_rows(seed, 150), random)
    source = {field.name: spark_type(field.type) for field in rows.schema}
    frame = frame_of(spark, rows)
    for _ in range(count):
        lists = select_lists(random_mapping(random, maker), tuple(name for name in source if name != "__note"))
        plan = compile_lists(lists, source)
        if isinstance(plan, Refusal):
            outcome.refused[plan.why] += 1
            continue
        mapped = frame
        for items in lists:
            mapped = mapped.selectExpr(*items)
        try:
            told = told_by(mapped)
        except ArithmeticException:
            outcome.unsure["Spark itself failed"] += 1  # As for a date of the year 9999999 that becomes a timestamp.
            continue
        _judge(outcome, plan, rows, told)
    return outcome


def _judge(outcome: Outcome, plan: VectorPlan, rows: pa.Table, told: pa.Table) -> None:
    """Row by row: one of which nobody is sure must not hide the others."""
    sure = 0
    for row in range(rows.num_rows):
        try:
            found = map_batch(plan, rows.slice(row, 1).combine_chunks().to_batches()[0])
        except UnsureError as error:
            outcome.unsure[str(error)] += 0
            continue
        sure += 1
        for name in told.schema.names:
            why = difference(found.column(name), told.column(name).combine_chunks().slice(row, 1))
            if why is not None:
                outcome.wrong.append(f"{name}: {why}; row {rows.slice(row, 1).to_pylist()[0]}")
                return
    outcome.same += 1 if sure else 0
    outcome.unsure["all rows"] += 0 if sure else 1
