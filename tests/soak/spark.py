"""The form on Spark: the driver, Spark's Java and its Python workers are killed, and so is the broker.

A life is a process that runs all jobs, as a service does. Jobs without state are read by the journal; of those with
state DuckDB computes the results.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

from lading.clock import SystemClock
from lading.commit.steps import STEP_NAMES
from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobState
from lading.service.facade import Lading
from lading.tables.registry import kind_of
from lading.testing.kinesis.server import KinesisServer, serve_kinesis
from tests.crash.load_stories import RUN, FilesSender, KafkaSender, KinesisSender, Sender, Story
from tests.crash.state_stories import CountStory, Folder
from tests.soak.counts import Counts
from tests.soak.journal import Journal
from tests.soak.lakes import FolderLake
from tests.soak.maintenance import maintain
from tests.soak.processes import kill, processes_below, wait_until_gone
from tests.support.kafka_broker import KafkaBroker, serve_kafka

PLACES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "settle.before")))
LANES = (
    ("files", "delta"),
    ("files", "iceberg"),
    ("kafka", "iceberg"),
    ("kinesis", "delta"),
    ("kinesis", "paimon"),
)
STATE = "state"
"""The name of the two jobs with state: the first row of each key, and counts by the minute."""
PATIENCE_S, END_S, GONE_S = 180.0, 600.0, 30.0


class Driver:
    """One life."""

    def __init__(self, command: Sequence[str], log: Path, patience_s: float = PATIENCE_S) -> None:
        self._patience_s, self._log = patience_s, log
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
            )
        self.was_late = False
        self.is_ready = self._answer() == "ready"
        if not self.is_ready:
            self._process.wait()

    @property
    def code(self) -> int | None:
        """How it ended; None: it lives."""
        return self._process.poll()

    def sql(self, text: str) -> str:
        """What went wrong; also that the driver is gone."""
        try:
            print(text, file=self._process.stdin, flush=True)
        except OSError:
            return "the driver is gone"
        answer = self._answer()
        return "the driver is gone" if answer is None else answer

    def kill(self) -> None:
        """SIGKILL, and wait until its Spark is gone as well."""
        below = processes_below(self._process.pid)
        self._process.kill()
        self._process.wait()
        wait_until_gone(below, GONE_S)
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # What was not taken cannot be sent any more.
                    pipe.close()

    def kill_below(self, rng: Random, *, is_java: bool) -> bool:
        """SIGKILL Spark's Java, or one of its Python workers. Whether there was one."""
        below = processes_below(self._process.pid)
        able = [pid for pid, name in below.items() if name.startswith("java" if is_java else "python")]
        return bool(able) and kill(rng.choice(able))

    def judge(self, counts: Counts) -> None:
        """At the end of its life: it was killed, or lives and is killed now. All else is a finding."""
        counts.expect(not self.was_late, "STUCK", f"no answer for {self._patience_s:g} seconds: see {self._log}")
        if self.was_late or self.code == -signal.SIGKILL:
            counts.kill("drivers without an answer" if self.was_late else "drivers at a step")
            self._close()
            return
        told = f"the driver ended with status {self.code}: see {self._log}"
        counts.expect(self.code is None and self.is_ready, "STUCK", told)
        self.kill()
        counts.kill("drivers at any moment")

    def _answer(self) -> str | None:
        """None: it is gone, or gave no answer for so long that it was killed."""
        assert self._process.stdout is not None
        timer = threading.Timer(self._patience_s, self._give_up)
        timer.start()
        try:
            for line in self._process.stdout:
                if line.startswith('"'):  # Spark may print, too.
                    return str(json.loads(line))
        finally:
            timer.cancel()
        with suppress(subprocess.TimeoutExpired):  # It says no more, and is about to end: how, is looked at later.
            self._process.wait(GONE_S)
        return None

    def _give_up(self) -> None:
        self.was_late = True
        self._process.kill()


