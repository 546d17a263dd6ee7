"""The driver's side: list, plan, count. It never opens a file."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from lading.clock import Clock, SystemClock
from lading.errors import ConfigError, ListingError
from lading.model.batch import Limits, Split
from lading.model.file_offset import file_name_or_none
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.sources.files.errors import listing_failed
from lading.sources.files.glob import compile_glob
from lading.sources.files.listing import list_files
from lading.sources.files.packing import SplitSizing, end_of, pack_files
from lading.sources.files.payload import FilePart, Payload, render_payload
from lading.sources.files.settling import Settling
from lading.sources.files.spec import FilesSpec, Ingestion, LateFiles
from lading.sources.files.window import FileStatus, Window, read_window, render_aside, render_window, with_unread
from lading.storage.homes import Homes, file_of_home
from lading.storage.store import ObjectInfo, ReadStore, open_store

_T = TypeVar("_T")
_SAMPLE = 10
QUICK_S = 1.0
"""A look at everything that takes less is made whenever a batch is planned."""
LOOK_EVERY = 10.0
"""A longer one is made again after so many times the time it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """How many files, and the names of the first of them."""

    files: int = 0
    size_bytes: int = 0
    sample: tuple[str, ...] = ()

    def adding(self, file: ObjectInfo) -> FileCount:
        sample = (*self.sample, file.key) if self.files < _SAMPLE else self.sample
        return FileCount(files=self.files + 1, size_bytes=self.size_bytes + file.size, sample=sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is there beside what was loaded, at one moment."""

    pending: FileCount = FileCount()
    """Files that the next batches load."""
    late: FileCount = FileCount()
    """Files that appeared after the position had passed them, where the job only shows those."""
    changed: FileCount = FileCount()
    """Files that were changed after they were loaded."""
    lost_files: int | None = 0
    """Files that the job would not know to be loaded, beyond those that were; at least so many, because files that were
    deleted meanwhile hide as many others. None: the job started at a key, and nobody counted what was below."""
    unread: FileCount = FileCount()
    """Files that could not be read and were put aside."""
    unsettled: FileCount = FileCount()
    """Files that were modified a moment ago and may still be written."""
    settles_in_s: float = 0.0
    """Until all of those have settled, if nobody modifies them."""
    is_missing: bool = False
    """There is no such folder, and nothing was ever loaded from it."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one listing gave to a batch."""

    late: list[ObjectInfo]
    fresh: list[ObjectInfo]
    has_more: bool = False
    has_unsettled: bool = False
    last: str = BEGINNING
    """Everything up to this key was looked at."""
    next_key: str = ""
    """The first file that the limits left to the next batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A look at everything that was cut off by the limits of a batch, and goes on once that batch is committed."""

    at: str
    marks: Mapping[str, str]
    last: str


class FilesSource:
    """Files that match a glob, as one partition. Implements `lading.plan.planner.Source`.

    The position is the highest key that was taken; the window tells which other files were. Fresh files cost a listing
    behind the position. Late ones can be anywhere, so everything is listed for them: each time a batch is planned where
    that is quick, else now and then. Of the limits of a batch, files and bytes hold, checked after each file; rows and
    seconds cannot be known here.
    """

    def __init__(
        self,
        spec: FilesSpec,
        *,
        store: ReadStore | None = None,
        sizing: SplitSizing | None = None,
        parallel: Callable[[], int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._spec = spec
        self._glob = compile_glob(spec.place.pattern)
        self._store = store or open_store(spec.place.root, spec.s3)
        self._sizing = sizing or SplitSizing()
        self._cuts = True
        self._parallel = parallel
        self._clock = clock or SystemClock()
        self._is_local = spec.place.scheme == "file"
        self._settling = Settling(spec.settle_s if self._is_local else 0.0, self._clock)
        self._unpacked: tuple[Mapping[str, str], Window] | None = None
        self._look: _Look | None = None
        self._end = BEGINNING
        self._look_took_s = 0.0
        self._look_due_s = float("-inf")
        self.place = spec.place
        self.partition = spec.place.root + self._glob.literal_prefix

    def read_uncut(self) -> None:
        """Have each file read by one task from now on."""
        self._cuts = False

    def open(self, start: str) -> Positions:
        """Positions for `""` or `{"fileName": key}`. Lists once, so that a wrong key or bucket shows now."""
        at = parse_offset(start)
        self._sorted(lambda: next(self._matching(at, may_be_missing=True), None))
        return Positions(partitions={self.partition: PartitionState(at=at)})

    def list_partitions(self) -> Listing:
        """One partition, always: a prefix without files is an empty partition, not a lost one."""
        return Listing(partitions={self.partition: ListedPartition()})

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """Splits for the next files, late ones first. Files of a batch are known by etag from here on."""
        state = ready.get(self.partition)
        if state is None:
            return ()
        window = self._window_of(state)
        is_once = self._spec.ingestion is Ingestion.ONCE
        start, found = self._next_files(state, window, limits)
        self._end = max(state.at, found.next_key or found.last)
        is_whole = start <= window.floor or not self._loads_late
        if is_once and not is_whole and not found.late and not found.fresh:
            self.look_everywhere()  # Nothing is finished before one look at everything found nothing.
            start, found = self._next_files(state, window, limits)
            is_whole = True
        finished = is_once and is_whole and not found.has_more and not found.has_unsettled
        if not found.late and not found.fresh and not finished:
            return ()
        taken = [*found.late, *found.fresh]
        after = window.adding(taken, at_most=self._spec.remembered_keys, pinned=self._spec.also_load)
        beside, marks = render_aside(after, window), render_window(after)
        # The only file of a batch may turn out to be one that cannot be read.
        unread = render_aside(with_unread(after, taken[0].key), after) if len(taken) == 1 else {}
        first = Payload(parts=(), marks=beside, unread=unread)
        splits = self._splits(state.at, found, limits, finished=finished, marks=marks, first=first)
        if found.has_more and (not is_once or self._look_took_s >= QUICK_S):
            merged = {**state.marks, **beside, **marks}
            self._look = _Look(at=splits[-1].end or state.at, marks=merged, last=found.last)
        return splits

    def end(self) -> str:
        """The first key behind the batch that was planned last, or the last key there was: what Doris calls the end."""
        return self._end

    def look_everywhere(self) -> None:
        """Have the next plan look at everything, however long that takes."""
        self._look, self._look_due_s = None, float("-inf")

    def survey(self, positions: Positions) -> Survey:
        """Count what is there. Lists the whole prefix: for a view, not for every batch."""
        return self._sorted(lambda: self._survey(positions.partitions[self.partition]))

    def _survey(self, state: PartitionState) -> Survey:
        window = self._window_of(state)
        counts = {name: FileCount() for name in ("pending", "late", "changed", "unread", "unsettled")}
        forgotten, settles_in_s = 0, 0.0
        is_missing = window.is_untouched and self._is_missing()
        for file in () if is_missing else self._matching(BEGINNING, may_be_missing=window.is_untouched):
            status = window.status_of(file, state.at)
            name = "pending"
            if status in (FileStatus.CHANGED, FileStatus.UNREAD):
                name = status.value
            elif status in (FileStatus.KNOWN, FileStatus.SKIPPED):
                continue
            elif not self._is_wanted(file, status):
                forgotten += status is FileStatus.FORGOTTEN
                name = "late" if status is FileStatus.LATE else ""
            elif (wait_s := self._settling.remaining_s(file)) > 0:
                name, settles_in_s = "unsettled", max(settles_in_s, wait_s)
            if name:
                counts[name] = counts[name].adding(file)
        lost = None if window.passed is None else max(0, forgotten - window.passed)
        return Survey(**counts, lost_files=lost, settles_in_s=settles_in_s, is_missing=is_missing)

    def first_file(self) -> ObjectInfo | None:
        """The first file there is that nobody writes any more, to infer a schema from."""
        return next(iter(self.first_files(1)), None)

    def first_files(self, most: int) -> list[ObjectInfo]:
        """The first of those."""

        def first() -> list[ObjectInfo]:
            files = self._matching(BEGINNING, may_be_missing=True)
            return list(islice((file for file in files if not self._settling.remaining_s(file)), most))

        return self._sorted(first)

    @property
    def _loads_late(self) -> bool:
        return self._spec.late_files is LateFiles.LOAD

    def _window_of(self, state: PartitionState) -> Window:
        """The window of a state. An idle job asks again and again, always with the same marks."""
        if self._unpacked is None or self._unpacked[0] is not state.marks or not state.marks:
            self._unpacked = (state.marks, read_window(state, self._clock.now()))
        return self._unpacked[1]

    def _is_wanted(self, file: ObjectInfo, status: FileStatus) -> bool:
        """Whether a file is to be loaded, once it has settled."""
        if status in (FileStatus.KNOWN, FileStatus.CHANGED, FileStatus.UNREAD, FileStatus.SKIPPED):
            return False
        is_late = status is FileStatus.LATE and self._loads_late
        return status in (FileStatus.FRESH, FileStatus.ASKED) or is_late or file.key in self._spec.also_load

    def _next_files(self, state: PartitionState, window: Window, limits: Limits) -> tuple[str, _Found]:
        """Where the listing began, and what it gave. Measures looks at everything."""
        began_s = self._clock.monotonic_s()
        start, look = self._start(state, window), self._look
        goes_on = look is not None and start == look.last
        found = self._sorted(lambda: self._find(start, state.at, window, limits))
        self._look = None
        if goes_on or start < state.at:
            took_s = self._clock.monotonic_s() - began_s
            self._look_took_s = took_s + (self._look_took_s if goes_on else 0.0)
            # A look that found late files is made again: this one may have been for the question whether there are any.
            if not found.has_more and not found.late and self._look_took_s >= QUICK_S:
                self._look_due_s = self._clock.monotonic_s() + LOOK_EVERY * self._look_took_s
        return start, found

    def _start(self, state: PartitionState, window: Window) -> str:
        """After which key to list."""
        asked = [*window.asked, *(key for key in self._spec.also_load if key not in window.keys)]
        look = self._look
        if look is not None and (look.at, look.marks) == (state.at, state.marks):
            start = look.last
        elif self._loads_late and self._clock.monotonic_s() >= self._look_due_s:
            start = min(window.floor, state.at)
        else:
            start = state.at
        # Listings give what sorts after a key; of files that were asked for, the key itself is wanted.
        return min([start, *(key[:-1] for key in asked)])

    def _find(self, start: str, at: str, window: Window, limits: Limits) -> _Found:
        late, fresh, size, last, has_unsettled = list[ObjectInfo](), list[ObjectInfo](), 0, start, False
        # Known keys are most of what there is: whether such a file has changed is for a survey.
        known = window.keys.keys() - {*window.unread} if window.unread else window.keys.keys()
        for file in self._matching(start, may_be_missing=window.is_untouched, known=known):
            if file.key not in known and self._is_wanted(file, window.status_of(file, at)):
                if self._settling.remaining_s(file):
                    if not self._loads_late:
                        # Order is kept: what sorts after a file that is still written would make that file late.
                        return _Found(late, fresh, has_unsettled=True, last=last)
                    has_unsettled = True
                elif len(late) + len(fresh) >= limits.files or size >= limits.size_bytes:
                    return _Found(late, fresh, has_more=True, has_unsettled=has_unsettled, last=last, next_key=file.key)
                else:
                    (late if file.key <= at else fresh).append(file)
                    size += file.size
            last = file.key
        return _Found(late, fresh, has_unsettled=has_unsettled, last=last)

    def _sorted(self, look: Callable[[], _T]) -> _T:
        """Some stores do not list in the order of keys. That shows in the middle; from then on the store sorts."""
        try:
            return look()
        except ListingError as error:
            if error.code != "UnsortedListing":
                raise
            return look()

    def _is_missing(self) -> bool:
        try:
            next(self._matching(BEGINNING), None)
        except ListingError as error:
            if error.code != "PlaceMissing":
                raise
            return True
        return False

    def _matching(
        self, start_after: str, *, may_be_missing: bool = False, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        """Files that match, in the order of their keys. A folder that was never there is empty; one that is gone is an
        error. Of known files nothing is told but their keys."""
        try:
            yield from self._listed(start_after, known)
        except ListingError as error:
            if not may_be_missing or error.code != "PlaceMissing":
                raise

    def _listed(self, start_after: str, known: Container[str]) -> Iterator[ObjectInfo]:
        glob, homes = self._glob, Homes()
        if self._is_local and (home := homes.home_of(glob.literal_prefix)) is not None:
            raise file_of_home(glob.literal_prefix, home)
        for file in list_files(self._store, glob.literal_prefix, start_after, glob.max_slashes, known):
            if file.key in known:
                yield file
            elif glob.matches(file.key):
                if not _is_text(file.key):
                    raise listing_failed(self.partition, f"the name {file.key!r} is not UTF-8")
                if self._is_local and (home := homes.home_of(file.key, is_link=file.is_link)) is not None:
                    raise file_of_home(file.key, home)
                yield file

    def _splits(
        self, at: str, found: _Found, limits: Limits, *, finished: bool, marks: Mapping[str, str], first: Payload
    ) -> tuple[Split, ...]:
        """`first` has what the first of them tells."""
        # Late files do not move the position: their splits go from it to itself, and only the window tells of them.
        sizing = self._sizing
        if self._parallel is not None and (found.late or found.fresh):
            sizing = replace(sizing, parallel=max(2, self._parallel()))
        late, fresh = (pack_files(files, self._spec, sizing, cuts=self._cuts) for files in (found.late, found.fresh))
        groups: list[tuple[str, tuple[FilePart, ...]]] = [(at, group) for group in late]
        groups += [(end_of(group[-1]), group) for group in fresh]
        if not groups:
            groups = [(at, ())]
        taken = [*found.late, *found.fresh]
        least = f"file {taken[0].key}" if len(taken) == 1 else ""
        splits = []
        for number, (end, parts) in enumerate(groups):
            is_last = number == len(groups) - 1
            said = first if number == 0 else Payload(parts=())
            payload = replace(
                said, parts=parts, finished=finished and is_last, marks={**said.marks, **(marks if is_last else {})}
            )
            splits.append(
                Split(
                    number=number,
                    partition=self.partition,
                    start=groups[number - 1][0] if number else at,
                    end=end,
                    limits=limits,
                    payload=render_payload(payload),
                    least=least,
                    is_record=bool(least),
                )
            )
        return tuple(splits)


def parse_offset(text: str) -> str:
    """A position from `""` or from the JSON text that Doris shows and takes."""
    if not text:
        return BEGINNING
    todo = 'Write {"fileName": "key of the last file"}.'
    try:
        name = file_name_or_none(text)
    except ValueError as error:
        msg = f"Failed to initialize offset: {text!r} is not JSON"
        raise ConfigError(msg, left="Nothing was changed.", todo=todo) from error
    if name is None:
        msg = f"Invalid format for offset: {text}"
        raise ConfigError(msg, left="Nothing was changed.", todo=todo)
    return name


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
