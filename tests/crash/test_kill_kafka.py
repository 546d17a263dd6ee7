"""A loader of a Kafka topic is killed, and so is the broker, while the topic is written and grows; then count."""

from __future__ import annotations

import signal
import threading
import uuid
from pathlib import Path
from random import Random

import pytest

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import NAMES
from lading.testing.kinesis.verifier import Verdict
from lading.testing.stream_check import Score, check_table, lineage
from tests.crash.routine import KAFKA_COLUMNS, Routine
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_generator import KafkaGenerator
from tests.support.stream_worker import JOB, MIDDLE, StreamJob, StreamLoader

IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "merge", "settle.before")))
"""Where every batch passes; `settle.before` is only met after a commit whose outcome is not known."""
PLACES = ("start.before", "start.after", *IN_BATCHES, MIDDLE)


class Case:
    """A topic that is written, and a table that it is loaded into."""

    def __init__(self, broker: KafkaBroker, home: Path, form: str = "delta", **limits: int) -> None:
        self.broker = broker
        self.generator = KafkaGenerator(broker, f"t{uuid.uuid4().hex[:8]}")
        self.job = StreamJob(
            home=str(home),
            form=form,
            source="kafka",
            address=broker.bootstrap,
            stream=self.generator.topic,
            start='{"default": "OFFSET_BEGINNING"}',
            **{"rows": 400, **limits},
        )
        self.job.create_table()

    def routine(self, home: Path) -> Routine:
        """The same topic as a user would load it."""
        source = {
            "kafka_broker_list": self.broker.bootstrap,
            "kafka_topic": self.generator.topic,
            "property.kafka_default_offsets": "OFFSET_BEGINNING",
        }
        return Routine(home, self.job.form, KAFKA_COLUMNS, source, "KAFKA")

    def check(self) -> Verdict:
        verdict = check_table(self.job.open_table(), JOB, self.generator.sent)
        assert verdict.is_exact, verdict
        return verdict


