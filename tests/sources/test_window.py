"""What is remembered of loaded files: exact while it is enough, and honest when it is not."""

from __future__ import annotations

import base64
import random
import zlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from lading.model.batch import Limits
from lading.model.codec import parse_bill
from lading.model.positions import PartitionState, Positions
from lading.sources.files.aside import LOAD, SKIP, FileWord, moved_aside, repeats_nothing
from lading.sources.files.payload import parse_payload
from lading.sources.files.source import QUICK_S, FilesSource
from lading.sources.files.window import FileStatus, Remembered, Window, read_window, render_aside, render_window
from lading.storage.store import ByteFile, ObjectInfo
from lading.testing.clock import ManualClock
from tests.sources.support import bare_spec_of, with_columns
from tests.support.examples import examples

GOLDEN = Path(__file__).parent.parent / "golden"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def file(key: str, at_s: float = 0, etag: str = "1") -> ObjectInfo:
    return ObjectInfo(key, 10, etag, NOW + timedelta(seconds=at_s))


class Bucket:
    """A store of names alone, whose listings may take long."""

    def __init__(self, clock: ManualClock, *, page_s: float = 0.0) -> None:
        self.files: dict[str, ObjectInfo] = {}
        self.listed = 0
        self._clock = clock
        self._page_s = page_s

    def put(self, key: str, etag: str = "1", modified: datetime | None = None) -> None:
        self.files[key] = ObjectInfo(key, 10, etag, modified or self._clock.now())

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        for key in sorted(key for key in self.files if key > start_after):
            self.listed += 1
            self._clock.sleep(self._page_s)
            yield self.files[key]

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        raise NotImplementedError

    def uri_of(self, key: str) -> str:
        return key

    def for_many(self) -> Bucket:
        return self


class Load:
    """A job over such a store. Batches are committed as the coordinator would."""

    def __init__(self, properties: Mapping[str, str] = MappingProxyType({}), *, page_s: float = 0.0) -> None:
        self.clock = ManualClock(NOW)
        self.bucket = Bucket(self.clock, page_s=page_s)
        self._spec = with_columns(bare_spec_of(uri="s3://b/in/*", **properties), "c1")
        self.source = FilesSource(self._spec, store=self.bucket, clock=self.clock)
        self.positions = self.source.open("")

    def restart(self, properties: Mapping[str, str] = MappingProxyType({})) -> None:
        spec = with_columns(bare_spec_of(uri="s3://b/in/*", **properties), "c1") if properties else self._spec
        self.source = FilesSource(spec, store=self.bucket, clock=self.clock)

    def put(self, *names: str) -> None:
        for name in names:
            self.clock.sleep(1)
            self.bucket.put(f"in/{name}")

    def run(self, files: int = 1000) -> list[str]:
        splits = self.source.plan(self.positions.partitions, Limits(files=files))
        taken = [part.key.removeprefix("in/") for split in splits for part in parse_payload(split.payload).parts]
        if splits:
            state = self.positions.partitions[self.source.partition]
            marks = {**state.marks, **parse_payload(splits[-1].payload).marks}
            moved = PartitionState(at=splits[-1].end or "", marks=marks)
            self.positions = Positions(partitions={self.source.partition: moved})
        return taken


def test_names_that_say_nothing_of_time_are_all_loaded_however_many_there_are() -> None:
    rng = random.Random(5)
    load = Load({"s3.late_window": "20"})
    names = [f"{rng.getrandbits(64):016x}" for _ in range(400)]
    loaded = []
    for at in range(0, 400, 8):
        load.put(*names[at : at + 8])
        loaded += load.run(files=5) + load.run()
    assert sorted(loaded) == sorted(names)
    assert load.source.survey(load.positions).lost_files == 0


def test_what_may_have_been_loaded_is_counted_and_loaded_only_by_name() -> None:
    """A file that appears with an old time, beyond what is remembered: nobody can tell it from a loaded one."""
    load = Load({"s3.late_window": "3"})
    load.put("p", "a", "z", "c", "x", "d")
    load.run()
    load.bucket.put("in/b", modified=NOW)
    assert load.run() == []
    assert load.source.survey(load.positions).lost_files == 1
    load.restart({"s3.late_window": "3", "s3.also_load": '["in/b", "in/never-there"]'})
    assert load.run() == ["b"]
    assert load.run() == []
    load.put("e", "f", "g", "h")
    assert load.run() == ["e", "f", "g", "h"]
    assert load.run() == [], "a file that was asked for is never forgotten while it is asked for"
    assert load.source.survey(load.positions).lost_files == 0


