"""A loader of a Kinesis stream is killed while the stream is written and resharded; then count, and look at the order.

Most of it without Spark, so that dozens of kills take seconds; and a few with all of it.
"""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import NAMES
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.server import KinesisServer, wait_until_active
from lading.testing.kinesis.verifier import Verdict
from lading.testing.stream_check import Score, check_table, lineage
from tests.crash.routine import KINESIS_COLUMNS, Routine
from tests.support.stream_worker import JOB, MIDDLE, StreamJob, StreamLoader

PLACES = (*(name for name in STEP_NAMES if not name.startswith(("edit", "merge", "settle.before"))), MIDDLE, MIDDLE)
LONG_ROUNDS = 40
IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "merge", "settle.before")))


class Case:
    """A stream that is written, a table that it is loaded into, and what became of it."""

    def __init__(
        self, server: KinesisServer, home: Path, form: str = "delta", *, shards: int = 2, seed: int = 0, **more: Any
    ) -> None:
        self._server = server
        self.stream = f"s{uuid.uuid4().hex[:8]}"
        self.client = server.create_stream(self.stream, shards)
        self.generator = Generator(self.client, self.stream, seed=seed)
        self.resharder = Resharder(self.client, self.stream, seed=seed, at_most=6)
        given = {"start": "TRIM_HORIZON", "rows": 150, **more}
        self.job = StreamJob(
            home=str(home), form=form, source="kinesis", address=server.endpoint, stream=self.stream, **given
        )
        self.job.create_table()

    def routine(self, home: Path) -> Routine:
        """The same stream as a user would load it."""
        source = {
            "aws.region": self._server.region,
            "aws.endpoint": self._server.endpoint,
            "aws.access_key": self._server.access_key,
            "aws.secret_key": self._server.secret_key,
            "kinesis_stream": self.stream,
            "property.kinesis_default_pos": "TRIM_HORIZON",
        }
        return Routine(home, self.job.form, KINESIS_COLUMNS, source, "KINESIS")

    def check(self) -> Verdict:
        """What is in the table now, against all that was sent."""
        verdict = check_table(self.job.open_table(), JOB, self.generator.sent, maybe_twice=self.generator.maybe_twice)
        assert verdict.is_exact, verdict
        return verdict


def run_rounds(case: Case, rounds: int, seed: int, name: str, *, kills: int = 1) -> Score:
    """Each round: written, resharded, killed at places that a seed chooses, finished, checked."""
    random, score = Random(seed), Score(name)
    with StreamLoader(case.job) as loader:
        for _ in range(rounds):
            for _ in range(kills):
                place = random.choice(PLACES)
                loader.start(f"{place}=kill:{random.randint(1, 3)}")
                case.generator.put(random.randint(30, 120))
                case.resharder.step()
                score.reshards += 1
                case.generator.put(random.randint(30, 120))
                if loader.finish() == -signal.SIGKILL:
                    score.kills += 1
                    score.where.add(place)
            assert loader.run() == 0
            score.verdict = case.check()
            score.rounds += 1
    return score


