"""The form with services: two `lading serve` that share a PostgreSQL, with Spark, S3, streams and all their doors.

One has its Spark in its own process, the other executors of a standalone cluster. While one thread kills them, people
pause, alter and move jobs, others look after the tables, and `lading clean` removes what is left behind.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TypeVar

from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import CommitFailedException

from lading.clock import SystemClock
from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.service.facade import Lading
from tests.crash.load_stories import Sender
from tests.crash.state_stories import CountStory, Folder
from tests.soak.counts import Counts
from tests.soak.journal import Journal
from tests.soak.killer import Killer
from tests.soak.lakes import SharedLake
from tests.soak.maintenance import maintain_shared
from tests.soak.patience import Patience
from tests.soak.service import LADING, NoAnswerError, Service

Answer = TypeVar("Answer")
STATE = "state"
LEASE_S, PATIENCE_S, END_S, QUIET_S, OLD_S = 4.0, 300.0, 900.0, 20.0, 90.0
"""OLD_S: files on a disk that are older are given an age at which `lading clean` takes what nobody names."""
COLUMNS = {
    "files": "k, n, place, number",
    "kafka": "k, n, _partition, _offset",
    "kinesis": "`key`, n, _shard, _sequence",
}


@dataclass(slots=True)
class Lane:
    """One job."""

    name: str
    source: str
    sender: Sender
    lake: SharedLake
    counts: Counts
    journal: Journal | None = None

    @property
    def statements(self) -> str:
        """Of the job and its table."""
        access = self.lake.access
        keys = f'"s3.access_key"="{access.access_key}", "s3.secret_key"="{access.secret_key}"'
        reach = f'"s3.endpoint"="{access.endpoint}", "s3.region"="us-east-1", "use_path_style"="true"'
        properties = f"TBLPROPERTIES ({reach}, {keys})" if self.lake.place.startswith("s3") else ""
        columns = "(k STRING, n BIGINT, place STRING, number STRING)"
        return (
            f"CREATE DATABASE {self.name}; USE {self.name};"
            f"CREATE TABLE t {columns} USING {self.lake.form} LOCATION '{self.lake.place}' {properties};"
            f'CREATE JOB {self.name} PROPERTIES({self.sender.job}, "max_interval"="1") ON STREAMING DO '
            f"INSERT INTO t SELECT {COLUMNS[self.source]} FROM {self.sender.source}"
        )


class ServicesSoak:
    """What people and other engines do, and the reading along."""

    def __init__(self, desk: Lading, lanes: list[Lane], state: SharedCounts, killer: Killer, rng: Random) -> None:
        self._desk, self._lanes, self._state, self._killer, self._rng = desk, lanes, state, killer, rng
        self._places = {lane.name: lane.lake for lane in lanes}
        self.done, self._pause = Counts(), threading.Event()
        self._patience = Patience(PATIENCE_S, SystemClock())
        self._to_resume: set[str] = set()
        self._moves = 0

    def add_state(self, name: str, lake: SharedLake) -> None:
        """A table of a job with state, that others look after as well."""
        self._places[name] = lake

    def run(self, until_s: float) -> None:
        """Until then, and then to a quiet end."""
        clock = SystemClock()
        self._killer.start()
        try:
            while clock.monotonic_s() < until_s:
                self._put()
                self._happen()
                self._resume_all()
                self._look()
                self._pause.wait(self._rng.uniform(0.1, 1.0))
        finally:
            self._killer.close()
        self._end()

    def _put(self) -> None:
        for lane in self._rng.sample(self._lanes, max(1, len(self._lanes) // 2)):
            lane.sender.put(self._rng.randint(5, 60))
        if self._rng.random() < 0.3:
            self._state.put(1)

    def _happen(self) -> None:
        """One thing."""
        events: list[tuple[int, Callable[[], None]]] = [
            (4, lambda: None),
            (3, self._resize),
            (3, self._pause_a_while),
            (2, self._alter),
            (4, self._move),
            (3, self._maintain),
            (1, self._clean),
        ]
        self._rng.choices([event for _, event in events], [weight for weight, _ in events])[0]()

    def _look(self) -> None:
        """Read what was committed; who stands still, or has stopped for a reason of its own, is stuck."""
        for lane in self._lanes:
            self._read(lane)
            assert lane.journal is not None
            last, lacks = lane.journal.last, lane.journal.lacks(lane.sender.sent)
            self._patience.look(lane.name, last.seq if last else -1, lane.counts, has_more=lacks > 0)
        self._killer.commits = sum(lane.counts.done["commits"] for lane in self._lanes)
        for record in self._paused():
            self._look_at(record)

    def _paused(self) -> list[JobRecord]:
        stored = [one.record for one in self._desk.store.list_jobs()]
        return [record for record in stored if record.state is JobState.PAUSED]

    def _look_at(self, record: JobRecord) -> None:
        reason = record.reason
        if reason is None:
            return
        if reason.code is ReasonCode.MANUAL_PAUSE_ERR or record.name in self._to_resume:
            return
        self.done.done["pauses by Lading itself"] += 1
        if reason.needs_attention:
            self.done.blame("STUCK", f"{record.name} waits for a person: {reason.message}")
            self._to_resume.add(record.name)

    def _read(self, lane: Lane) -> None:
        assert lane.journal is not None
        lane.journal.read_on(self._desk.catalog.open_table(lane.name, "t"))

    def _resize(self) -> None:
        lane = self._rng.choice(self._lanes)
        changes = lane.sender.resize(self._rng.randint(1, 6))
        self.done.done["partitions, shards and files a time that came or went"] += changes

    def _say(self, text: str) -> bool:
        """To any service. Whether it was done: it may be refused, or cut off by a kill."""
        return self._ask(lambda service: service.sql(text)) is not None

    def _ask(self, how: Callable[[Service], Answer]) -> Answer | None:
        ready = [service for service in self._killer.services if service.is_ready]
        if not ready:
            self.done.done["statements for which no service was there"] += 1
            return None
        self.done.done["statements"] += 1
        service = self._rng.choice(ready)
        try:
            return how(service)
        except NoAnswerError as error:
            self.done.done["statements that were refused or cut off"] += 1
            is_stuck = error.was_late and service.is_ready
            self.done.expect(not is_stuck, "STUCK", f"{service.home.name} does not answer: {error}")
            return None

    def _still(self, name: str) -> bool:
        """Pause a job, and wait until no batch of it runs. It is resumed by the round."""
        self._to_resume.add(name)
        if not self._say(f"PAUSE JOB WHERE jobName = '{name}'"):
            return False
        clock = SystemClock()
        end_s = clock.monotonic_s() + QUIET_S
        while clock.monotonic_s() < end_s:
            record = self._desk.any_job(name)
            if record.state is JobState.PAUSED and record.task is None:
                return True
            self._pause.wait(0.1)
        self.done.done["jobs whose batch did not end in time"] += 1
        return False

    def _resume_all(self) -> None:
        for name in sorted(self._to_resume):
            record = self._desk.any_job(name)
            if record.state is JobState.PAUSED and not self._say(f"RESUME JOB WHERE jobName = '{name}'"):
                continue
            self._to_resume.discard(name)

    def _pause_a_while(self) -> None:
        self._to_resume.add(name := self._rng.choice(sorted(self._places)))
        self._say(f"PAUSE JOB WHERE jobName = '{name}'")
        self._pause.wait(self._rng.uniform(0, 1))

    def _alter(self) -> None:
        lane = self._rng.choice(self._lanes)
        properties = f'"s3.max_batch_files"="{self._rng.randint(1, 8)}"'
        if lane.source != "files":
            many, tasks = self._rng.choice((20, 100, 1000)), self._rng.randint(1, 4)
            properties = f'"max_batch_rows"="{many}", "desired_concurrent_number"="{tasks}"'
        if self._still(lane.name) and self._say(f"ALTER JOB {lane.name} PROPERTIES ({properties})"):
            self.done.done["limits altered"] += 1

    def _move(self) -> None:
        """Back to a row that was loaded: it and those behind it come again, once."""
        lanes = [lane for lane in self._lanes if lane.source != "files"]
        lane = self._rng.choice(lanes) if lanes else None
        if lane is None or lane.journal is None or not self._still(lane.name):
            return
        self._read(lane)
        if not (moves := lane.journal.way_back(self._rng)):
            return
        path, body = f"/api/jobs/{lane.name}/position", {"positions": moves}
        shown = self._ask(lambda service: service.post(path, {**body, "dry_run": True}))
        if shown is None:
            return
        self._moves += 1
        reason = f"soak-{self._moves}"
        lane.journal.asked[reason] = moves
        self.done.done["moves asked for"] += 1
        self._ask(lambda service: service.post(path, {**body, "reason": reason, "seen": shown["seen"]}))

    def _maintain(self) -> None:
        """Everything is read before: afterwards its files are others."""
        name = self._rng.choice(sorted(self._places))
        if not self._still(name):
            return
        for lane in self._lanes:
            if lane.name == name:
                self._read(lane)
        # Who removes files that the format does not know takes state away: such a job stops and says so (engines.md).
        is_all = self._rng.random() < 0.5 and not name.startswith(STATE)
        try:
            maintain_shared(self._places[name], removes_orphans=is_all)
        except (CommitFailedException, DeltaError) as error:
            self.done.done["maintenances that gave way"] += 1
            print(f"maintenance of {name}: {error}", flush=True)
            return
        self.done.done["maintenances by others"] += 1
        self.done.done["of these with orphans removed"] += is_all

    def _clean(self) -> None:
        """What has been on a disk for a while is made old enough. In S3 it gets old by itself."""
        for lake in self._places.values():
            for path in Path(lake.place).rglob("*") if lake.place.startswith("/") else ():
                if path.is_file() and "_delta_log" not in path.parts and time.time() - path.stat().st_mtime > OLD_S:
                    os.utime(path, (time.time() - 7200,) * 2)
        home = self._rng.choice([service.home for service in self._killer.services if service.is_ready] or [None])
        where = ["--home", str(home)] if home else self._cleaner
        command = [*LADING, "clean", "--older-than", "1 hours", *where]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        self.done.done["cleans"] += said.returncode in (0, 1)
        if said.returncode not in (0, 1):
            self.done.done["cleans that were cut off"] += 1
            print(f"lading clean ended with {said.returncode}: {said.stderr[-500:]}", flush=True)
        if told := re.search(r"^(\d+) files", said.stdout, re.MULTILINE):
            self.done.done["files that clean removed"] += int(told[1])

    @cached_property
    def _cleaner(self) -> list[str]:
        """A home of its own in the same store, for when no service answers."""
        where = ["--home", str(self._desk.home.path.with_name("cleaner")), "--store", self._lanes[0].lake.store]
        subprocess.run([*LADING, "init", *where], check=True, capture_output=True, timeout=300)
        return where

    def _end(self) -> None:
        """All that is left is loaded without a kill, and then everything is read."""
        self._state.end()
        self._patience.excuse()
        clock = SystemClock()
        end_s = clock.monotonic_s() + END_S
        while (left := self._left()) and clock.monotonic_s() < end_s:
            self._look()
            self._to_resume |= {record.name for record in self._paused()}
            self._resume_all()
            self._pause.wait(1.0)
        self.done.expect(not left, "STUCK", f"what is left cannot be loaded: {left}")
        for service in self._killer.services:
            code = service.end()
            self.done.expect(code == 0, "STUCK", f"{service.home.name} ended with status {code}: see {service.log}")
        for lane in self._lanes:
            assert lane.journal is not None
            lane.journal.end(lane.sender.sent)
            is_clean = self._desk.verify(lane.name).is_clean
            lane.counts.expect(is_clean, "PROGRESS-MISMATCH", f"lading verify {lane.name} finds something")

    def _left(self) -> Mapping[str, int]:
        """By job, how many rows it has not read."""
        lacks = {lane.name: lane.journal.lacks(lane.sender.sent) for lane in self._lanes if lane.journal is not None}
        for name in self._state.expected:
            totals = self._desk.any_job(f"{STATE}_{name}").totals
            lacks[name] = self._state.rows - (totals.rows.total if totals is not None else 0)
        return {name: count for name, count in lacks.items() if count > 0}


class SharedCounts(CountStory):
    """With its tables where all services find them."""

    def __init__(self, path: Path, rng: Random) -> None:
        super().__init__(STATE, "delta", rng, Folder(path / "state.in"))
        self._lake = path / "lake" / STATE

    @property
    def rows(self) -> int:
        return len(self._rows["rows"])

    def place(self, name: str) -> str:
        return str(self._lake / name)

    @property
    def statements(self) -> str:
        made = re.sub(
            r"CREATE TABLE (\w+) (\([^;]*\)) USING delta;",
            lambda found: f"CREATE TABLE {found[1]} {found[2]} USING delta LOCATION '{self.place(found[1])}';",
            super().statements,
        )
        return made.replace('"watermark.column"', '"max_interval"="1", "watermark.column"')
