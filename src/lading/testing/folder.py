"""A folder in memory whose files come in any order, with any time, and are written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from lading.errors import StageError
from lading.model.batch import Report, Split
from lading.model.tally import RowCounts
from lading.sources.files.payload import FilePart, parse_payload
from lading.storage.store import ByteFile, ObjectInfo
from lading.testing.clock import ManualClock
from lading.testing.source import Row, ScriptedSource
from lading.testing.stager import ScriptedStager, WriteFile

PLACE = "/in/"
_ROW_BYTES = 10


@dataclass(slots=True)
class SimulatedFile:
    """One file. `rows` are what its writer will have written in the end."""

    key: str
    number: int
    rows: int
    written: int
    modified: datetime
    version: int = 0

    @property
    def is_whole(self) -> bool:
        return self.written == self.rows

    @property
    def etag(self) -> str:
        return f"{self.number}-{self.written}-{self.version}"

    def content(self) -> list[Row]:
        return [Row(self.number, number, "loaded") for number in range(self.written)]


class Folder:
    """Both sides of it: what writers do, and the `ReadStore` that Lading lists."""

    def __init__(self, rng: Random, clock: ManualClock) -> None:
        self._rng = rng
        self._clock = clock
        self.files: dict[str, SimulatedFile] = {}
        self.all: list[SimulatedFile] = []
        """Also those that were deleted."""
        self._name = rng.choice([self._sorted_name, self._random_name, self._any_name])

    # What writers do.

    def appear(self) -> None:
        """A file comes, late or not, old or new, whole or in pieces."""
        number, rows = len(self.all), self._rng.randint(1, 4)
        written = self._rng.randint(0, rows) if self._rng.random() < 0.4 else rows
        age_s = self._rng.choice((0, 0, 0, 100, 1000)) if written == rows else 0
        then = self._clock.now() - timedelta(seconds=age_s)
        file = SimulatedFile(PLACE + self._name(number), number, rows, written, then)
        self.files[file.key] = file
        self.all.append(file)

    def write_on(self) -> None:
        """Every file that is not whole grows, or at least is touched, so that no writer pauses for long."""
        for file in self.files.values():
            if not file.is_whole:
                file.written += self._rng.randint(0, 1)
                file.modified, file.version = self._clock.now(), file.version + 1

    def finish_writing(self) -> None:
        """All writers come to their end."""
        for file in self.files.values():
            if not file.is_whole:
                file.written, file.modified, file.version = file.rows, self._clock.now(), file.version + 1

    def now(self) -> datetime:
        """The time by its clock."""
        return self._clock.now()

    def delete(self) -> None:
        """A whole file is deleted, loaded or not. Its name does not come again."""
        able = sorted(key for key, file in self.files.items() if file.is_whole)
        if able:
            del self.files[self._rng.choice(able)]

    def _sorted_name(self, number: int) -> str:
        return f"{number:05d}"

    def _random_name(self, number: int) -> str:
        return f"{self._rng.getrandbits(32):08x}-{number}"

    def _any_name(self, number: int) -> str:
        named: Callable[[int], str] = self._rng.choice([self._sorted_name, self._random_name])
        return named(number)

    # What Lading asks.

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        for key in sorted(key for key in self.files if key > start_after):
            file = self.files[key]
            yield ObjectInfo(key, _ROW_BYTES * file.written, file.etag, file.modified)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        raise NotImplementedError

    def uri_of(self, key: str) -> str:
        return key

    def for_many(self) -> Folder:
        return self

    def read(self, part: FilePart) -> Sequence[Row]:
        """The rows of a file as it was listed. Raises when it is not that any more."""
        file = self.files.get(part.key)
        if file is None or file.etag != part.etag:
            msg = f"File {part.key} was deleted or replaced between listing and reading"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        return file.content()


class FolderStager(ScriptedStager):
    """Stages the files of a folder, with the troubles of its parent."""

    def __init__(self, folder: Folder, write_file: WriteFile, rng: Random, *, faults: float = 0.0) -> None:
        super().__init__(ScriptedSource(Random(0)), write_file, rng, faults=faults)
        self._folder = folder

    def _attempt(self, split: Split) -> Report:
        payload = parse_payload(split.payload)
        rows = [row for part in payload.parts for row in self._folder.read(part)]
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end or split.start,
            finished=payload.finished,
            files=(self._staged(rows),) if rows else (),
            rows=RowCounts(total=len(rows), loaded=len(rows)),
            received_bytes=_ROW_BYTES * len(rows),
            source_files=len(payload.parts),
            marks=payload.marks,
        )
