"""What opens a job: a coordinator that has not started."""

from __future__ import annotations

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.errors import HeadLostError
from lading.ids import JobId, new_token
from lading.model.bill import Bill
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import RunnerContext
from lading.service.runtime.stagers import NoStager
from lading.tables.base import LakeTable


def new_coordinator(tools: RunnerContext, compiled: Compiled, target: LakeTable) -> Coordinator:
    """A coordinator that commits without reading rows, and has not started."""
    world = CoordinatorPorts(
        table=target,
        bills=target.bills,
        planner=Planner(compiled.source.driver, tools.clock),
        stager=NoStager(),
        clock=tools.clock,
        new_token=new_token,
        followers=(tools.store,),
    )
    return Coordinator(compiled.job, world, tools.incarnation)


def newest_bills(table: LakeTable, job_id: JobId, limit: int) -> list[Bill]:
    """The newest bills of a job, newest first."""
    found: list[Bill] = []
    head = table.read_head_unchecked(job_id)
    while head is not None and len(found) < limit:
        try:
            found.append(table.bills.read(job_id, head))
        except HeadLostError:
            break
        head = found[-1].continues
    return found