def test_where_names_sort_by_time_a_file_that_is_touched_is_never_loaded_again() -> None:
    load = Load({"s3.late_window": "3"})
    load.put(*"abcdefgh")
    load.run()
    load.clock.sleep(100)
    for name in "abcd":
        load.bucket.put(f"in/{name}", etag="2")
    load.bucket.put("in/g", etag="2")
    assert load.run() == []
    assert load.source.survey(load.positions).changed.sample == ("in/g",)


def test_files_of_one_second_do_not_say_that_names_sort_by_time() -> None:
    load = Load({"s3.late_window": "2"})
    for name in ("a", "k", "m", "z"):
        load.bucket.put(f"in/{name}")
    load.run()
    load.put("b", "l")
    assert load.run() == ["b", "l"]


def test_a_long_look_at_everything_is_made_now_and_then_and_goes_on_where_it_was_cut_off() -> None:
    load = Load(page_s=0.01)
    load.put(*(f"{n:04d}" for n in range(300)))
    while load.run(files=50):
        pass
    assert load.bucket.listed < 700, "each batch listed everything again"
    load.put("0000a", "9")
    listed = load.bucket.listed
    assert load.run() == ["9"], "between two long looks only what sorts after the position is listed"
    assert load.bucket.listed - listed < 5
    load.clock.sleep(100 * QUICK_S)
    assert load.run() == ["0000a"]
    load.put("0000b")
    load.source.look_everywhere()
    assert load.run() == ["0000b"]


def test_a_look_that_was_cut_off_begins_again_when_its_batch_was_not_committed() -> None:
    load = Load()
    load.put("m", "n", "o")
    load.run()
    load.put("a", "b", "c")
    load.source.plan(load.positions.partitions, Limits(files=2))  # A batch that dies before its commit.
    assert load.run(files=2) == ["a", "b"]
    assert load.run(files=2) == ["c"]


@settings(max_examples=examples(80), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 30), st.integers(1, 6))
def test_no_file_is_loaded_twice_and_those_that_are_not_loaded_are_counted(
    rng: random.Random, window: int, batch: int
) -> None:
    """Late, unordered, with old times, deleted: whatever the names and the window."""
    load = Load({"s3.late_window": str(window)})
    loaded: list[str] = []
    for number in range(40):
        name = rng.choice([f"{number:02d}", f"{rng.getrandbits(16):04x}-{number}"])
        load.clock.sleep(rng.choice([0, 0, 1, 50]))
        age = timedelta(seconds=rng.choice([0, 0, 0, 30, 500]))
        load.bucket.put(f"in/{name}", modified=load.clock.now() - age)
        if rng.random() < 0.3:
            load.source.plan(load.positions.partitions, Limits(files=batch))
        if rng.random() < 0.4:
            loaded += load.run(files=batch)
        if rng.random() < 0.05:
            load.restart()
    while more := load.run(files=batch):
        loaded += more
    assert len(loaded) == len(set(loaded))
    assert load.source.survey(load.positions).lost_files == 40 - len(loaded)
    assert window < 30 or len(loaded) >= 30


@given(st.dictionaries(st.text(alphabet="abé/", min_size=1), st.integers(0, 50), max_size=20), st.integers(1, 10))
def test_a_window_is_kept_in_marks(files: dict[str, int], at_most: int) -> None:
    window = Window().adding([file(key, at_s) for key, at_s in files.items()], at_most=at_most)
    assert read_window(PartitionState(at="z", marks=render_window(window)), NOW) == window
    assert len(window.keys) <= at_most
    assert window.passed is not None
    assert window.passed + len(window.keys) == len(files)
    for key, at_s in files.items():
        status = window.status_of(file(key, at_s), max(files))
        assert status is (FileStatus.KNOWN if key in window.keys else FileStatus.FORGOTTEN)


