"""`lading run` and `lading verify`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lading.cli.homes import HOME, SPARK_CONF, STORE, require_home
from lading.cli.options import DEFAULTS
from lading.cli.remote import RemoteLading, RemoteVerdict
from lading.cli.sql import refuse_spark_conf, spark_of
from lading.cli.waiting import names_to_watch, remark, wait_until_rest
from lading.clock import SystemClock
from lading.jobs.batches import NOT_LOADED
from lading.jobs.record import JobRecord, JobState
from lading.model.bill import Bill

if TYPE_CHECKING:
    from lading.service.facade import Lading
    from lading.service.views.verify import Verdict

PAUSED_EXIT = 3
LEFT_OUT_EXIT = 4
CUT_OFF_EXIT = 5
LAG_EVERY_S = 2.0
"""Asking how far a job is behind lists everything there is."""


def run(
    jobs: Annotated[
        list[str] | None, typer.Argument(help="Jobs to run; all that nobody has paused when left out.")
    ] = None,
    home: HOME = DEFAULTS.home,
    timeout: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    store: STORE = "",
    spark_conf: SPARK_CONF = None,
) -> None:
    """Load everything that is there now.

    Exit status 0: caught up; 3: a job paused on an error; 4: caught up, and files are there that are not loaded; 5: the
    time was over before all was loaded; 130: Ctrl-C.
    """
    from lading.cli.remote import find_remote
    from lading.service.facade import Lading

    console = Console(highlight=False)
    remote = find_remote(require_home(home))
    if remote is not None:
        refuse_spark_conf(spark_conf)
        raise typer.Exit(_watch(remote, jobs, timeout, console))
    with Lading(home, store_url=store, spark=spark_of(home, spark_conf)) as lading:
        chosen = [lading.any_job(name) for name in jobs] if jobs else lading.live_jobs()
        stuck = [] if jobs else lading.stuck_jobs()
        names = [str(record.full_name) for record in chosen]
        if not names:
            if not stuck:
                console.print("There is no job to run.")
            raise typer.Exit(_tell_paused(stuck, console))
        with Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console
        ) as progress:
            board = _Board(progress, names, lambda record: lading.runner(record.job_id).behind())
            with _Interrupts(console) as interrupts, logs_above():
                records = lading.run(names, timeout=timeout, on_progress=board.note, stop=interrupts.stop)
            board.finish(records)
        has_left_out = _tell_surveys(lading, records, console)
        is_cut_off = _tell_cut_off(lading, records, console)
    paused = _tell_paused([*stuck, *(each for each in records.values() if each.state is JobState.PAUSED)], console)
    if interrupts.number:
        raise typer.Exit(128 + interrupts.number)
    if paused or has_left_out or is_cut_off:
        raise typer.Exit(PAUSED_EXIT if paused else CUT_OFF_EXIT if is_cut_off else LEFT_OUT_EXIT)


def _tell_paused(records: Sequence[JobRecord], console: Console) -> int:
    """The exit status."""
    for record in records:
        why = record.reason.message if record.reason is not None else ""
        console.print(f"{record.full_name} is PAUSED: {why}", style="red", markup=False)
    return PAUSED_EXIT if records else 0


@contextmanager
def logs_above() -> Iterator[None]:
    """While a display moves, lines of the log, those of Spark among them, are written above it: rich has put its own
    stream in the place of standard error, and the handlers still have the one from before.
    """
    handlers = [each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler)]
    before = {handler: handler.setStream(sys.stderr) for handler in handlers if handler.stream is sys.__stderr__}
    try:
        yield
    finally:
        for handler, stream in before.items():
            if stream is not None:
                handler.setStream(stream)


class _Interrupts:
    """The first Ctrl-C or SIGTERM lets the running commit end, the second ends at once: every step allows that."""

    def __init__(
        self, console: Console, told: str = "Ending after the running commit; once more ends at once."
    ) -> None:
        self.stop = threading.Event()
        self.number = 0
        self._console = console
        self._told = told
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.stop.is_set():
            os._exit(128 + number)
        self.number = number
        self.stop.set()
        self._console.print(self._told)


def _tell_cut_off(lading: Lading, records: dict[str, JobRecord], console: Console) -> bool:
    """Say which jobs had more to load when the time was over."""
    cut_off = [record for record in records.values() if lading.runner(record.job_id).is_cut_off]
    for record in cut_off:
        why = f"; {record.runtime_message}" if record.runtime_message else ""
        console.print(f"{record.full_name} has not caught up: the time is over{why}", style="yellow", markup=False)
    return bool(cut_off)


def _tell_surveys(lading: Lading, records: dict[str, JobRecord], console: Console) -> bool:
    """Say what is in the sources and was not loaded; whether some of it never will be."""
    has_left_out = False
    for name, record in records.items():
        survey = lading.runner(record.job_id).survey
        if survey is not None and survey.remark and record.state is not JobState.PAUSED:
            console.print(f"{name}: {survey.remark}", style="yellow", markup=False)
            has_left_out = has_left_out or any(survey.left_out.values())
    return has_left_out


def _watch(remote: RemoteLading, jobs: list[str] | None, timeout: float | None, console: Console) -> int:
    """A service runs the jobs already: wait until they have caught up. The exit status, as without a service."""
    names = names_to_watch(remote.jobs(), jobs)
    if not names:
        console.print("There is no job to run.")
        return 0
    with (
        Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console) as progress,
        _Interrupts(console, "Waiting no longer; the service goes on.") as interrupts,
    ):
        console.print("A service runs the jobs of this home; waiting until they have caught up.")
        lines = {name: progress.add_task(f"{name}: starting", total=None) for name in sorted(names)}
        waited = wait_until_rest(
            remote,
            names,
            SystemClock(),
            timeout,
            interrupts.stop,
            lambda job: progress.update(lines[job["name"]], description=_line(job)),
        )
        for line in lines.values():
            progress.update(line, total=1, completed=1)
    for job in waited.busy if not interrupts.number else ():
        console.print(f"{job['name']} has not caught up: the time is over", style="yellow", markup=False)
    paused = [job for job in waited.jobs if job["state"] == "PAUSED"]
    for job in paused:
        why = (job["reason"] or {}).get("message", "")
        console.print(f"{job['name']} is PAUSED: {why}", style="red", markup=False)
    remarks = {job["name"]: remark(job) for job in waited.jobs if remark(job) and job not in paused}
    for name, said in remarks.items():
        console.print(f"{name}: {said}", style="yellow", markup=False)
    if interrupts.number:
        return 128 + interrupts.number
    has_left_out = any(said.startswith(NOT_LOADED) for said in remarks.values())
    return PAUSED_EXIT if paused else CUT_OFF_EXIT if waited.busy else LEFT_OUT_EXIT if has_left_out else 0


def _line(job: dict[str, Any]) -> str:
    """One job, as `_Board` shows it without a service."""
    totals, lag = job["totals"], job.get("lag") or {}
    files = f"{totals['source_files']:,} files, " if totals.get("source_files") else ""
    behind = f", {lag['behind']:,} {lag['unit']} behind" if lag.get("behind") else ""
    bad, rate = totals["rows"].get("error", 0), job.get("rows_per_s") or 0.0
    told = f"{files}{totals['rows']['loaded']:,} rows loaded, {bad:,} bad, {rate:,.0f} rows/s{behind}"
    return f"{job['name']}: {job['state']}; {told}"


def verify(job: Annotated[str, typer.Argument(help="The job.")], home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Compare a job's bills with its table. Exit status 1 when they disagree."""
    from lading.cli.remote import find_remote
    from lading.service.facade import Lading

    remote = find_remote(require_home(home))
    verdict: Verdict | RemoteVerdict
    if remote is not None:
        verdict = remote.verify(job)
    else:
        with Lading(home, store_url=store) as lading:
            verdict = lading.verify(job)
    if verdict.is_clean:
        typer.echo(f"{job}: {verdict.told}; {verdict.bills} bills, {verdict.rows:,} rows")
        return
    for finding in verdict.findings:
        typer.echo(finding)
    raise typer.Exit(1)


