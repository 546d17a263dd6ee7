"""The Spark side."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import formatting
from lading.console.desk import Console, Visitor
from lading.console.layout import Page, frame, job_path, to_login
from lading.console.spark_glance import SparkGlance, StageGlance, glance_or_none
from lading.console.widgets.basic import Banner, Tiles, box, text
from lading.console.widgets.live import Column, LiveTable
from lading.pipeline.pools import is_of_a_job, pool_of
from lading.service.views.build import redacted

_EXECUTORS = (
    Column(name="address", label="Executor"),
    Column(name="tasks", label="Running tasks", is_number=True),
    Column(name="memory", label="Storage memory", is_number=True),
)
_STAGES = (
    Column(name="stage", label="Runs for"),
    Column(name="done", label="Tasks done", is_number=True),
    Column(name="active", label="Running", is_number=True),
    Column(name="failed", label="Failed", is_number=True),
)


def add_spark(console: Console) -> None:
    """The page at `/spark`."""

    @ui.page("/spark")
    async def spark(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Spark", here="/spark") as page:
            page.every(_SparkView(page).refresh)
        return None


class _SparkView:
    def __init__(self, page: Page) -> None:
        self._page = page
        text("h1", "Spark")
        self._said = Banner()
        with box("div", "ld-stack") as self._running:
            names = {"version": "Version", "master": "Master", "cores": "Parallel tasks", "jobs": "Running Spark jobs"}
            self._tiles = Tiles(names)
            with box("div", "ld-panel"):
                self._stages = LiveTable("Running stages", _STAGES, empty="No stage runs now.", shows_caption=True)
            with box("div", "ld-panel"):
                self._executors = LiveTable("Executors", _EXECUTORS, empty="No executor.", shows_caption=True)
        self._running.set_visibility(False)
        with box("div", "ld-panel ld-pad ld-stack"):
            text("h2", "The scheduler of this service")
            self._scheduler = text("p", "", "ld-muted")

    async def refresh(self) -> None:
        """Look, without starting anything."""
        console, visitor = self._page.console, await self._page.visitor()
        self._scheduler.set_text(await console.ask(scheduler_words, console, visitor))
        try:
            found = await console.ask(glance_or_none)
        except Exception as error:  # noqa: BLE001 - shown: what py4j raises when the JVM is gone has no common class
            self._said.show("Spark does not answer", redacted(f"{type(error).__name__}: {error}"), "bad")
            return
        self._running.set_visibility(found is not None)
        if found is None:
            self._said.show("Spark is not running", "It starts with the first job that needs it.", "idle")
            return
        self._said.show("")
        self._show(found, await console.ask(jobs_by_pool, console, visitor))

    def _show(self, spark: SparkGlance, jobs: Mapping[str, str]) -> None:
        self._tiles.show("version", spark.version, spark.application_id)
        self._tiles.show("master", spark.master)
        self._tiles.show("cores", formatting.count(spark.parallelism))
        self._tiles.show("jobs", formatting.count(len(spark.jobs)))
        self._stages.show(
            [
                {
                    "key": f"{stage.stage_id}.{stage.attempt}",
                    "stage": stage_cell(stage, jobs),
                    "done": f"{stage.completed:,} of {stage.tasks:,}",
                    "active": formatting.count(stage.active),
                    "failed": {"text": formatting.count(stage.failed), "tone": "bad" if stage.failed else ""},
                }
                for stage in spark.stages
            ]
        )
        self._executors.show(
            [
                {
                    "key": executor.address,
                    "address": {"text": executor.address, "mono": True},
                    "tasks": formatting.count(executor.running_tasks),
                    "memory": f"{formatting.size(executor.used_bytes)} of {formatting.size(executor.total_bytes)}",
                }
                for executor in spark.executors
            ]
        )


def jobs_by_pool(console: Console, visitor: Visitor) -> dict[str, str]:
    """Names of the jobs that a visitor may see."""
    records = (stored.record for stored in console.lading.store.list_jobs())
    return {pool_of(record.job_id): str(record.full_name) for record in records if visitor.may_see(record)}


def stage_cell(stage: StageGlance, jobs: Mapping[str, str]) -> dict[str, str]:
    """For whom a stage runs. Of a job that a visitor may not see, no more is said than that there is one."""
    note = f"Stage {stage.stage_id}, {stage.name}"
    if stage.pool in jobs:
        return {"text": jobs[stage.pool], "href": job_path(jobs[stage.pool]), "note": note}
    return {"text": "Another job" if is_of_a_job(stage.pool) else "A query", "note": f"Stage {stage.stage_id}"}


def scheduler_words(console: Console, visitor: Visitor) -> str:
    """What the scheduler does, as far as the visitor may see its jobs."""
    if console.scheduler is None:
        return "This service shows jobs; it does not run them."
    seen = {stored.record.job_id for stored in console.lading.store.list_jobs() if visitor.may_see(stored.record)}
    glances = [glance for job_id, glance in console.scheduler.snapshot().items() if job_id in seen]
    busy = sum(bool(getattr(glance, "is_busy", False)) for glance in glances)
    state = "runs" if console.scheduler.is_alive else "does not beat"
    jobs = f"{formatting.count(len(glances))} {formatting.plural(len(glances), 'jobs')}"
    whose = "" if visitor.rights is None else " of yours"
    return f"It {state}, looks after {jobs}{whose}, and {formatting.count(busy)} of them {_are(busy)} at work now."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
