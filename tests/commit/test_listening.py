"""Which partitions are done after a commit: the rule alone."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.commit.listening import MOST_DONE, MOST_NOTICES, MOST_OPEN, Moment, advance_listening
from lading.commit.next_bill import Stamp, draft_edit, draft_opening, draft_restart, draft_takeover
from lading.commit.partitions import ends_us, partition_name, python_form
from lading.commit.telling import Teller
from lading.ids import Incarnation, Token, new_job_id
from lading.model.batch import StagedFile
from lading.model.job import Job
from lading.model.notices import Listening, ListenRule, PartitionField, PartitionTime
from lading.model.positions import PartitionState, Positions
from lading.model.state import StateRef

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = (PartitionField(name="p"),)
RULE = ListenRule(listeners=("a", "b"), fields=FIELDS, idle_s=60.0)


def file(partition: str, rows: int = 1) -> StagedFile:
    return StagedFile(path=f"p={partition}/x.parquet", rows=rows, size_bytes=1, partition={"p": partition})


def after(rule: ListenRule, before: Listening | None, seq: int, *files: StagedFile, **more: object) -> Listening:
    moment = Moment(seq=seq, at=AT + timedelta(seconds=10 * seq), watermark_us=more.get("watermark_us"))  # type: ignore[arg-type]
    found = advance_listening(rule, before, files, moment, more.get("told", ()))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_bills_do_not_grow_with_the_number_of_partitions() -> None:
    many = [file(f"{number:05}") for number in range(MOST_OPEN + 200)]
    known = after(RULE, None, 1, *many)
    assert (len(known.open), known.untracked) == (MOST_OPEN, 200)
    for seq in range(20, 30):
        known = after(RULE, known, seq)
    # Nobody takes notices: partitions wait in `open` for their turn, and what is pending stays bounded.
    assert len(known.notices) <= MOST_NOTICES
    assert len(known.open) == MOST_OPEN - MOST_NOTICES // 2
    assert len(known.done) == MOST_DONE
    for seq in range(30, 40):
        known = after(RULE, known, seq, told={notice.key for notice in known.notices})
    assert (known.open, known.notices, known.marked) == ({}, (), MOST_OPEN)


def test_bills_do_not_grow_with_the_length_of_values() -> None:
    known = after(RULE, None, 1, *(file(f"{number:05}{'x' * 10_000}") for number in range(20)), file("y"))
    assert len(known.open) == 21
    assert max(len(name) for name in known.open) <= 200
    assert len({partition_name(FIELDS, {"p": "\u4e2d" * length}) for length in range(100)}) == 100
    cut = partition_name(FIELDS, {"p": "\u4e2d" * 30})
    # No value can be written so that its partition is taken for this one: signs like these are quoted.
    assert cut.startswith("p=%E4%B8%AD%E4")
    assert "!" in cut
    assert "!" not in partition_name(FIELDS, {"p": "!"})
    assert not re.search(r"%(?![0-9A-F]{2})", cut)


def test_a_listener_that_was_taken_away_leaves_no_notice_behind() -> None:
    known = after(RULE, after(RULE, None, 1, file("x")), 10)
    assert [notice.listener for notice in known.notices] == ["a", "b"]
    assert [notice.listener for notice in after(replace(RULE, listeners=("b",)), known, 11).notices] == ["b"]


Story = st.lists(
    st.tuples(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 5)), max_size=3), st.sets(st.integers(0, 9))),
    max_size=30,
)


@given(Story)
def test_every_row_is_told_of_once_to_each_listener_after_its_commit(
    story: list[tuple[list[tuple[str, int]], set[int]]],
) -> None:
    known: Listening | None = None
    loaded, told = 0, {"a": 0, "b": 0}
    newest: dict[str, int] = {}
    for seq, (files, taken) in enumerate(story, 1):
        keys = set()
        for number, notice in enumerate(known.notices if known is not None else ()):
            if number in taken:
                keys.add(notice.key)
                told[notice.listener] += notice.rows
                # It speaks of the newest commit that wrote to the partition when it was done.
                assert notice.seq <= newest[notice.partition] < seq
        known = after(RULE, known, seq, *(file(name, rows) for name, rows in files), told=keys)
        loaded += sum(rows for _, rows in files)
        newest |= {f"p={name}": seq for name, _ in files}
        waiting = sum(each.rows for each in known.open.values())
        for listener in told:
            pending = sum(notice.rows for notice in known.notices if notice.listener == listener)
            assert told[listener] + pending + waiting == loaded
    for end in range(len(story) + 10, len(story) + 13):
        if known is not None:
            for notice in known.notices:
                told[notice.listener] += notice.rows
            known = after(RULE, known, end, told={notice.key for notice in known.notices})
    assert set(told.values()) == {loaded}


US = 1_000_000


@pytest.mark.parametrize(
    ("fields", "values", "name", "end"),
    [
        ({"dt": "date"}, {"dt": "2026-01-31"}, "dt=2026-01-31", datetime(2026, 2, 1, tzinfo=UTC)),
        ({"at_day": "day"}, {"at_day": "20454"}, "at_day=2026-01-01", datetime(2026, 1, 2, tzinfo=UTC)),
        ({"at_hour": "hour"}, {"at_hour": "490919"}, "at_hour=2026-01-01-23", datetime(2026, 1, 2, tzinfo=UTC)),
        ({"m": "month"}, {"m": "683"}, "m=2026-12", datetime(2027, 1, 1, tzinfo=UTC)),
        ({"y": "year"}, {"y": "-1"}, "y=1969", datetime(1970, 1, 1, tzinfo=UTC)),
        (
            {"d": "days", "k": "json"},
            {"d": "0", "k": '"a/b"'},
            "d=1970-01-01/k=a%2Fb",
            datetime(1970, 1, 2, tzinfo=UTC),
        ),
        ({"dt": "date"}, {"dt": None}, "dt=__HIVE_DEFAULT_PARTITION__", None),
        ({"k": "text"}, {"k": "x"}, "k=x", None),
    ],
)
def test_names_and_ends_of_partitions(
    fields: dict[str, str], values: dict[str, str | None], name: str, end: datetime | None
) -> None:
    known = [PartitionField(name=each, form=form) for each, form in fields.items()]
    assert partition_name(known, values) == name
    assert ends_us(known, values, PartitionTime()) == (None if end is None else int(end.timestamp()) * US)


def test_texts_become_times_by_a_pattern_in_a_zone() -> None:
    fields = (PartitionField(name="dt"), PartitionField(name="hh", form="json"))
    form = python_form("yyyyMMdd HH:mm:ss")
    assert form is not None
    rule = PartitionTime(pattern="$dt $hh:00:00", form=form, interval_us=3600 * US, zone="Europe/Berlin")
    end = ends_us(fields, {"dt": "20260101", "hh": "23"}, rule)
    assert end == int(datetime(2026, 1, 1, 23, tzinfo=UTC).timestamp()) * US
    assert ends_us(fields, {"dt": "soon", "hh": "23"}, rule) is None
    assert python_form("YYYY-MM-dd") is None


def test_moves_keep_what_is_told_and_an_accepted_rollback_goes_back_with_the_table() -> None:
    job = Job(job_id=new_job_id(), name="j", listening=RULE)
    stamp = Stamp(token=Token(1), incarnation=Incarnation("i"), planned_at=AT, billed_at=AT)
    opened = draft_opening(job, Positions(partitions={"s": PartitionState(at="0")}), stamp)
    older = replace(opened, listening=after(RULE, None, 1, file("x")))
    newer = replace(older, seq=5, replaces=older.head, listening=after(RULE, older.listening, 10))
    assert draft_takeover(job, newer, stamp).listening == newer.listening
    assert draft_edit(job, newer, newer.positions, stamp, reason="").listening == newer.listening
    assert draft_restart(job, older, newer, newer, 5, stamp, reason="").listening == older.listening
    assert draft_restart(job, None, newer, newer, 5, stamp, reason="").listening is None


def test_no_partition_is_done_while_results_for_it_wait() -> None:
    time = PartitionTime(pattern="$p", form="%Y-%m-%d", interval_us=86_400 * US)
    rule = replace(RULE, idle_s=0.0, time=time, hold_us=0)
    job = Job(job_id=new_job_id(), name="j", listening=rule)
    stamp = Stamp(token=Token(1), incarnation=Incarnation("i"), planned_at=AT, billed_at=AT)
    passed = int(datetime(2026, 1, 3, tzinfo=UTC).timestamp()) * US
    positions = Positions(partitions={"s": PartitionState(at="0")}, watermark_us=passed)
    kept = StateRef(manifest="m", digest="d", files=1, rows=1, size_bytes=1, next_us=passed - US)
    opened = replace(
        draft_opening(job, positions, stamp), state=kept, listening=after(rule, None, 1, file("2026-01-01"))
    )
    teller, later = Teller(rule, None), AT + timedelta(hours=1)
    # A source whose columns are not known, for example: nothing is merged, and listeners are asked all the same.
    assert not teller.is_news(opened, later)
    waiting = teller.listening(opened, (), later, positions, is_written=False)
    assert waiting is not None
    assert (waiting.notices, list(waiting.open)) == ((), ["p=2026-01-01"])
    told = teller.listening(opened, (), later, positions, is_written=True)
    assert told is not None
    assert len(told.notices) == 2
    assert teller.is_news(replace(opened, state=replace(kept, next_us=passed + US)), later)
