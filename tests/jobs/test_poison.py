"""Batches that kill their workers are cut until they fit; a record that kills them alone is named, or put aside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lading.errors import FILE_UNREADABLE, WORKER_LOST, SourceError, StageError, StorageError
from lading.jobs.actions import LetGo, Retry
from lading.jobs.events import BatchStarted, Resumed
from lading.jobs.pace import MOST_FILES, MOST_INSIDE, SUSPECT_WAIT_S, Pace
from lading.jobs.reasons import Failure, failure_of
from lading.jobs.record import JobKind, WindowLimits
from lading.model.batch import BatchPlan, RecordPlace, Split
from lading.model.load import FileIntake, LoadLimits, LoadSpec, MappingSpec, SourceSpec
from lading.model.positions import Positions
from tests.jobs.story import Story

RECORD = RecordPlace(partition="0", at="17", words="offset 17", is_record=True)
FILE = RecordPlace(partition="in/", at="a.csv", words="file b.csv")
KILLED = failure_of(StageError("A worker was killed", code=WORKER_LOST))


def begin(story: Story, *, fill: float = 1.0, least: RecordPlace | None = None) -> None:
    story.tell(BatchStarted(fill=fill, least=least, at=story.now))


def choose(story: Story, word: str) -> Story:
    spec = LoadSpec(
        name="orders",
        target="sales.orders",
        source=SourceSpec(kind="KAFKA"),
        mapping=MappingSpec(),
        limits=LoadLimits(interval_s=1, size_bytes=1),
        on_poison_record=word,
    )
    story.record = replace(story.record, spec=spec)
    return story


def die_of(story: Story, least: RecordPlace, times: int = 3) -> None:
    for _ in range(times):
        begin(story, least=least)
        story.fail(KILLED)


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_batch_that_kills_its_worker_is_cut_each_time_and_never_runs_out_of_attempts(kind: JobKind) -> None:
    story, cut = Story(kind).open(), 0
    for death in range(1, 8):
        begin(story)
        story.fail(KILLED)
        cut += death
        assert (story.state, story.record.batch_scale) == ("RUNNING", 0.5**cut)
        assert [action.attempt for action in story.actions if isinstance(action, Retry)] == [1]
    assert story.record.batch_scale * 20_000_000 < 1
    assert "the batch is cut" in story.record.runtime_message


def test_a_batch_that_used_a_part_of_its_limits_is_half_of_that_part_next() -> None:
    story = Story().open()
    begin(story, fill=1 / 1000)
    story.fail(KILLED)
    assert story.record.batch_scale == 1 / 2000


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_record_that_kills_alone_pauses_the_job_which_says_where_it_stands(kind: JobKind) -> None:
    story = choose(Story(kind), "PAUSE").open()
    die_of(story, RECORD, 2)
    assert story.state == "RUNNING"
    die_of(story, RECORD, 1)
    assert story.state == "PAUSED"
    assert story.record.reason is not None
    assert "partition 0, offset 17 ended 3 workers" in story.record.reason.message
    assert '"on_poison_record" = "QUARANTINE"' in story.record.reason.message


def test_a_record_that_kills_alone_is_put_aside_where_the_user_chose_it_and_batches_are_large_again() -> None:
    story = choose(Story(JobKind.ROUTINE, window=WindowLimits()), "QUARANTINE").open()
    for _ in range(4):
        begin(story)
        story.fail(KILLED)
    die_of(story, RECORD)
    assert story.state == "RUNNING"
    assert LetGo(is_retry=True) in story.actions, "the planner is made again"
    assert story.record.pace.poison is not None
    assert story.record.pace.poison.place == RECORD
    begin(story, least=RECORD)
    story.commit(rows=1, bad=1)
    assert (story.state, story.record.batch_scale) == ("RUNNING", 1.0)
    assert story.record.pace == Pace(has_committed=True, passed=1)


def test_a_bad_row_that_was_not_put_aside_still_pauses_a_routine_load() -> None:
    story = choose(Story(JobKind.ROUTINE, window=WindowLimits()), "QUARANTINE").open()
    begin(story, least=RECORD)
    story.commit(rows=1, bad=1)
    assert (story.state, story.code) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR")


def test_nothing_is_put_aside_when_workers_die_without_the_record_too() -> None:
    story = choose(Story(), "QUARANTINE").open()
    die_of(story, RECORD, 4)
    assert story.state == "PAUSED"
    assert story.record.reason is not None
    assert "partition 0, offset 17, too: that is not the cause" in story.record.reason.message
    assert story.record.pace.poison is None
    story.wait(1)
    assert story.state == "PENDING", "it goes on by itself when what kills workers is over"


def test_kills_of_the_service_are_never_blamed_on_a_record() -> None:
    story = choose(Story(), "QUARANTINE").open()
    for _ in range(50):
        begin(story, least=RECORD)
        story.open()
    assert story.state == "RUNNING"
    assert (story.record.pace.poison, story.record.pace.suspects) == (None, ())
    assert story.record.batch_scale == 1.0, "one record cannot be cut"


def test_deaths_of_two_records_in_turn_are_counted_apart() -> None:
    story = choose(Story(), "QUARANTINE").open()
    other = replace(RECORD, partition="1")
    for place in (RECORD, other, RECORD, other):
        die_of(story, place, 1)
    assert story.record.pace.poison is None
    die_of(story, RECORD, 1)
    assert story.record.pace.poison is not None
    assert story.record.pace.poison.place == RECORD


def test_what_cannot_be_put_aside_pauses_the_job_whatever_was_chosen() -> None:
    story = choose(Story(), "QUARANTINE").open()
    die_of(story, FILE)
    assert story.state == "PAUSED"
    assert story.record.reason is not None
    assert "file b.csv ended 3 workers" in story.record.reason.message


def test_resuming_by_hand_suspects_nothing_any_longer() -> None:
    story = choose(Story(), "PAUSE").open()
    die_of(story, RECORD)
    story.tell(Resumed(at=story.now))
    story.open()
    die_of(story, RECORD, 2)
    assert story.state == "RUNNING"


def put_aside(story: Story, place: RecordPlace) -> None:
    die_of(story, place)
    begin(story, least=place)
    story.commit(rows=1, bad=1)


def test_records_in_a_row_are_not_put_aside_for_ever_when_no_row_is_loaded_between_them() -> None:
    """Workers that lack memory for every record but are fit to pass over one would empty a topic into quarantine."""
    story = choose(Story(), "QUARANTINE").open()
    for offset in range(3):
        put_aside(story, replace(RECORD, at=str(offset), words=f"offset {offset}"))
        assert story.state == "RUNNING"
    die_of(story, RECORD)
    assert story.state == "PAUSED"
    assert story.record.reason is not None
    assert "It is hardly the records" in story.record.reason.message
    story.tell(Resumed(at=story.now))
    story.open()
    begin(story)
    story.commit(rows=5)
    put_aside(story, RECORD)
    assert story.state == "RUNNING"


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_record_that_was_put_aside_by_a_process_that_died_then_is_not_in_the_way(kind: JobKind) -> None:
    story = choose(Story(kind, window=WindowLimits() if kind is JobKind.ROUTINE else None), "QUARANTINE").open()
    die_of(story, RECORD)
    begin(story, least=RECORD)
    assert story.record.task is not None
    story.landed(story.record.task.task_id, rows=1, bad=1)
    story.open()
    assert (story.state, story.record.pace.poison) == ("RUNNING", None)


def test_a_record_that_was_loaded_is_suspected_no_longer() -> None:
    story = choose(Story(), "QUARANTINE").open()
    die_of(story, RECORD, 2)
    begin(story, least=RECORD)
    story.commit(rows=1)
    die_of(story, RECORD, 1)
    assert story.record.pace.poison is None


def test_a_suspect_is_not_read_again_at_once() -> None:
    story = choose(Story(), "QUARANTINE").open()
    die_of(story, RECORD, 1)
    (retry,) = (action for action in story.actions if isinstance(action, Retry))
    assert retry.after_s == SUSPECT_WAIT_S


def test_what_stands_at_the_same_offset_of_two_partitions_is_not_one_record() -> None:
    split = Split(number=0, partition="0", start="17", end="18", least="offset 17", is_record=True)
    other = replace(split, number=1, partition="1")
    assert BatchPlan(positions=Positions(), splits=(split, other)).least is None
    assert BatchPlan(positions=Positions(), splits=(split,)).least == RECORD


def test_lives_that_commit_something_do_not_keep_batches_small() -> None:
    story = Story().open()
    for _ in range(60):
        begin(story, fill=1 / 20_000_000)
        story.open()
    for _ in range(30):
        for _ in range(7):
            begin(story)
            story.commit()
        begin(story)
        story.open()
    assert story.record.batch_scale == 1.0


ROW = replace(FILE, is_record=True, inside=(40,))


def found(place: RecordPlace) -> Failure:
    return failure_of(StageError("A worker was killed", code=WORKER_LOST, found=place))


def test_a_row_that_was_found_in_a_file_is_put_aside_and_the_other_bad_rows_of_it_still_count() -> None:
    story = choose(Story(JobKind.ROUTINE, window=WindowLimits()), "QUARANTINE").open()
    begin(story, least=replace(FILE, is_record=True))
    story.fail(found(ROW))
    assert story.record.pace.poison is not None
    assert story.record.pace.poison.place == ROW
    begin(story, least=ROW)
    story.commit(rows=100, bad=2)
    assert (story.state, story.code) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR")


def test_a_file_with_more_deadly_rows_than_can_be_is_not_emptied_into_quarantine() -> None:
    story = choose(Story(), "QUARANTINE").open()
    for number in range(1, MOST_INSIDE + 1):
        begin(story, least=replace(ROW, inside=tuple(range(number - 1))))
        story.fail(found(replace(ROW, inside=tuple(range(number)))))
        assert story.state == "RUNNING"
    begin(story, least=replace(ROW, inside=tuple(range(MOST_INSIDE))))
    story.fail(found(replace(ROW, inside=tuple(range(MOST_INSIDE + 1)))))
    assert story.state == "PAUSED"
    assert story.record.reason is not None
    assert "It is hardly the records" in story.record.reason.message


UNREADABLE = failure_of(SourceError("File b.csv cannot be read: Truncated", code=FILE_UNREADABLE))
BAD_FILE = replace(FILE, is_record=True)


def skipping(story: Story, word: str = "SKIP") -> Story:
    choose(story, "PAUSE")
    assert story.record.spec is not None
    spec = replace(story.record.spec, intake=FileIntake(on_error=word))
    story.record = replace(story.record, spec=spec)
    return story.open()


def test_a_file_that_cannot_be_read_is_looked_for_and_looked_at_once_more_and_put_aside() -> None:
    story = skipping(Story())
    begin(story)
    story.fail(UNREADABLE)
    assert (story.state, story.record.batch_scale) == ("RUNNING", 0.5)
    assert "A file cannot be read, and the batch is cut" in story.record.runtime_message
    begin(story, least=BAD_FILE)
    story.fail(UNREADABLE)
    assert LetGo(is_retry=True) in story.actions, "the planner is made again"
    assert [action.attempt for action in story.actions if isinstance(action, Retry)] == [1]
    poison = story.record.pace.poison
    assert poison is not None
    assert (poison.place, poison.is_checked) == (BAD_FILE, True)
    begin(story, least=BAD_FILE)
    story.commit(rows=1, bad=1)
    assert story.record.pace == Pace(has_committed=True, passed=1)
    assert story.record.batch_scale == 1.0


def test_without_that_choice_it_stops_the_job_as_ever() -> None:
    story = skipping(Story(), "PAUSE")
    begin(story, least=BAD_FILE)
    story.fail(UNREADABLE)
    assert (story.state, story.code) == ("PAUSED", "CANNOT_RESUME_ERR")
    assert story.record.pace.poison is None


@pytest.mark.parametrize("error", [StorageError("503 Slow Down"), StageError("it was replaced")])
def test_what_passes_by_itself_puts_nothing_aside(error: Exception) -> None:
    story = skipping(Story())
    begin(story, least=BAD_FILE)
    story.fail(failure_of(error))
    assert (story.state, story.record.pace.poison) == ("RUNNING", None)


def test_a_file_that_can_be_read_when_it_is_judged_is_loaded_like_any_other() -> None:
    story = skipping(Story())
    begin(story, least=BAD_FILE)
    story.fail(UNREADABLE)
    begin(story, least=BAD_FILE)
    story.fail(failure_of(StageError("it can be read now")))
    assert (story.state, story.record.pace.poison) == ("RUNNING", None)
    assert LetGo(is_retry=True) in story.actions, "the planner is made again"
    assert [action.attempt for action in story.actions if isinstance(action, Retry)] == [2], "not for ever"


def test_a_judgement_that_was_overtaken_is_forgotten() -> None:
    story = skipping(Story())
    begin(story, least=BAD_FILE)
    story.fail(UNREADABLE)
    begin(story, least=replace(BAD_FILE, words="file c.csv"))
    story.commit(rows=1)
    assert story.record.pace.poison is None


def test_so_many_files_in_a_row_are_hardly_at_fault_themselves() -> None:
    story = skipping(Story())
    for number in range(MOST_FILES + 1):
        assert story.state == "RUNNING"
        begin(story, least=replace(BAD_FILE, words=f"file {number}"))
        story.fail(UNREADABLE)
        if story.state == "RUNNING":
            begin(story, least=replace(BAD_FILE, words=f"file {number}"))
            story.commit(rows=1, bad=1)
    assert (story.state, story.code) == ("PAUSED", "CANNOT_RESUME_ERR")
    assert story.record.reason is not None
    assert f"{MOST_FILES} others in a row were put aside" in story.record.reason.message
    story.tell(Resumed(at=story.now))
    assert story.record.pace.passed == 0, "a person has looked at them"
