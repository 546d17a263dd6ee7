"""A whole service without a JVM: jobs that the vector path takes run as they do in Spark's workers, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lading.ids import new_token
from lading.model.batch import BatchPlan, Report
from lading.model.codec import decode
from lading.model.state import StateChange, StateRef
from lading.pipeline.mapping import NOTE
from lading.pipeline.stage import Stage, batch_value
from lading.pipeline.vector.task import vector_task
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.service.runtime.context import CancellableStager
from lading.sql.expressions.vector_nodes import VectorPlan
from tests.service.conftest import Desk


class VectorLading(Lading):
    """Stages in this process what the vector path takes."""

    def _stager(self, compiled: Compiled) -> CancellableStager:
        stage = compiled.stage
        is_vector = stage is not None and isinstance(stage.vector, VectorPlan)
        return VectorStager(stage) if stage is not None and is_vector else super()._stager(compiled)


class VectorStager:
    """One task for all splits."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def cancel(self) -> None:
        """Batches are short."""

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        raise NotImplementedError

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        stage = self._stage
        assert isinstance(stage.vector, VectorPlan)
        tools = replace(
            stage.tools,
            splits=tuple(sorted(plan.splits, key=lambda split: split.number)),
            batch_id=f"{new_token():016x}",
            of_batch={name: batch_value(name, plan) for name in stage.of_batch},
        )
        schema = pa.schema([*stage.source, pa.field(NOTE, pa.binary())])
        numbers = pa.RecordBatch.from_pydict({"id": list(range(len(plan.splits)))})
        told = vector_task(tools, stage.vector, schema, f"{tools.batch_id}-0", iter([numbers]))
        texts = [text for batch in told for text in batch.column(0).to_pylist()]
        return [decode(Report, json.loads(text), where="a task's report") for text in texts]


class VectorDesk(Desk):
    """A desk without Spark."""

    def _open(self) -> Lading:
        return VectorLading(self.path / "home", user="tester")


@pytest.fixture
def vector_desk(tmp_path: Path) -> Iterator[VectorDesk]:
    made = VectorDesk(tmp_path)
    yield made
    made.lading.close()
