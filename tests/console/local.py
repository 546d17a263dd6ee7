"""A whole service without Spark: real jobs, scheduler, tables and bills; batches are staged in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lading.clock import SystemClock
from lading.ids import new_token
from lading.model.batch import BatchPlan, Report, Split
from lading.model.state import StateChange, StateRef
from lading.model.tally import RowCounts
from lading.pipeline.stage import Stage
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.service.runtime.context import CancellableStager

SLOW = "backfill"
"""Each batch of jobs with such a name takes a second, as on a cluster that is small."""


class LocalLading(Lading):
    """Stages with pyarrow what jobs select by plain column names."""

    def _stager(self, compiled: Compiled) -> CancellableStager:
        stage = compiled.stage
        if stage is None:
            return super()._stager(compiled)
        return LocalStager(stage, seconds=1.0 if compiled.job.name.endswith(SLOW) else 0.0)


class PastClock(SystemClock):
    """Can be set back, so that history can be made in a moment."""

    def __init__(self) -> None:
        self.behind = timedelta(0)

    def now(self) -> datetime:
        return super().now() - self.behind


class LocalStager:
    """Reads and writes with what Spark's tasks are given; the mapping between is another."""

    def __init__(self, stage: Stage, *, seconds: float = 0.0) -> None:
        self._stage, self._seconds, self._cancelled = stage, seconds, threading.Event()

    def cancel(self) -> None:
        """Batches are short."""
        self._cancelled.set()

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        raise NotImplementedError

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        attempt = f"{new_token():016x}"
        self._cancelled.wait(self._seconds)
        return [self._report(split, f"{attempt}-{split.number}") for split in plan.splits]

    def _report(self, split: Split, attempt: str) -> Report:
        tools, good, bad = self._stage.tools, list[pa.RecordBatch](), list[tuple[str, int, str, str]]()
        end = None
        for item in tools.read([split]):
            if isinstance(item, pa.RecordBatch):
                good.append(self._map(_readable(item, bad), bad))
            else:
                end = item
        assert end is not None
        writer = tools.open_writer(attempt)
        try:
            for batch in good:
                if batch.num_rows:
                    writer.write(batch)
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        quarantine: tuple[str, ...] = ()
        if bad:
            file = tools.open_quarantine(attempt)
            for name, row, reason, raw in bad:
                file.add(file=name, row=row, reason=reason, raw=raw.encode())
            quarantine = (file.close(),)
        loaded = sum(batch.num_rows for batch in good)
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=end.end,
            finished=end.finished,
            files=files,
            rows=RowCounts(total=end.rows, loaded=loaded, error=len(bad)),
            received_bytes=end.received_bytes,
            source_files=end.source_files,
            source_bytes=end.source_bytes,
            marks=end.marks,
            fields=end.fields,
            quarantine=quarantine,
            first_error=f"{bad[0][0]}, row {bad[0][1]}: {bad[0][2]}" if bad else "",
        )

    def _map(self, batch: pa.RecordBatch, bad: list[tuple[str, int, str, str]]) -> pa.RecordBatch:
        columns, is_bad = {}, pa.array([False] * batch.num_rows, pa.bool_())
        for column in self._stage.mapping.columns:
            if not column.expression:
                columns[column.name] = pa.nulls(batch.num_rows, _arrow_type(column.type))
                continue
            name = column.expression.strip("`")
            if name not in batch.schema.names:
                columns[column.name] = _cast(pa.array([name.strip("'")] * batch.num_rows), column.type)  # A literal.
                continue
            given = batch.column(name)
            columns[column.name] = made = _cast(given, column.type)
            if self._stage.mapping.strict:
                wrong = pc.and_(pc.is_valid(given), pc.is_null(made))
            elif not column.nullable:
                wrong = pc.is_null(made)
            else:
                continue  # As in Spark: what cannot be read is NULL then, and its row is good.
            for at in pc.indices_nonzero(pc.and_(wrong, pc.invert(is_bad))).to_pylist():
                record = ",".join(str(batch.column(name)[at].as_py()) for name in self._stage.source.names)
                reason = f"column {column.name}: cannot read '{given[at].as_py()}' as {column.type}"
                place = (str(batch.column("__file")[at].as_py()), int(batch.column("__row")[at].as_py()))
                bad.append((*place, reason, record))
            is_bad = pc.or_(is_bad, wrong)
        return pa.RecordBatch.from_pydict(columns).filter(pc.invert(is_bad))


def _readable(batch: pa.RecordBatch, bad: list[tuple[str, int, str, str]]) -> pa.RecordBatch:
    """The rows that the reader could read; the others are bad."""
    rows = batch.filter(pc.is_valid(batch.column("__error"))).to_pylist()
    bad += [(row["__file"], row["__row"], row["__error"], (row["__raw"] or b"").decode()) for row in rows]
    return batch.filter(pc.is_null(batch.column("__error")))


def _arrow_type(type_name: str) -> pa.DataType:
    plain = {"bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(), "string": pa.string()}
    kind = plain.get(type_name.lower())
    if kind is not None:
        return kind
    digits, scale = type_name.lower().removeprefix("decimal(").removesuffix(")").split(",")
    return pa.decimal128(int(digits), int(scale))


def _cast(values: pa.Array, type_name: str) -> pa.Array:
    """What Spark's try_cast gives, for the types that these tests use."""
    kind = _arrow_type(type_name)
    text = values.cast(pa.string())
    if pa.types.is_string(kind):
        return text
    fits = pc.match_substring_regex(text, r"^-?\d+(\.\d+)?$")
    return pc.cast(pc.if_else(fits, text, None), kind)