class _Board:
    """One line for each job. Jobs report from threads of their own."""

    def __init__(self, progress: Progress, names: list[str], behind: Callable[[JobRecord], str]) -> None:
        self._progress = progress
        self._behind = behind
        self._asked_s = dict.fromkeys(names, float("-inf"))
        self._lags = dict.fromkeys(names, "")
        self._clock = SystemClock()
        self._began = self._clock.monotonic_s()
        self._lock = threading.Lock()
        self._lines = {name: progress.add_task(f"{name}: starting", total=None) for name in names}
        self._rows = dict.fromkeys(names, 0)

    def note(self, record: JobRecord, bill: Bill) -> None:
        now, name = self._clock.monotonic_s(), str(record.full_name)
        if now - self._asked_s[name] >= LAG_EVERY_S:
            self._asked_s[name] = now
            self._lags[name] = self._behind(record)
        with self._lock:
            self._rows[name] += bill.tally.rows.total
            rate = self._rows[name] / max(self._clock.monotonic_s() - self._began, 1e-9)
            totals = bill.totals
            files = f"{totals.source_files:,} files, " if totals.source_files else ""
            text = (
                f"{name}: {files}{totals.rows.loaded:,} rows loaded, "
                f"{totals.rows.error:,} bad, {rate:,.0f} rows/s, {self._lags[name]}"
            )
            self._progress.update(self._lines[name], description=text)

    def finish(self, records: dict[str, JobRecord]) -> None:
        for name, record in records.items():
            line = self._lines[name]
            was = self._progress.tasks[line].description.removeprefix(f"{name}: ")
            shown = "nothing new" if was == "starting" and record.state is not JobState.PAUSED else was
            shown = shown.replace(f", {self._lags[name]}", "") if self._lags[name] else shown.removesuffix(", ")
            self._progress.update(line, description=f"{name}: {record.state.value}; {shown}", total=1, completed=1)
