"""What opens a job: a coordinator that has not started, and where a job begins that has no head yet."""

from __future__ import annotations

import json

from lading.commit.coordinator import Coordinator, CoordinatorPorts
from lading.ids import JobId, new_token
from lading.jobs.record import JobRecord
from lading.model.codec import decode
from lading.model.positions import Positions
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import RunnerContext
from lading.service.runtime.stagers import NoStager
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable


def new_coordinator(tools: RunnerContext, compiled: Compiled, target: LakeTable) -> Coordinator:
    """A coordinator that commits without reading rows, and has not started."""
    world = CoordinatorPorts(
        table=target,
        bills=target.bills,
        planner=Planner(compiled.source, tools.clock),
        stager=NoStager(),
        clock=tools.clock,
        new_token=new_token,
        followers=(tools.store,),
    )
    return Coordinator(compiled.job, world, tools.incarnation)


def created_positions(store: MetadataStore, record: JobRecord) -> Positions | None:
    """Where a job begins that has no head yet; None when CREATE has finished, or was done by an older Lading."""
    kept = store.read_setting(opening_key(record.job_id)) if record.last_seen is None else None
    return decode(Positions, json.loads(kept), where=f"The start of job {record.full_name}") if kept else None


def opening_key(job_id: JobId) -> str:
    """Where the store keeps the positions of a job until its table has them."""
    return f"created/{job_id}"