@pytest.mark.parametrize(
    "form", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("delta", "paimon")), "iceberg"]
)
def test_ten_rounds_of_splits_merges_and_kills(
    kinesis: KinesisServer, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    score = run_rounds(Case(kinesis, tmp_path, form, seed=11), 10, 5, f"kinesis to {form}, without Spark")
    with capsys.disabled():
        print(f"\n{score}")
    assert score.reshards == 10
    assert score.kills >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", NAMES)
def test_many_rounds_of_splits_merges_and_kills(
    kinesis: KinesisServer, tmp_path: Path, form: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(kinesis, tmp_path, form, seed=100 + seed)
    score = run_rounds(case, LONG_ROUNDS, seed, f"kinesis to {form}, seed {seed}, without Spark", kills=3)
    with capsys.disabled():
        print(f"\n{score}")


def test_a_job_at_the_end_that_dies_before_its_first_row_skips_none(kinesis: KinesisServer, tmp_path: Path) -> None:
    """LATEST is where the stream ended when the job began, not when it read first."""
    case = Case(kinesis, tmp_path, start="LATEST")
    case.generator.put(50)
    before = dict(case.generator.sent)
    with StreamLoader(case.job) as loader:
        # Dies with the opening bill committed, before anything was planned.
        assert loader.run("plan.before=kill") == -signal.SIGKILL
        case.generator.put(200)
        case.resharder.step()
        case.generator.put(100)
        assert loader.run("stage.after=kill") == -signal.SIGKILL
        assert loader.run() == 0
    loaded = case.job.open_table().scan()
    pairs = sorted(zip(loaded["k"].to_pylist(), loaded["n"].to_pylist(), strict=True))
    assert pairs == sorted((key, n) for key, sent in case.generator.sent.items() for n in range(before[key], sent))


def test_a_job_at_the_end_that_dies_while_it_opens_begins_where_it_opens_at_last(
    kinesis: KinesisServer, tmp_path: Path
) -> None:
    """Before the opening bill is committed nothing is promised; afterwards everything is."""
    case = Case(kinesis, tmp_path, start="LATEST")
    with StreamLoader(case.job) as loader:
        assert loader.run("commit.before=kill") == -signal.SIGKILL
        assert case.job.open_table().read_head(JOB) is None
        case.generator.put(40)
        assert loader.run("commit.after=kill") == -signal.SIGKILL
        before = dict(case.generator.sent)
        case.generator.put(60)
        assert loader.run() == 0
    table = case.job.open_table().scan()
    assert table.num_rows == sum(case.generator.sent.values()) - sum(before.values())


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_a_limit_in_the_middle_of_an_answer_and_a_kill_after_it(
    kinesis: KinesisServer, tmp_path: Path, rows: int
) -> None:
    """An answer brings 40 records, the batch may take fewer or more: what was fetched and not taken comes again."""
    case = Case(kinesis, tmp_path, shards=1, rows=rows, max_records=40)
    case.generator.put(120 if rows > 1 else 25)
    with StreamLoader(case.job) as loader:
        for place in ("commit.after=kill:3", "stage.after=kill:2", "commit.before=kill:2", f"{MIDDLE}=kill"):
            loader.run(place)
        assert loader.run() == 0
    case.check()
    sizes = {bill.tally.rows.total for bill in lineage(case.job.open_table(), JOB)}
    assert max(sizes) == min(rows, case.generator.count)


def test_a_stream_that_is_drained_and_closed_and_gets_children_later(kinesis: KinesisServer, tmp_path: Path) -> None:
    """The loader has read everything, knows of the end, dies; children that are made and filled then are read."""
    case = Case(kinesis, tmp_path, shards=1)
    case.generator.put(60)
    with StreamLoader(case.job) as loader:
        assert loader.run() == 0
        case.check()
        case.client.split_shard(
            StreamName=case.stream, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**127)
        )
        wait_until_active(case.client, case.stream)
        # The parent is empty and closed: that alone is committed, and dies with it.
        assert loader.run("commit.after=kill") == -signal.SIGKILL
        case.generator.put(60)
        assert loader.run("commit.before=kill") == -signal.SIGKILL
        case.client.merge_shards(
            StreamName=case.stream, ShardToMerge="shardId-000000000001", AdjacentShardToMerge="shardId-000000000002"
        )
        wait_until_active(case.client, case.stream)
        case.generator.put(60)
        assert loader.run("settle.after=kill:2") == -signal.SIGKILL
        assert loader.run() == 0
    case.check()
    bill = lineage(case.job.open_table(), JOB)[-1]
    states = bill.positions.partitions
    assert [states[f"shardId-{number:012d}"].finished for number in range(4)] == [True, True, True, False]


# With Spark.


def run_spark_rounds(case: Case, home: Path, failpoints: list[str], name: str) -> Score:
    """Each round: a loader that dies where it is told while the stream is written and resharded; then another."""
    score, routine = Score(name), case.routine(home)

    def write() -> None:
        for _ in range(6):
            case.generator.put(40)
        case.resharder.step()
        case.generator.put(100)

    case.generator.put(100)
    for failpoint in failpoints:
        code = routine.run(failpoint, write)
        score.kills += code == -signal.SIGKILL
        score.where |= {failpoint.partition("=")[0]} if code else set()
        score.reshards += 1
        score.rounds += 1
    routine.finish()
    score.verdict = routine.check(case.generator.sent, case.generator.maybe_twice)
    return score


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "failpoints",
    [
        pytest.param(["commit.after=kill:2"], id="once"),
        pytest.param(["commit.after=kill:2", "commit.before=kill:2"], id="twice", marks=pytest.mark.slow),
    ],
)
def test_a_routine_load_on_spark_that_is_killed_through_reshards(
    kinesis: KinesisServer, tmp_path: Path, failpoints: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(kinesis, tmp_path / "unused")
    score = run_spark_rounds(case, tmp_path / "home", failpoints, "kinesis to delta, on Spark")
    with capsys.disabled():
        print(f"\n{score}")
    assert (score.kills, score.reshards) == (len(failpoints), len(failpoints))


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.usefixtures("spark")
def test_ten_rounds_of_splits_merges_and_kills_on_spark(
    kinesis: KinesisServer, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    random, case = Random(form), Case(kinesis, tmp_path / "unused", form, seed=3)
    total, routine_home = Score(f"kinesis to {form}, on Spark"), tmp_path / "home"
    routine = case.routine(routine_home)
    for _ in range(10):
        failpoint = f"{random.choice(IN_BATCHES)}=kill:{random.randint(1, 2)}"

        def write() -> None:
            for _ in range(3):
                case.generator.put(60)
                case.resharder.step()
                total.reshards += 1
            case.generator.put(60)

        code = routine.run(failpoint, write)
        total.kills += code == -signal.SIGKILL
        total.where |= {failpoint.partition("=")[0]} if code else set()
        routine.finish()
        total.verdict = routine.check(case.generator.sent, case.generator.maybe_twice)
        total.rounds += 1
    with capsys.disabled():
        print(f"\n{total}")
    assert total.kills >= 5
