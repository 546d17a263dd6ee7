"""Files that cannot be read: put aside for what is in them and for nothing else, and loaded once they were repaired."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lading.errors import SourceError, SqlError, StageError, StorageError
from lading.model.batch import Limits, PoisonRecord, RecordPlace, Split
from lading.model.positions import PartitionState, Positions, move_positions
from lading.model.rows import SplitEnd
from lading.sources.files.aside import LOAD, SKIP, FileWord, aside_of, moved_aside
from lading.sources.files.reader import read_split
from lading.sources.files.schema import infer_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, LateFiles
from lading.sources.files.surveys import told_survey
from lading.sources.files.window import read_window
from lading.storage.store import open_store
from tests.sources.support import BIG, Place, pack, with_columns
from tests.sources.test_faulty_reads import CONTENTS, Shaky
from tests.sources.test_matrix import parquet, table

GOOD = b"1\tx\n2\ty\n"
BAD = pack(GOOD * 1000, "gz")[:-9]
NOW = datetime(2026, 8, 1, tzinfo=UTC)


def spec_of(folder: Place, **properties: str) -> FilesSpec:
    spec = with_columns(folder.bare("*", **properties), "c1", "c2")
    return replace(spec, skips_unreadable=True)


def planned(source: FilesSource, state: PartitionState, limits: Limits = BIG) -> tuple[Split, ...]:
    return source.plan({source.partition: state}, limits)


def checked(split: Split) -> Split:
    return replace(split, poison="it could not be read", is_checked=True)


def ended(items: list[pa.RecordBatch | SplitEnd]) -> SplitEnd:
    (end,) = [item for item in items if isinstance(item, SplitEnd)]
    return end


def put_aside(source: FilesSource, state: PartitionState, spec: FilesSpec) -> tuple[PartitionState, str]:
    """The state after the next file is put aside, and the reason."""
    splits = planned(source, state, replace(BIG, files=1))
    marks, reasons = dict(state.marks), list[str]()
    for split in splits:
        items = list(read_split(spec, checked(split)))
        marks |= ended(items).marks
        for batch in items:
            if isinstance(batch, pa.RecordBatch):
                reasons += [reason for reason in batch.column("__error").to_pylist() if reason]
    (reason,) = reasons
    return PartitionState(at=splits[-1].end or "", marks=marks), reason


def start(source: FilesSource) -> PartitionState:
    return source.open("").partitions[source.partition]


def keys(splits: tuple[Split, ...]) -> list[str]:
    return [part[0].rpartition("/")[2] for split in splits for part in json.loads(split.payload)["files"]]


def test_one_bad_row_stands_for_the_file_and_it_is_remembered(folder: Place) -> None:
    folder.put("a.gz", BAD)
    folder.put("b.csv", GOOD)
    spec = spec_of(folder)
    source = FilesSource(spec)
    state, reason = put_aside(source, start(source), spec)
    assert "a.gz cannot be read: Truncated" in reason
    assert keys(planned(source, state)) == ["b.csv"]
    survey = told_survey(source.partition, source.survey(Positions(partitions={source.partition: state})), 0)
    assert survey.left_out["unread"] == 1
    assert "a.gz" in survey.remark


def test_rows_before_the_damage_are_not_loaded(folder: Place) -> None:
    folder.put("a.gz", pack(b"".join(b"%d\tx\n" % n for n in range(400_000)), "gz")[:-9])
    spec = spec_of(folder)
    source = FilesSource(spec)
    (split,) = planned(source, start(source))
    batches = [item for item in read_split(spec, checked(split)) if isinstance(item, pa.RecordBatch)]
    assert [batch.num_rows for batch in batches] == [1]


def test_a_file_that_can_be_read_after_all_is_not_put_aside(folder: Place) -> None:
    folder.put("a.csv", GOOD)
    spec = spec_of(folder)
    source = FilesSource(spec)
    (split,) = planned(source, start(source))
    with pytest.raises(StageError, match=r"a\.csv could not be read before, and can be read now"):
        list(read_split(spec, checked(split)))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet", "a.orc"])
def test_a_disk_that_fails_while_the_file_is_judged_puts_nothing_aside(folder: Place, name: str) -> None:
    """Once a good file was put aside after one transient error."""
    folder.put(name, CONTENTS[name])
    spec = folder.spec(name, format=name.rpartition(".")[2]) if "csv" not in name else spec_of(folder)
    source = FilesSource(spec)
    (split, *_) = planned(source, start(source), replace(BIG, files=1))
    shaky = Shaky(open_store(spec.place.root, spec.s3), 2, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageError, match="could not be fetched"):
        list(read_split(spec, checked(split), store=shaky))


def test_a_file_that_is_replaced_before_it_is_judged_is_judged_as_it_is_then(folder: Place) -> None:
    folder.put("a.gz", BAD)
    spec = spec_of(folder)
    source = FilesSource(spec)
    (split,) = planned(source, start(source))
    folder.delete("a.gz")
    folder.put("z", b"takes the place on the disk\n")
    folder.put("a.gz", pack(GOOD, "gz"))
    with pytest.raises(StageError, match="was replaced"):
        list(read_split(spec, checked(split)))


@pytest.mark.parametrize("late", list(LateFiles))
def test_a_file_that_was_repaired_is_loaded_where_late_files_are(folder: Place, late: LateFiles) -> None:
    folder.put("a.gz", BAD)
    folder.put("b.csv", GOOD)
    spec = replace(spec_of(folder), late_files=late)
    source = FilesSource(spec)
    state, _ = put_aside(source, start(source), spec)
    splits = planned(source, state)
    state = PartitionState(at=splits[-1].end or "", marks={**state.marks, **json.loads(splits[-1].payload)["marks"]})
    assert planned(source, state) == ()
    folder.delete("a.gz")
    folder.put("a.gz", pack(GOOD, "gz"))
    source.look_everywhere()
    found = planned(source, state)
    assert keys(found) == (["a.gz"] if late is LateFiles.LOAD else [])
    if found:
        assert json.loads(found[0].payload)["marks"]["late.unread"] == "", "it is not put aside any longer"
        rows = [item.num_rows for item in read_split(spec, found[0]) if isinstance(item, pa.RecordBatch)]
        assert rows == [2]


def test_a_file_that_comes_broken_a_second_time_is_not_taken_for_a_loaded_one(folder: Place) -> None:
    """It was: its third, whole version was never loaded, and LOAD FILE said that it was not put aside."""
    spec = spec_of(folder)
    source = FilesSource(spec)
    folder.put("a.gz", BAD)
    state, _ = put_aside(source, start(source), spec)
    folder.delete("a.gz")
    folder.put("a.gz", BAD[:-9])
    source.look_everywhere()
    state, _ = put_aside(source, state, spec)
    assert [key.rpartition("/")[2] for key in read_window(state, NOW).unread] == ["a.gz"]
    survey = source.survey(Positions(partitions={source.partition: state}))
    assert (survey.unread.files, survey.changed.files) == (1, 0)
    folder.delete("a.gz")
    folder.put("a.gz", pack(GOOD, "gz"))
    source.look_everywhere()
    assert keys(planned(source, state)) == ["a.gz"]


def test_a_file_in_several_parts_is_judged_once_as_a_whole(folder: Place) -> None:
    content = parquet(table())
    folder.put("good.parquet", content)
    spec = replace(folder.spec("*.parquet", format="parquet"), skips_unreadable=True)
    folder.delete("good.parquet")
    folder.put("bad.parquet", content[:-9])
    source = FilesSource(spec)
    (split,) = planned(source, start(source))
    body = json.loads(split.payload)
    (key, size, etag, _, _), half = body["files"][0], body["files"][0][1] // 2
    parts = [
        replace(checked(split), payload=json.dumps({**body, "files": [[key, size, etag, *cut]]}))
        for cut in ((0, half), (half, size))
    ]
    found = [ended(list(read_split(spec, part))) for part in parts]
    assert [end.rows for end in found] == [1, 0]
    assert "late.unread" in found[0].marks


def test_columns_are_those_of_the_first_file_that_can_be_read(folder: Place) -> None:
    folder.put("a.parquet", b"PAR1 and no more")
    folder.put("b.parquet", parquet(table()))
    bare = folder.bare("*.parquet", format="parquet")
    with pytest.raises(SourceError, match=r"a\.parquet"):
        infer_schema(bare)
    found = infer_schema(replace(bare, skips_unreadable=True))
    assert found is not None
    assert found.schema is not None
    folder.delete("b.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet"):
        infer_schema(replace(bare, skips_unreadable=True))


def test_what_an_operator_left_out_stays_out_when_the_position_is_moved() -> None:
    marks = {"late.unread": '["a"]', "lasting.skipped": '["b"]', "late.floor": ""}
    moved = move_positions(Positions(partitions={"p": PartitionState(at="c", marks=marks)}), {"p": ""})
    assert moved.partitions["p"].marks == {"lasting.skipped": '["b"]'}


def test_a_file_that_was_put_aside_is_loaded_when_an_operator_says_so(folder: Place) -> None:
    folder.put("a.gz", BAD)
    folder.put("b.csv", GOOD)
    spec = spec_of(folder)
    source = FilesSource(spec)
    state, _ = put_aside(source, start(source), spec)
    positions = Positions(partitions={source.partition: state})
    moved, key, _ = moved_aside(positions, FileWord(what=LOAD, name="a.gz"), f"{folder.uri}/*", NOW)
    assert key.endswith("/a.gz")
    asked = moved.partitions[source.partition]
    splits = planned(source, asked)
    assert keys(splits) == ["a.gz", "b.csv"]
    marks = {**asked.marks, **json.loads(splits[0].payload)["marks"], **json.loads(splits[-1].payload)["marks"]}
    loaded = PartitionState(at=splits[-1].end or "", marks=marks)
    assert planned(source, loaded) == (), "once"
    with pytest.raises(SqlError, match=r"b\.csv was loaded by the job: it is too late"):
        moved_aside(
            Positions(partitions={source.partition: loaded}), FileWord(what=SKIP, name="b.csv"), f"{folder.uri}/*", NOW
        )


def test_a_file_that_is_left_out_may_not_be_there_yet(folder: Place) -> None:
    folder.put("a.csv", GOOD)
    source = FilesSource(spec_of(folder))
    positions = Positions(partitions={source.partition: start(source)})
    word = FileWord(what=SKIP, name="b.csv")
    moved, _, _ = moved_aside(positions, word, f"{folder.uri}/*", NOW)
    folder.put("b.csv", GOOD)
    folder.put("c.csv", GOOD)
    state = moved.partitions[source.partition]
    assert keys(planned(source, state)) == ["a.csv", "c.csv"]
    assert aside_of(moved, NOW)["left out"][0].endswith("/b.csv")


def test_a_planner_reads_the_file_alone(tmp_path: Path) -> None:
    from lading.plan.planner import Planner
    from lading.testing.clock import ManualClock

    folder = Place(tmp_path)
    for name in ("a.gz", "b.gz"):
        folder.put(name, BAD)
    source = FilesSource(spec_of(folder))
    positions = source.open("")
    at = positions.partitions[source.partition].at
    place = RecordPlace(
        partition=source.partition, at=at, words=f"file {tmp_path}/a.gz".replace("//", "/"), is_record=True
    )
    planner = Planner(source, ManualClock(), poison=PoisonRecord(place=place, reason="bad", is_checked=True))
    plan = planner.plan(positions, BIG)
    assert (keys(plan.splits), plan.splits[0].is_checked, plan.passes_over) == (["a.gz"], True, True)
