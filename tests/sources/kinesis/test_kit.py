"""The conformance kit itself, and many schedules of trouble against the fake."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

import pytest

from lading.errors import LadingError, StageError, TrimmedError
from lading.model.batch import Limits
from lading.sources.kinesis import client as door
from lading.testing.clock import ManualClock
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.verifier import Verdict, verify_rows, verify_table
from tests.sources.kinesis.support import Job, make_spec, row
from tests.support.kinesis.fake import FakeKinesis

HOUR = 3600.0
SENT = {"a": 3, "b": 1}
WHOLE = [("a", 0), ("b", 0), ("a", 1), ("a", 2)]


def found(rows: list[tuple[str, int]], **changes: object) -> tuple[int, int, int, int]:
    verdict: Verdict = verify_rows(rows, SENT, **changes)  # type: ignore[arg-type]
    return verdict.loss, verdict.dup, verdict.reorder, verdict.strange


def test_the_verifier_finds_each_flaw_and_no_other() -> None:
    assert verify_rows(WHOLE, SENT).is_exact
    assert found(WHOLE[:-1]) == (1, 0, 0, 0)
    assert found([]) == (4, 0, 0, 0)
    assert found([*WHOLE, ("a", 2)]) == (0, 1, 0, 0)
    assert found([("a", 1), ("a", 0), ("a", 2), ("b", 0)]) == (0, 0, 1, 0)
    assert found([("a", 1), ("a", 0), ("a", 2), ("b", 0)], ordered=False) == (0, 0, 0, 0)
    assert found([*WHOLE, ("c", 0)]) == (0, 0, 0, 1)
    assert found([*WHOLE, ("a", 2)], maybe_twice=[("a", 2)]) == (0, 0, 0, 0)
    assert found([*WHOLE, ("a", 2), ("a", 2)], maybe_twice=[("a", 2)]) == (0, 1, 0, 0)
    assert verify_table([{"key": key, "n": str(n)} for key, n in reversed(WHOLE)], SENT).is_exact


def test_the_generator_sends_again_what_was_refused() -> None:
    fake = FakeKinesis(ManualClock())
    fake.fail("put_records", "ProvisionedThroughputExceededException", times=3)
    generator = Generator(fake, "clicks", clock=fake.clock)
    generator.put(50)
    assert generator.count >= 50
    assert sum(len(shard.records) for shard in fake.shards.values()) == generator.count


def test_reshards_follow_their_seed() -> None:
    def story(seed: int) -> list[str]:
        fake = FakeKinesis(ManualClock())
        reshards = Resharder(fake, "clicks", seed=seed)
        return [reshards.step() for _ in range(12)]

    assert story(4) == story(4)
    assert story(4) != story(5)
    assert {word.split()[0] for word in story(4)} == {"split", "merge"}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_FIRST_DELAY_S", 0.0005)
    monkeypatch.setattr(door, "_MAX_DELAY_S", 0.002)


def trouble(fake: FakeKinesis, random: Random) -> None:
    match random.randrange(7):
        case 0:
            fake.fail("get_records", "ProvisionedThroughputExceededException", times=random.randint(1, 4))
        case 1:
            fake.fail("get_records", "ExpiredIteratorException", times=random.randint(1, 2), after=random.randint(0, 3))
        case 2:
            fake.expire_iterators()
        case 3:
            fake.hide(random.choice(sorted(fake.shards)), listings=random.randint(1, 2))
        case 4:
            closed = [name for name, shard in fake.shards.items() if shard.closed]
            fake.show_open(*random.sample(closed, min(2, len(closed))), listings=2)
        case 5:
            fake.fail("list_shards", "ExpiredNextTokenException", NextToken=f"token-{random.randrange(20)}")
        case 6:
            fake.empty_answers[random.choice(sorted(fake.shards))] = random.randint(1, 8)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_every_record_is_read_once_and_in_order(seed: int) -> None:
    random, clock = Random(seed), ManualClock()
    fake = FakeKinesis(clock, shards=random.randint(1, 4))
    fake.page_size = random.choice((1, 2, 1000))
    generator = Generator(fake, "clicks", keys=8, seed=seed, clock=clock)
    reshards = Resharder(fake, "clicks", seed=seed, at_most=6)
    job = Job(fake, clock, make_spec(max_records=random.choice((1, 3, 10_000))))
    start = random.choice(("TRIM_HORIZON", "LATEST"))
    job.open(start)
    for _ in range(25):
        clock.sleep(random.choice((1.0, 30.0, HOUR)))
        match random.randrange(5):
            case 0:
                generator.put(random.randint(1, 15))
            case 1:
                with fake.quiet():
                    reshards.step()
            case 2:
                trouble(fake, random)
            case 3:
                job.limits = Limits(rows=random.choice((1, 5, 1000)), seconds=9.0)
                _batch(job)
            case 4:
                job.crash()
    fake.troubles.clear()
    job.limits = Limits(rows=100_000, seconds=9.0)
    _settle(job)
    verdict = verify_rows([(row["key"], int(row["n"])) for row in job.rows], generator.sent)
    assert verdict.is_exact, (verdict, reshards.story)


def _batch(job: Job) -> None:
    """A partition that vanishes from a listing for a moment stops a job, and a person resumes it."""
    try:
        job.batch()
    except (StageError, TrimmedError):
        job.crash()
    except LadingError as error:
        if not error.retry:
            raise


def _settle(job: Job) -> None:
    for _ in range(10):
        try:
            job.drain()
        except (StageError, TrimmedError):
            job.crash()
        else:
            return


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seed", range(40))
def test_no_row_is_lost_without_a_word(seed: int) -> None:
    """The job sleeps longer than records are kept. What is missing then lies behind a gap."""
    random, clock = Random(seed), ManualClock()
    fake = FakeKinesis(clock, shards=random.randint(1, 3))
    fake.trimmed_as = random.choice(("horizon", "stuck", "refused"))
    reshards = Resharder(fake, "clicks", seed=seed, at_most=5)
    job = Job(fake, clock, on_data_loss="CONTINUE", limits=Limits(rows=random.choice((4, 1000)), seconds=9.0))
    job.open("TRIM_HORIZON")
    written = dict[tuple[str, int], str]()

    def write(name: str) -> None:
        number = len(written)
        fake.put(row("k", number), key="k", shard=name)
        written["k", number] = name

    for _ in range(20):
        clock.sleep(random.choice((60.0, HOUR, 11 * HOUR, 25 * HOUR)))
        opened = [name for name, shard in fake.shards.items() if shard.closed is None]
        for name in opened:
            for _ in range(random.randint(1, 3)):
                write(name)
        if random.random() < 0.3:
            reshards.step()
        if random.random() < 0.7:
            job.batch()
        if random.random() < 0.4:
            job.crash()
    job.limits = Limits(rows=10_000, seconds=9.0)
    job.drain()
    read = Counter(job.numbers)
    assert not [number for number, times in read.items() if times > 1]
    # A shard that came and went while nobody looked is told by the gaps of its children.
    told = {gap.partition for gap in job.gaps}
    told |= {parent for name in told for parent in fake.shards[name].parents}
    silent = [name for (_, number), name in written.items() if not read[number] and name not in told]
    assert silent == []


def test_a_row_that_is_gone_is_always_told_while_the_job_watches() -> None:
    """A job that runs at least four times within the retention never loses a row, and never says that it did."""
    random, clock = Random(7), ManualClock()
    fake = FakeKinesis(clock, shards=2)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    sent = 0
    for _ in range(120):
        clock.sleep(timedelta(hours=5).total_seconds())
        if random.random() < 0.1:
            fake.put(row("k", sent), key=str(sent))
            sent += 1
        try:
            job.batch()
        except TrimmedError as error:
            raise AssertionError(str(error)) from error
        job.crash()
    job.drain()
    assert sorted(job.numbers) == list(range(sent))
