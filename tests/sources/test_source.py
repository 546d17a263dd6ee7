"""Planning: limits, chains of positions, offsets, late files, one-shot loads."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.model.batch import Limits
from lading.model.file_offset import render_offset
from lading.model.positions import BEGINNING, PartitionState, Positions, move_positions
from lading.plan.planner import Planner
from lading.sources.files.packing import SplitSizing, is_cuttable, pack_files
from lading.sources.files.payload import parse_payload
from lading.sources.files.source import FilesSource, parse_offset
from lading.storage.store import ObjectInfo
from lading.testing.clock import ManualClock
from tests.sources.support import BIG, Job, Place, bare_spec_of, with_columns
from tests.support.examples import examples


def job(place: Place, glob: str = "*.csv", start: str = "", **properties: str) -> Job:
    return Job(with_columns(place.bare(glob, **properties), "c1"), start)


def put(place: Place, *names: str) -> None:
    for name in names:
        place.put(name, b"x\n")


def test_files_are_loaded_in_key_order_and_each_once(place: Place) -> None:
    put(place, "b.csv", "a.csv", "ignored.json", "deep/c.csv")
    load = job(place)
    assert load.plan()
    assert load.files() == ["a.csv", "b.csv"]
    assert load.plan() == ()
    put(place, "c.csv", "b2.csv")
    assert load.files() == ["b2.csv", "c.csv"]
    assert load.files() == []


def test_a_prefix_without_files_is_an_empty_partition(place: Place) -> None:
    put(place, "other.json")
    load = job(place)
    assert load.state.at == BEGINNING
    assert load.plan() == ()
    assert load.source.list_partitions().partitions.keys() == load.positions.partitions.keys()
    put(place, "a.csv")
    assert load.files() == ["a.csv"]


def test_limits_are_checked_after_a_file_so_one_always_goes(place: Place) -> None:
    put(place, *(f"{number}.csv" for number in range(5)))
    load = job(place)
    assert load.files(Limits(files=2)) == ["0.csv", "1.csv"]
    assert load.files(Limits(size_bytes=1)) == ["2.csv"]
    assert load.files(Limits(size_bytes=3)) == ["3.csv", "4.csv"]


def test_offsets_as_doris_writes_them(place: Place) -> None:
    put(place, "a.csv", "b.csv", "c.csv")
    first = job(place)
    first.run(Limits(files=2))
    again = job(place, start=render_offset(first.state.at))
    assert again.files() == ["c.csv"]
    between = job(place, start=render_offset(first.state.at + "nothing has this name"))
    assert between.files() == ["c.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "Failed to initialize offset"),
        ('{"filename": "a"}', "Invalid format for offset"),
        ('{"fileName": ""}', "Invalid format for offset"),
        ('{"fileName": 5}', "Invalid format for offset"),
        ("[]", "Invalid format for offset"),
    ],
)
def test_other_offsets_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_offset(text)


def test_the_planner_plans_and_an_operator_moves_back(folder: Place) -> None:
    put(folder, "a.csv", "b.csv")
    load = job(folder)
    planner = Planner(load.source, ManualClock())
    assert len(planner.plan(load.positions, BIG).splits) == 1
    load.run()
    load.positions = move_positions(load.positions, {load.source.partition: BEGINNING})
    assert load.files() == ["a.csv", "b.csv"]


def test_a_one_shot_load_finishes_when_everything_is_loaded(place: Place) -> None:
    put(place, "a.csv", "b.csv", "c.csv")
    load = job(place, **{"s3.ingestion_mode": "ONCE"})
    assert load.files(Limits(files=2)) == ["a.csv", "b.csv"]
    assert not load.state.finished
    assert load.files(Limits(files=2)) == ["c.csv"]
    assert load.state.finished
    assert load.plan() == ()


def test_a_one_shot_load_of_nothing_finishes_too(place: Place) -> None:
    put(place, "a.json")
    load = job(place, **{"s3.ingestion_mode": "ONCE"})
    assert load.files() == []
    assert load.state.finished


def test_late_files_are_counted_and_not_loaded_where_the_job_says_so(place: Place) -> None:
    put(place, "b.csv", "d.csv")
    load = job(place, **{"s3.late_files": "SHOW"})
    load.run()
    put(place, "a.csv", "c.csv", "e.csv")
    survey = load.source.survey(load.positions)
    assert (survey.late.files, survey.pending.files, survey.lost_files) == (2, 1, 0)
    assert [key.rpartition("/")[2] for key in survey.late.sample] == ["a.csv", "c.csv"]
    assert load.files() == ["e.csv"]
    assert load.source.survey(load.positions).late.files == 2


def test_files_are_loaded_once_in_whatever_order_they_come(place: Place) -> None:
    put(place, "b.csv", "d.csv")
    load = job(place)
    load.run()
    at = load.state.at
    put(place, "a.csv", "c.csv")
    assert load.files(Limits(files=1)) == ["a.csv"]
    assert load.state.at == at
    put(place, "e.csv")
    assert load.files() == ["c.csv", "e.csv"]
    put(place, "c.csv")
    assert load.files() == []
    assert load.source.survey(load.positions).late.files == 0


def test_an_operators_position_is_the_floor_for_late_files(folder: Place) -> None:
    put(folder, "a.csv", "c.csv", "d.csv")
    load = job(folder, **{"s3.late_files": "LOAD"})
    load.run()
    moved = load.state.at.replace("d.csv", "b.csv")
    load.positions = move_positions(load.positions, {load.source.partition: moved})
    put(folder, "aa.csv", "bb.csv")
    assert load.files() == ["bb.csv", "c.csv", "d.csv"]
    put(folder, "ab.csv", "ca.csv")
    assert load.files() == ["ca.csv"]
    assert load.source.survey(load.positions).lost_files is None


@settings(max_examples=examples(60), deadline=None)
@given(rng=st.randoms(use_true_random=False), batch=st.integers(1, 4), window=st.integers(1, 30))
def test_with_a_window_that_is_large_enough_every_file_is_loaded_once(
    rng: random.Random, batch: int, window: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(tmp_path_factory.mktemp("late"))
    load = job(place, **{"s3.late_files": "LOAD", "s3.late_window": str(window)})
    names = [f"{number:02d}.csv" for number in range(12)]
    rng.shuffle(names)
    loaded: list[str] = []
    for name in names:
        put(place, name)
        if rng.random() < 0.5:
            load.plan()  # A batch that dies before its commit.
        if rng.random() < 0.7:
            loaded += load.files(Limits(files=batch))
    while more := load.files(Limits(files=batch)):
        loaded += more
    assert len(loaded) == len(set(loaded))
    lost = load.source.survey(load.positions).lost_files
    assert lost is not None
    assert len(loaded) + lost == 12
    assert window < 12 or lost == 0


sizes = st.lists(st.integers(0, 5_000), min_size=1, max_size=30)


@given(sizes, st.integers(1, 8), st.sampled_from(["csv", "parquet", "csv.gz"]))
def test_splits_cover_every_byte_once_and_in_order(sizes: list[int], parallel: int, suffix: str) -> None:
    spec = bare_spec_of(uri="/x/*", format="parquet" if suffix == "parquet" else "csv")
    files = [ObjectInfo(f"/x/{n:03d}.{suffix}", size, "e", None) for n, size in enumerate(sizes)]  # type: ignore[arg-type]  # nobody asks for the time here
    sizing = SplitSizing(target_bytes=1_000, parallel=parallel, smallest_bytes=100, open_cost_bytes=10, max_splits=20)
    groups = pack_files(files, spec, sizing)
    parts = [part for group in groups for part in group]
    for file in files:
        spans = [(part.begin, part.end) for part in parts if part.key == file.key]
        assert spans[0][0] == 0
        assert spans[-1][1] == file.size
        assert all(one[1] == other[0] for one, other in pairwise(spans))
        assert len(spans) == 1 or suffix != "csv.gz"
    assert [part.key for part in parts] == sorted(part.key for part in parts)
    assert len(groups) <= 60


def test_splits_of_a_batch_form_a_chain(folder: Place) -> None:
    folder.put("a.csv", b"x\n" * 50_000)
    put(folder, "b.csv", "c.csv")
    spec = with_columns(folder.bare("*.csv"), "c1")
    sizing = SplitSizing(target_bytes=30_000, parallel=4, smallest_bytes=10_000, open_cost_bytes=100)
    source = FilesSource(spec, sizing=sizing)
    splits = source.plan(source.open("").partitions, BIG)
    assert len(splits) > 3
    assert splits[0].start == BEGINNING
    assert all(one.end == other.start for one, other in pairwise(splits))
    assert (
        splits[0].end == f"{folder.uri.removeprefix('file://')}/a.csv#{parse_payload(splits[0].payload).parts[0].end}"
    )
    assert splits[-1].end == f"{folder.uri.removeprefix('file://')}/c.csv"


@pytest.mark.parametrize(
    ("key", "properties", "expected"),
    [
        ("a.csv", {}, True),
        ("a.csv.gz", {}, False),
        ("a.csv", {"enclose": '"'}, True),
        ("a.csv", {"line_delimiter": "||"}, False),
        ("a.csv", {"line_delimiter": "|!"}, True),
        ("a.json", {"format": "json"}, True),
        ("a.json", {"format": "json", "strip_outer_array": "true"}, False),
        ("a.parquet", {"format": "parquet"}, True),
    ],
)
def test_only_files_whose_rows_can_be_found_from_the_middle_are_cut(
    key: str, properties: dict[str, str], expected: bool
) -> None:
    assert is_cuttable(key, bare_spec_of(uri="/x/*", **properties)) == expected


def test_positions_of_another_partition_are_left_alone(folder: Place) -> None:
    put(folder, "a.csv")
    other = Positions(partitions={"elsewhere": PartitionState(at="")})
    assert job(folder).source.plan(other.partitions, BIG) == ()
