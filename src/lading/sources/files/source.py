"""The driver's side: list, plan, count. It never opens a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lading.errors import ConfigError
from lading.model.batch import Limits, Split
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.sources.files.faults import file_of_home, listing_failed
from lading.sources.files.glob import compile_glob
from lading.sources.files.packing import SplitSizing, end_of, pack_files
from lading.sources.files.payload import FilePart, Payload, render_payload
from lading.sources.files.spec import FilesSpec, Ingestion, LateFiles
from lading.sources.files.store import ObjectInfo, ObjectStore, open_store
from lading.sources.files.window import Window, read_window, render_window
from lading.sources.homes import Homes

_SAMPLE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is there beside what was loaded, at one moment."""

    pending_files: int = 0
    pending_bytes: int = 0
    late_files: int = 0
    """Files in the window that appeared after the position had passed them."""
    late_sample: tuple[str, ...] = ()
    lost_files: int | None = 0
    """Files at or below the floor of the window beyond those that were loaded; at least so many, because files that
    were deleted meanwhile hide as many others. None: the job started at a key, and nobody counted what was below."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one listing gave to a batch."""

    late: list[ObjectInfo]
    fresh: list[ObjectInfo]
    has_more: bool


class FilesSource:
    """Files that match a glob, as one partition in key order. Implements `lading.plan.planner.Source`.

    The position is the key of the last file taken; the next to read is the first key after it. It need not exist.
    Of the limits of a batch, files and bytes hold, checked after each file; rows and seconds cannot be known here.
    """

    def __init__(self, spec: FilesSpec, *, store: ObjectStore | None = None, sizing: SplitSizing | None = None) -> None:
        self._spec = spec
        self._glob = compile_glob(spec.place.pattern)
        self._store = store or open_store(spec.place, spec.s3)
        self._sizing = sizing or SplitSizing()
        self._is_local = spec.place.scheme == "file"
        self.partition = spec.place.root + self._glob.literal_prefix

    def open(self, start: str) -> Positions:
        """Positions for `""` or `{"fileName": key}`. Lists once, so that a wrong key or bucket shows now."""
        at = parse_offset(start)
        next(self._matching(at), None)
        return Positions(partitions={self.partition: PartitionState(at=at)})

    def list_partitions(self) -> Listing:
        """One partition, always: a prefix without files is an empty partition, not a lost one."""
        return Listing(partitions={self.partition: ListedPartition()})

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """Splits for the next files, late ones first. Files of a batch are known by etag from here on."""
        state = ready.get(self.partition)
        if state is None:
            return ()
        window = read_window(state)
        found = self._find(state.at, window, limits)
        finished = self._spec.ingestion is Ingestion.ONCE and not found.has_more
        if not found.late and not found.fresh and not finished:
            return ()
        taken = [file.key for file in (*found.late, *found.fresh)]
        marks = render_window(window.adding(taken, at_most=self._spec.remembered_keys))
        return self._splits(state.at, found, limits, finished=finished, marks=marks)

    def survey(self, positions: Positions) -> Survey:
        """Count pending and late files. Lists the whole prefix: for a view, not for every batch."""
        state = positions.partitions[self.partition]
        window = read_window(state)
        pending_files, pending_bytes, below, late = 0, 0, 0, list[str]()
        for file in self._matching(BEGINNING):
            if file.key > state.at:
                pending_files += 1
                pending_bytes += file.size
            elif file.key <= window.floor:
                below += 1
            elif file.key not in window.keys:
                late.append(file.key)
        return Survey(
            pending_files=pending_files,
            pending_bytes=pending_bytes,
            late_files=len(late),
            late_sample=tuple(late[:_SAMPLE]),
            lost_files=None if window.passed is None else max(0, below - window.passed),
        )

    def first_file(self) -> ObjectInfo | None:
        """The first file there is, to infer a schema from."""
        return next(self._matching(BEGINNING), None)

    def _find(self, at: str, window: Window, limits: Limits) -> _Found:
        loads_late = self._spec.late_files is LateFiles.LOAD
        late, fresh, size = list[ObjectInfo](), list[ObjectInfo](), 0
        for file in self._matching(window.floor if loads_late else at):
            if file.key in window.keys:
                continue
            if len(late) + len(fresh) >= limits.files or size >= limits.size_bytes:
                return _Found(late, fresh, True)
            (late if file.key <= at else fresh).append(file)
            size += file.size
        return _Found(late, fresh, False)

    def _matching(self, start_after: str) -> Iterator[ObjectInfo]:
        glob, homes = self._glob, Homes()
        if self._is_local and (home := homes.home_of(glob.literal_prefix)) is not None:
            raise file_of_home(glob.literal_prefix, home)
        for file in self._store.list(glob.literal_prefix, start_after, max_slashes=glob.max_slashes):
            if glob.matches(file.key):
                if not _is_text(file.key):
                    raise listing_failed(self.partition, f"the name {file.key!r} is not UTF-8")
                if self._is_local and (home := homes.home_of(file.key)) is not None:
                    raise file_of_home(file.key, home)
                yield file

    def _splits(
        self, at: str, found: _Found, limits: Limits, *, finished: bool, marks: Mapping[str, str]
    ) -> tuple[Split, ...]:
        # Late files do not move the position: their splits go from it to itself, and only the window tells them.
        late, fresh = (pack_files(files, self._spec, self._sizing) for files in (found.late, found.fresh))
        groups: list[tuple[str, tuple[FilePart, ...]]] = [(at, group) for group in late]
        groups += [(end_of(group[-1]), group) for group in fresh]
        if not groups:
            groups = [(at, ())]
        splits = []
        for number, (end, parts) in enumerate(groups):
            is_last = number == len(groups) - 1
            payload = Payload(parts=parts, finished=finished and is_last, marks=marks if is_last else {})
            splits.append(
                Split(
                    number=number,
                    partition=self.partition,
                    start=groups[number - 1][0] if number else at,
                    end=end,
                    limits=limits,
                    payload=render_payload(payload),
                )
            )
        return tuple(splits)


def parse_offset(text: str) -> str:
    """A position from `""` or from the JSON text that Doris shows and takes."""
    if not text:
        return BEGINNING
    todo = 'Write {"fileName": "key of the last file"}.'
    try:
        body = json.loads(text)
    except ValueError as error:
        msg = f"Failed to initialize offset: {text!r} is not JSON"
        raise ConfigError(msg, left="Nothing was changed.", todo=todo) from error
    name = body.get("fileName") if isinstance(body, dict) and body.keys() == {"fileName"} else None
    if not isinstance(name, str) or not name:
        msg = f"Invalid format for offset: {text}"
        raise ConfigError(msg, left="Nothing was changed.", todo=todo)
    return name


def render_offset(at: str) -> str:
    """A position as Doris shows it."""
    return json.dumps({"fileName": at}, ensure_ascii=False)


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