def show(score: Score, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{score}")


def run_places(case: Case, failpoints: list[str], name: str) -> Score:
    """A loader for each place, which dies there while the topic is written; partitions are added now and then."""
    score, partitions = Score(name), 4
    with StreamLoader(case.job) as loader:
        for failpoint in failpoints:
            loader.start(failpoint)
            case.generator.put(300)
            if score.rounds % 5 == 2:
                partitions += 1
                case.generator.grow(partitions)
                score.reshards += 1
            case.generator.put(300)
            code = loader.finish()
            score.kills += code == -signal.SIGKILL
            score.where |= {failpoint.partition("=")[0]} if code else set()
            score.rounds += 1
            assert loader.run() == 0
            score.verdict = case.check()
    return score


@pytest.mark.parametrize(
    "form", ["delta", *(pytest.param(name, marks=pytest.mark.slow) for name in ("iceberg", "paimon"))]
)
def test_a_kill_at_every_step_while_partitions_are_added(
    broker: KafkaBroker, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failpoints = [f"{place}=kill:{1 + (place in IN_BATCHES)}" for place in PLACES]
    score = run_places(Case(broker, tmp_path, form), failpoints, f"kafka to {form}, without Spark")
    show(score, capsys)
    assert score.where == set(PLACES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", NAMES)
def test_many_kills_while_partitions_are_added(
    broker: KafkaBroker, tmp_path: Path, form: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    random = Random(seed)
    failpoints = [f"{random.choice(PLACES)}=kill:{random.randint(1, 4)}" for _ in range(80)]
    show(run_places(Case(broker, tmp_path, form), failpoints, f"kafka to {form}, seed {seed}, without Spark"), capsys)


def test_a_limit_on_bytes_cuts_ranges_before_their_planned_ends(broker: KafkaBroker, tmp_path: Path) -> None:
    """How large records are is not known when a range is planned: the next batch goes on where it was cut."""
    case = Case(broker, tmp_path, rows=100_000, size_bytes=30_000)
    case.generator.put(2000)
    with StreamLoader(case.job) as loader:
        for place in ("commit.after=kill:2", "stage.after=kill:2", "commit.before=kill:2"):
            assert loader.run(place) == -signal.SIGKILL
        assert loader.run() == 0
    case.check()
    assert len([bill for bill in lineage(case.job.open_table(), JOB) if bill.files]) > 2


def test_the_broker_dies_in_the_middle_of_a_batch(broker: KafkaBroker, tmp_path: Path) -> None:
    """The range was planned and partly read; the reader waits, the broker comes back, the range is whole."""
    if not broker.is_ours:
        pytest.skip("NOT PROVED: the broker may not be killed")
    case = Case(broker, tmp_path, rows=200_000)
    case.generator.put(60_000, pad_bytes=1000)
    with StreamLoader(case.job) as loader:
        loader.start()
        # A batch of 60 MB is under way; a part of it is read when the broker is gone.
        wait_until_staging(tmp_path)
        broker.kill()
        broker.start()
        case.generator.put(1000)
        assert loader.finish() == 0
    case.check()
    assert max(bill.tally.rows.total for bill in lineage(case.job.open_table(), JOB)) > 1000


def wait_until_staging(home: Path) -> None:
    """Until a data file is being written."""
    pause = threading.Event()
    for _ in range(3600):
        if any((home / "warehouse" / "events").rglob("*.parquet")):
            return
        pause.wait(0.05)
    raise AssertionError("no data file was begun")


def test_the_broker_and_the_loader_die_together(broker: KafkaBroker, tmp_path: Path) -> None:
    if not broker.is_ours:
        pytest.skip("NOT PROVED: the broker may not be killed")
    case = Case(broker, tmp_path)
    case.generator.put(1000)
    with StreamLoader(case.job) as loader:
        assert loader.run("commit.after=kill:2") == -signal.SIGKILL
        case.generator.begin(1000)
        broker.kill()
        broker.start()
        case.generator.wait()
        assert loader.run(f"{MIDDLE}=kill") == -signal.SIGKILL
        assert loader.run() == 0
    case.check()


# With Spark.


def run_spark(case: Case, home: Path, failpoints: list[str], name: str) -> Score:
    score, routine, partitions = Score(name), case.routine(home), 4

    def write() -> None:
        for _ in range(6):
            case.generator.put(200)
        case.generator.grow(partitions)
        case.generator.put(600)

    case.generator.put(500)
    for failpoint in failpoints:
        partitions += 1
        code = routine.run(failpoint, write)
        score.kills += code == -signal.SIGKILL
        score.where |= {failpoint.partition("=")[0]} if code else set()
        score.reshards += 1
        score.rounds += 1
    routine.finish()
    score.verdict = routine.check(case.generator.sent)
    return score


# The second commit of a loader that was started after a kill is its first one with rows.
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "failpoints",
    [
        pytest.param(["commit.after=kill"], id="once"),
        pytest.param(["commit.after=kill", "commit.before=kill:2"], id="twice", marks=pytest.mark.slow),
    ],
)
def test_a_routine_load_on_spark_that_is_killed_while_partitions_are_added(
    broker: KafkaBroker, tmp_path: Path, failpoints: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(broker, tmp_path / "unused")
    score = run_spark(case, tmp_path / "home", failpoints, "kafka to delta, on Spark")
    show(score, capsys)
    assert (score.kills, score.reshards) == (len(failpoints), len(failpoints))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", NAMES)
def test_a_kill_at_every_step_on_spark(
    broker: KafkaBroker, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(broker, tmp_path / "unused", form)
    commits = ("bill", "commit", "settle", "follow")
    failpoints = [f"{place}=kill:{1 + place.startswith(commits)}" for place in IN_BATCHES]
    score = run_spark(case, tmp_path / "home", failpoints, f"kafka to {form}, on Spark")
    show(score, capsys)
    assert score.kills == len(IN_BATCHES)


@pytest.mark.slow
def test_the_broker_dies_while_spark_reads(broker: KafkaBroker, tmp_path: Path) -> None:
    if not broker.is_ours:
        pytest.skip("NOT PROVED: the broker may not be killed")
    case = Case(broker, tmp_path / "unused")
    routine = case.routine(tmp_path / "home")
    case.generator.put(100_000, pad_bytes=1000)

    def kill() -> None:
        wait_until_parquet(tmp_path / "home")
        broker.kill()
        broker.start()
        case.generator.put(1000)

    assert routine.run(meanwhile=kill) == 0
    assert routine.run() == 0
    routine.check(case.generator.sent)


def wait_until_parquet(home: Path) -> None:
    pause = threading.Event()
    for _ in range(1200):
        if any(home.rglob("*.parquet")):
            return
        pause.wait(0.05)
    raise AssertionError("no data file was begun")