def test_what_brings_nothing_again_and_what_may() -> None:
    """Of a file that was put aside, or left out while that was known, nothing was loaded."""
    clock = ManualClock()
    files = {"/in/a.csv": 1, "/in/b.csv": 2, "/in/c.csv": 3}
    keys = {key: Remembered(at) for key, at in files.items()}
    window = Window(keys=keys, unread=("/in/c.csv",), floor="/in/0")
    aside = render_aside(window, Window())
    stood = PartitionState(at="/in/c.csv", marks={**render_window(window), **aside})
    place = "/in/*.csv"

    def after(state: PartitionState, *words: tuple[str, str]) -> PartitionState:
        for what, name in words:
            positions = Positions(partitions={"p": state})
            state = moved_aside(positions, FileWord(what=what, name=name), place, clock.now())[0].partitions["p"]
        return state

    for words in (
        [],
        [(LOAD, "/in/c.csv")],
        [(SKIP, "/in/c.csv")],
        [(SKIP, "/in/z.csv")],
        [(SKIP, "/in/z.csv"), (LOAD, "/in/z.csv"), (SKIP, "/in/c.csv"), (LOAD, "/in/c.csv")],
    ):
        assert repeats_nothing(stood, after(stood, *words)), words
    left_out = after(stood, (SKIP, "/in/c.csv"), (SKIP, "/in/0.csv"))
    assert repeats_nothing(left_out, after(left_out, (LOAD, "/in/c.csv")))
    assert not repeats_nothing(left_out, after(left_out, (LOAD, "/in/0.csv"))), "it may have been loaded once"
    forgets = {**stood.marks, **render_window(Window(keys={"/in/b.csv": keys["/in/b.csv"]}, floor="/in/0"))}
    for other in (
        replace(stood, at="/in/d.csv"),
        replace(stood, at="/in/b.csv"),
        replace(stood, marks={}),
        replace(stood, marks=forgets),
        replace(stood, marks={**stood.marks, "late.floor": ""}),
        replace(stood, marks={**stood.marks, "other": "mark"}),
    ):
        assert not repeats_nothing(stood, other), other


def test_a_window_of_an_older_version_is_read() -> None:
    """It has keys without times. They count as of now, so that they are not the first to be forgotten."""
    packed = base64.b85encode(zlib.compress(b"in/b\0in/d")).decode()
    marks = {"late.floor": "in/a", "late.passed": "7", "late.keys": packed}
    window = read_window(PartitionState(at="in/d", marks=marks), NOW)
    assert [window.status_of(file(f"in/{key}"), "in/d").value for key in "abcde"] == [
        "forgotten",
        "known",
        "late",
        "known",
        "fresh",
    ]
    assert window.passed == 7
    grown = window.adding([file("in/c", 5, "3")], at_most=2)
    assert grown.keys.keys() == {"in/c", "in/d"}
    assert read_window(PartitionState(at="in/d", marks=render_window(grown)), NOW) == grown


def test_a_job_goes_on_from_a_bill_of_an_older_version() -> None:
    """Recorded: a, b, d, f and h were loaded, and d, f and h are remembered."""
    load = Load()
    load.put("a.csv", "b.csv", "d.csv", "f.csv", "h.csv")
    load.positions = parse_bill((GOLDEN / "bill-v2-files.json").read_bytes(), where="golden").positions
    assert load.run() == []
    load.put("aa.csv", "e.csv", "i.csv")
    assert load.run() == ["e.csv", "i.csv"]
    assert load.run() == []
    assert load.source.survey(load.positions).lost_files == 1


def test_ten_thousand_remembered_files_stay_small() -> None:
    ordered = [file(f"events/2025/03/{n // 500:02d}/part-{n:05d}.json.gz", n, str(n)) for n in range(10_000)]
    rng = random.Random(1)
    chance = [file(f"events/{rng.getrandbits(128):032x}.json", 10 * n, str(n)) for n in range(10_000)]
    sizes = [
        sum(map(len, render_window(Window().adding(files, at_most=10_000)).values())) for files in (ordered, chance)
    ]
    assert sizes[0] < 150_000
    assert sizes[1] < 350_000
