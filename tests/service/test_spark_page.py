"""What the console says of Spark, while Spark is at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from lading.console.desk import Console, Visitor
from lading.console.spark_glance import SparkGlance, look_at
from lading.console.spark_page import jobs_by_pool, stage_cell
from lading.console.step_timings import StepMemory
from lading.console.visits import Visits
from lading.pipeline.pools import pool_of
from lading.service.security.privileges import Identity
from lading.service.security.users import ROOT
from lading.service.views.jobs import JobViews
from tests.service.conftest import Desk

WITHIN_S = 180.0


def wait_for(gate: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while not Path(gate).exists():
        time.sleep(0.02)
    yield from batches


def running(spark: SparkSession, pool: str, gate: Path) -> threading.Thread:
    """A stage that runs in a pool until the gate is there."""

    def work() -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        spark.range(0, 1, 1, 1).mapInArrow(partial(wait_for, str(gate)), "id long").collect()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def look_until(spark: SparkSession, tasks: int) -> SparkGlance:
    """Spark tells of its stages and of its executors at moments of its own."""
    until = time.monotonic() + WITHIN_S
    while True:
        glance = look_at(spark.sparkContext)
        counts = sum(stage.active for stage in glance.stages), sum(one.running_tasks for one in glance.executors)
        if counts == (tasks, tasks):
            return glance
        assert time.monotonic() < until, glance
        time.sleep(0.05)


def test_stages_are_told_by_job_to_those_who_may_see_it(desk: Desk, spark: SparkSession, tmp_path: Path) -> None:
    desk.table()
    desk.create()
    lading, gate = desk.lading, tmp_path / "gate"
    console = Console(
        lading=lading, sights=JobViews(lading), memory=StepMemory(lading.clock), visits=Visits(lading.clock)
    )
    lading.access.create_user("stranger", by=ROOT)
    own = pool_of(lading.job("j").job_id)
    threads = [running(spark, own, gate), running(spark, "default", gate)]
    try:
        glance = look_until(spark, 2)
    finally:
        gate.touch()
        for thread in threads:
            thread.join()
    assert len(glance.jobs) == 2
    stages = {stage.pool: stage for stage in glance.stages}
    everything = jobs_by_pool(console, Visitor(user="root"))
    cell = stage_cell(stages[own], everything)
    assert (cell["text"], cell["href"]) == ("j", "/jobs/j")
    assert stage_cell(stages["default"], everything)["text"] == "A query"
    nothing = jobs_by_pool(console, Visitor(user="stranger", rights=lading.access.rights(Identity(user="stranger"))))
    assert nothing == {}
    hidden = stage_cell(stages[own], nothing)
    assert hidden == {"text": "Another job", "note": f"Stage {stages[own].stage_id}"}
