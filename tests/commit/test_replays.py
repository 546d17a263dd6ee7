"""Rows of quarantine are taken up once, whatever dies, and never when the source brings them again."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from lading.commit.coordinator import Coordinator
from lading.commit.replays import QUARANTINE, SourceOrder
from lading.commit.steps import Steps, run_steps
from lading.errors import FencedError, JobStateError, StageError
from lading.model.batch import Report
from lading.model.bill import Bill, BillKind, Head
from lading.model.outcome import Unknown
from lading.testing.replays_world import Quarantined, ReplayStager, way
from tests.commit.bench import JOB, Bench

ORDER = SourceOrder(way=way)
STEPS = (
    *("plan.before", "plan.after", "stage.before", "stage.after", "bill.before", "bill.after"),
    *("commit.before", "commit.after", "settle.after", "follow.before", "follow.after"),
)


class ReplayBench(Bench):
    """A job of whose rows some are bad."""

    def __init__(self) -> None:
        super().__init__()
        self.source.bad_share = 0.4
        self.source.produce(30)
        self.quarantine: Quarantined = {}
        self.heals: set[int] = set()
        stager = ReplayStager(self.source, self.table.write_file, Random(2))
        stager.quarantine, stager.heals = self.quarantine, self.heals
        self.stager = type(self.stager)(stager)

    def loaded_all(self) -> Coordinator:
        coordinator = self.started()
        while run_steps(coordinator.run_batch()):
            pass
        return coordinator

    def heal(self) -> None:
        self.heals |= set(range(self.source.keys))

    def bad(self) -> int:
        return sum(row.fate == "error" for shard in self.source.shards.values() for row in shard.rows)

    def check_each_once(self) -> None:
        """Every row that is good, and every bad one, is in the table once."""
        rows = self.table.rows()
        assert len(set(rows)) == len(rows) == self.expected() + self.bad()


@pytest.fixture
def bench() -> ReplayBench:
    return ReplayBench()


def replay(coordinator: Coordinator, after: int | None = None) -> Bill | None:
    return run_steps(coordinator.replay(ORDER, reason="replay", after=after))


def test_rows_that_are_good_now_are_loaded_once_and_counted_once(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    before = coordinator.bill
    assert before is not None
    assert replay(coordinator) is None, "nothing can be loaded yet"
    assert bench.head() == before.head
    bench.heals.add(0)
    first = replay(coordinator)
    bench.heal()
    second = replay(coordinator)
    assert first is not None
    assert second is not None
    assert (first.kind, first.positions, first.epoch, first.ranges) == (
        BillKind.REPLAY,
        before.positions,
        before.epoch,
        (),
    )
    assert first.tally.rows.loaded + second.tally.rows.loaded == bench.bad()
    assert second.totals.rows.total == before.totals.rows.total
    assert (second.totals.rows.error, second.totals.rows.loaded) == (0, bench.expected() + bench.bad())
    assert replay(coordinator) is None
    bench.check_each_once()


@pytest.mark.parametrize("step", STEPS)
def test_a_replay_that_dies_at_any_step_is_done_once_when_it_is_repeated(bench: ReplayBench, step: str) -> None:
    work: Steps[Bill | None] = bench.loaded_all().replay(ORDER, reason="replay")
    bench.heal()
    while next(work) != step:
        pass
    work.close()
    again = bench.started()
    replay(again)
    assert replay(again) is None
    bench.check_each_once()
    assert again.bill is not None
    assert again.bill.totals.rows.error == 0


def test_an_answer_that_was_lost_is_settled_and_the_rows_are_there_once(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    bench.table.answers = [(True, Unknown(why="connection reset"))]
    assert replay(coordinator) is not None
    assert replay(coordinator) is None
    bench.check_each_once()


def test_of_two_replays_at_once_one_lands(bench: ReplayBench) -> None:
    first, second = bench.loaded_all(), bench.started()
    bench.heal()
    work: Steps[Bill | None] = second.replay(ORDER, reason="replay")
    while next(work) != "commit.before":
        pass
    third = bench.started()
    assert replay(third) is not None
    with pytest.raises(FencedError):
        run_steps(work)
    with pytest.raises(FencedError):
        replay(first)
    bench.check_each_once()


def move(coordinator: Coordinator, at: int, name: str = "shard-0000") -> None:
    run_steps(coordinator.edit({name: str(at)}, reason="moved"))


def test_a_replay_is_refused_when_the_position_was_moved_back_before_it(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    move(coordinator, 0)
    with pytest.raises(JobStateError, match="would be loaded twice, from its source, too"):
        replay(coordinator)
    while run_steps(coordinator.run_batch()):
        pass
    with pytest.raises(JobStateError, match="would be loaded twice"):
        replay(coordinator)


def test_nobody_is_told_that_rows_come_again_which_lie_before_the_position(bench: ReplayBench) -> None:
    """A move into the middle of what a commit read brings only the rest of it again."""
    coordinator = bench.started()
    while (bill := run_steps(coordinator.run_batch())) is not None and not bill.tally.rows.error:
        pass
    assert bill is not None
    (first, *_) = bill.ranges
    assert int(first.end) - int(first.start) > 1
    bench.heal()
    move(coordinator, int(first.start) + 1, first.partition)
    with pytest.raises(JobStateError, match="may be loaded twice") as refused:
        replay(coordinator)
    assert "only what lies behind the position comes by reading again" in str(refused.value)
    assert "Have the others sent once more" in str(refused.value)


def test_what_was_read_again_is_replayed_once_after_the_older_rows_were_given_up(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    move(coordinator, 0)
    edited = coordinator.bill
    assert edited is not None
    while run_steps(coordinator.run_batch()):
        pass
    bill = replay(coordinator, after=edited.seq)
    of_shard = sum(row.fate == "error" for row in bench.source.shards["shard-0000"].rows)
    assert bill is not None
    assert bill.tally.rows.loaded == of_shard
    assert replay(coordinator) is None, "what was given up is not taken up later"


def test_moves_that_bring_nothing_again_do_not_stop_a_replay(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    assert coordinator.bill is not None
    positions, state = coordinator.bill.positions, coordinator.bill.state
    move(coordinator, 0)
    assert coordinator.bill is not None
    run_steps(coordinator.restore(positions, state=state, reason="undone", seen=coordinator.bill.head))
    bench.source.produce(10)
    ends = {name: len(shard.rows) for name, shard in bench.source.shards.items()}
    move(coordinator, ends["shard-0000"])
    bill = replay(coordinator)
    assert bill is not None
    assert bill.tally.rows.error == 0


def test_rows_that_were_bad_again_are_refused_after_a_move_back_behind_their_origin(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heals.add(0)
    assert replay(coordinator) is not None
    bench.heal()
    move(coordinator, 1)
    with pytest.raises(JobStateError, match="would be loaded twice"):
        replay(coordinator)


def test_a_source_without_an_order_takes_nothing_up_after_any_move(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    bench.source.produce(10)
    move(coordinator, len(bench.source.shards["shard-0000"].rows))
    with pytest.raises(JobStateError, match="may be loaded twice"):
        run_steps(coordinator.replay(SourceOrder(), reason="replay"))


def test_files_that_a_later_definition_names_are_not_taken_up(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    with pytest.raises(JobStateError, match="files were named"):
        run_steps(coordinator.replay(SourceOrder(way=way, names_again=lambda old, new: True), reason="replay"))


def test_bad_rows_of_bills_that_are_gone_are_not_guessed(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    oldest = next(head for head in bench.bills.heads(JOB.job_id) if bench.bills.read(JOB.job_id, head).tally.rows.error)
    bench.bills.forget(JOB.job_id, oldest)
    with pytest.raises(JobStateError, match=f"up to commit {oldest.seq} are gone") as refused:
        replay(coordinator)
    assert f"AFTER {oldest.seq}" in str(refused.value)
    bill = replay(coordinator, after=oldest.seq)
    assert bill is not None
    assert bill.replayed_through == bill.seq - 1


def test_bills_that_are_gone_and_had_no_bad_rows_are_not_missed(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    assert replay(coordinator) is not None
    for head in bench.bills.heads(JOB.job_id)[:-1]:
        bench.bills.forget(JOB.job_id, head)
    assert replay(bench.started()) is None


def test_quarantine_that_lost_a_row_commits_nothing(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    next(rows for rows in bench.quarantine.values() if rows).pop()
    before, files = bench.head(), set(bench.table.rows())
    with pytest.raises(StageError, match=r"The quarantine of commit \d+ of job orders has"):
        replay(coordinator)
    assert (bench.head(), set(bench.table.rows())) == (before, files)


@pytest.mark.parametrize("word", ["late", "state", "listeners", "no file"])
def test_rows_that_cannot_be_judged_alone_are_not_taken_up(bench: ReplayBench, word: str) -> None:
    coordinator = bench.loaded_all()
    bench.heal()
    assert coordinator.bill is not None
    seq = next(
        bill.seq
        for head in bench.bills.heads(JOB.job_id)
        if (bill := bench.bills.read(JOB.job_id, head)).tally.rows.error
    )
    change(bench, seq, word)
    with pytest.raises(JobStateError, match="its quarantine cannot be replayed"):
        replay(coordinator)


def change(bench: ReplayBench, seq: int, word: str) -> None:
    """As if that commit had been made by a job of another kind."""
    read = bench.bills.read

    def changed(job_id: object, head: Head) -> Bill:
        bill = read(JOB.job_id, head)
        if bill.seq != seq:
            return bill
        rows = bill.tally.rows
        late = replace(bill.tally, rows=replace(rows, error=rows.error - 1, late=1))
        marked = replace(bill.positions, watermark_us=5)
        given: dict[str, dict[str, object]] = {
            "late": {"tally": late},
            "state": {"positions": marked},
            "listeners": {"listening": object()},
            "no file": {"quarantine": ()},
        }
        return replace(bill, **given[word])  # type: ignore[arg-type]

    bench.bills.read = changed  # type: ignore[method-assign]


def test_reports_of_a_replay_are_checked_as_those_of_a_batch(bench: ReplayBench) -> None:
    coordinator = bench.loaded_all()
    bench.heal()

    def short(reports: list[Report]) -> list[Report]:
        return reports[1:] if reports and reports[0].partition == QUARANTINE else reports

    bench.stager.change = short
    with pytest.raises(StageError, match="missing"):
        replay(coordinator)
    assert bench.loaded() == bench.expected()
