"""The Spark side, if it runs. Looking never starts it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGlance:
    """A stage that runs now."""

    stage_id: int
    attempt: int
    name: str
    pool: str
    """Where Spark shares its cores out: one for each job of Lading."""
    tasks: int
    active: int
    completed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorGlance:
    """A process that runs tasks. In local mode the driver is one."""

    address: str
    running_tasks: int
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkGlance:
    """Spark at one moment."""

    version: str
    master: str
    application_id: str
    parallelism: int
    executors: tuple[ExecutorGlance, ...]
    jobs: tuple[int, ...]
    stages: tuple[StageGlance, ...]


def glance_or_none() -> SparkGlance | None:
    """Spark as it is; None while this process has none. Blocks."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is None:
        return None
    context = pyspark.SparkContext._active_spark_context  # noqa: SLF001 - no public way to ask without starting one
    return look_at(context) if context is not None else None


def look_at(context: Any) -> SparkGlance:
    """What a context says of itself."""
    tracker = context.statusTracker()
    return SparkGlance(
        version=str(context.version),
        master=str(context.master),
        application_id=str(context.applicationId),
        parallelism=int(context.defaultParallelism),
        executors=tuple(_executors(context)),
        jobs=tuple(sorted(tracker.getActiveJobsIds())),
        stages=tuple(_stages(context, tracker)),
    )


def _stages(context: Any, tracker: Any) -> Iterable[StageGlance]:
    for number in sorted(tracker.getActiveStageIds()):
        info = tracker.getStageInfo(number)
        if info is not None:  # It may have ended meanwhile.
            yield StageGlance(
                stage_id=number,
                attempt=info.currentAttemptId,
                name=str(info.name),
                pool=_pool_of(context, number),
                tasks=info.numTasks,
                active=info.numActiveTasks,
                completed=info.numCompletedTasks,
                failed=info.numFailedTasks,
            )


def _pool_of(context: Any, number: int) -> str:
    from py4j.protocol import Py4JJavaError

    try:
        return str(context._jsc.sc().statusStore().lastStageAttempt(number).schedulingPool())  # noqa: SLF001 - as below
    except Py4JJavaError:  # It ended meanwhile, and Spark has forgotten it.
        return ""


def _executors(context: Any) -> Iterable[ExecutorGlance]:
    infos = context._jsc.sc().statusTracker().getExecutorInfos()  # noqa: SLF001 - Python's tracker has no executors
    for info in infos:
        yield ExecutorGlance(
            address=f"{info.host()}:{info.port()}",
            running_tasks=int(info.numRunningTasks()),
            used_bytes=int(info.usedOnHeapStorageMemory()),
            total_bytes=int(info.totalOnHeapStorageMemory()),
        )
