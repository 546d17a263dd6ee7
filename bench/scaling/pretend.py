"""A whole service without Spark and without rows: real listing, planning, bills, commits and views.

Its stager says that it read the files it was given, and writes one small file for each split.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lading.ids import new_token
from lading.model.batch import BatchPlan, Report, Split, StagedFile
from lading.model.state import StateChange, StateRef
from lading.model.tally import RowCounts
from lading.pipeline.stage import Stage
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.service.runtime.context import CancellableStager
from lading.sources.files.payload import parse_payload

ROWS = 10
TABLE = "CREATE TABLE t (id BIGINT, city STRING) USING delta"


class PretendLading(Lading):
    """Stages nothing but pretence."""

    def _stager(self, compiled: Compiled) -> CancellableStager:
        return PretendStager(compiled.stage) if compiled.stage is not None else super()._stager(compiled)


class PretendStager:
    """Every split loads ten rows."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._rows = pa.record_batch({"id": pa.array(range(ROWS)), "city": pa.array(["essen"] * ROWS)})

    def cancel(self) -> None:
        """Batches are short."""

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        raise NotImplementedError

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return [self._report(split) for split in plan.splits]

    def _report(self, split: Split) -> Report:
        payload = parse_payload(split.payload)
        size = sum(part.size for part in payload.parts)
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end or split.start,
            finished=payload.finished,
            files=self._files(split),
            rows=RowCounts(total=ROWS, loaded=ROWS),
            received_bytes=size,
            source_files=len(payload.parts),
            source_bytes=size,
            marks=payload.marks,
        )

    def _files(self, split: Split) -> tuple[StagedFile, ...]:
        writer = self._stage.tools.open_writer(f"{new_token():016x}-{split.number}")
        writer.write(self._rows)
        return tuple(writer.close())