class SparkSoak:
    """A home with jobs that are killed."""

    def __init__(self, path: Path, rng: Random, senders: dict[tuple[str, str], Sender], broker: KafkaBroker | None):
        path.mkdir(parents=True)
        self._home, self._log, self._rng, self._broker = path / "home", path / "driver.log", rng, broker
        self.counts = {f"{source} to {form}": Counts() for source, form in senders} | {STATE: Counts()}
        self.done = Counts()
        """What happened to all of them at once."""
        self._stories = [
            Story(f"s{number}", form, sender) for number, ((_, form), sender) in enumerate(senders.items())
        ]
        self._state = CountStory(STATE, "delta", rng, Folder(path / "state.in"))
        self._journals: list[Journal] = []
        self._pause = threading.Event()
        with Lading(self._home) as lading:
            for story, counts in zip(self._stories, self.counts.values(), strict=False):
                story.sender.job += ', "max_interval"="1"'
                lading.sql(story.statements)
                lake = FolderLake(story.form, self._home / "warehouse" / story.name / "t")
                self._journals.append(Journal(lading.any_job(story.name).job_id, lake, counts))
            lading.sql(self._state.statements)

    def run(self, until_s: float) -> None:
        """Until then, and then to a quiet end."""
        clock = SystemClock()
        while clock.monotonic_s() < until_s:
            self._live()
            self._look()
        self._end()

    def _live(self) -> None:
        rng, done = self._rng, self.done
        is_at_step = rng.random() < 0.4
        failpoints = f"{rng.choice(PLACES)}=kill:{rng.randint(2, 12)}" if is_at_step else ""
        words = [str(self._home), str(rng.randint(1, 7)), failpoints]
        driver = Driver([sys.executable, "-m", "tests.soak.spark_driver", *words], self._log)
        done.done["lives"] += 1
        for _ in range(rng.randint(2, 12)):
            if driver.code is not None:
                break
            self._put()
            self._happen(driver)
            self._pause.wait(rng.uniform(0.5, 3))
        driver.judge(done)

    def _happen(self, driver: Driver) -> None:
        """One thing."""
        events: list[tuple[int, Callable[[Driver], None]]] = [
            (6, self._kill_worker),
            (2, self._kill_java),
            (2, self._resize),
            (2, self._pause_and_resume),
            (2, self._alter),
            (1, self._kill_broker),
        ]
        self._rng.choices([event for _, event in events], [weight for weight, _ in events])[0](driver)

    def _put(self) -> None:
        for story in self._stories:
            story.sender.put(self._rng.randint(10, 120))
        self._state.put(1)

    def _kill_worker(self, driver: Driver) -> None:
        if driver.kill_below(self._rng, is_java=False):
            self.done.kill("Python workers")

    def _kill_java(self, driver: Driver) -> None:
        if driver.kill_below(self._rng, is_java=True):
            self.done.kill("Java of Spark")

    def _kill_broker(self, driver: Driver) -> None:
        if self._broker is not None:
            self._broker.kill()
            self.done.kill("brokers")
            self._broker.start()

    def _resize(self, driver: Driver) -> None:
        story = self._rng.choice(self._stories)
        changes = story.sender.resize(self._rng.randint(1, 7))
        self.done.done["partitions, shards and files a time that came or went"] += changes

    def _pause_and_resume(self, driver: Driver) -> None:
        name = self._rng.choice(self._stories).name
        self._say(driver, f"PAUSE JOB WHERE jobName = '{name}'")
        self._pause.wait(self._rng.uniform(0, 1))
        self._say(driver, f"RESUME JOB WHERE jobName = '{name}'")

    def _alter(self, driver: Driver) -> None:
        story = self._rng.choice(self._stories)
        properties = f'"s3.max_batch_files"="{self._rng.randint(1, 8)}"'
        if not isinstance(story.sender, FilesSender):
            many, tasks = self._rng.choice((20, 100, 1000)), self._rng.randint(1, 7)
            properties = f'"max_batch_rows"="{many}", "desired_concurrent_number"="{tasks}"'
        self._say(driver, f"PAUSE JOB WHERE jobName = '{story.name}'")
        self._say(driver, f"ALTER JOB {story.name} PROPERTIES ({properties})")
        self._say(driver, f"RESUME JOB WHERE jobName = '{story.name}'")

    def _say(self, driver: Driver, text: str) -> None:
        """A statement may be refused, such as RESUME of a job that runs."""
        self.done.done["statements"] += 1
        self.done.done["statements that were refused or cut off"] += bool(driver.sql(text))

    def _look(self) -> None:
        """Between two lives: read what was committed; others look after one of the tables."""
        with Lading(self._home) as lading:
            for story, journal in zip(self._stories, self._journals, strict=True):
                journal.read_on(lading.catalog.open_table(story.name, "t"))
        if self._rng.random() < 0.5:
            story = self._rng.choice(self._stories)
            folder, is_all = self._home / "warehouse" / story.name / "t", self._rng.random() < 0.5
            maintain(story.form, self._home, story.name, folder, removes_orphans=is_all)
            self.done.done["maintenances by others"] += 1

    def _end(self) -> None:
        """Jobs that somebody paused go on, all that is left is loaded without a kill, and then everything is read."""
        self._state.end()
        with Lading(self._home) as lading:
            for name in (*(story.name for story in self._stories), f"{STATE}_firsts", f"{STATE}_counts"):
                record = lading.any_job(name)
                if record.state is not JobState.PAUSED or record.reason is None:
                    continue
                is_by_hand = record.reason.code is ReasonCode.MANUAL_PAUSE_ERR
                told = f"{name} waits for a person: {record.reason.message}"
                self.done.expect(is_by_hand or not record.reason.needs_attention, "STUCK", told)
                lading.sql(f"RESUME JOB WHERE jobName = '{name}'")
                self.done.done["jobs resumed at the end"] += 1
        command = [sys.executable, "-c", RUN, str(self._home), "2", ""]
        with self._log.open("ab") as said:
            ended = subprocess.run(command, stdout=said, stderr=said, check=False, timeout=END_S)
        self.done.expect(ended.returncode == 0, "STUCK", f"what is left cannot be loaded: see {self._log}")
        with Lading(self._home) as lading:
            for story, journal, counts in zip(self._stories, self._journals, self.counts.values(), strict=False):
                journal.read_on(lading.catalog.open_table(story.name, "t"))
                journal.end(story.sender.sent)
                is_clean = lading.verify(story.name).is_clean
                counts.expect(is_clean, "PROGRESS-MISMATCH", f"lading verify {story.name} finds something")
            found, counts = self._state.find(lading), self.counts[STATE]
        counts.done.update(commits=found.commits, rows=found.rows, results=found.results)
        for kind in ("LOSS", "DUP", "REORDER", "CORRUPT"):
            counts.blame(kind, "results are not what DuckDB computes", getattr(found, kind.lower()))


def soak_spark(path: Path, seed: int, hours: float, sources: Collection[str]) -> dict[str, Counts]:
    """By job, what it came to."""
    rng, until_s = Random(seed), SystemClock().monotonic_s() + hours * 3600
    lanes = [lane for lane in LANES if lane[0] in sources and not kind_of(lane[1]).missing()]
    os.environ.setdefault("LADING_FILE_SETTLE_SECONDS", "0")  # Files come whole, under another name before.
    with ExitStack() as servers:
        broker = servers.enter_context(serve_kafka()) if "kafka" in sources else None
        kinesis = servers.enter_context(serve_kinesis()) if "kinesis" in sources else None
        senders = {
            (source, form): _sender(source, path / f"in{number}", rng, broker, kinesis)
            for number, (source, form) in enumerate(lanes)
        }
        soak = SparkSoak(path / "soak", rng, senders, broker)
        soak.run(until_s)
    return {**soak.counts, "all together": soak.done}


def _sender(
    source: str, folder: Path, rng: Random, broker: KafkaBroker | None, kinesis: KinesisServer | None
) -> Sender:
    if source == "kafka" and broker is not None:
        return KafkaSender(broker, 2)
    if source == "kinesis" and kinesis is not None:
        return KinesisSender(kinesis, 2, rng)
    return FilesSender(folder, 2, rng)
