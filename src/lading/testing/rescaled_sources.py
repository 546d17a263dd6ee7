"""What the rescaling of loads is tried on: a topic that grows, a stream that is resharded, a folder; and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from lading.errors import StageError
from lading.model.batch import BatchPlan, Report, Split
from lading.model.positions import Listing
from lading.model.tally import RowCounts
from lading.sources.files.payload import FilePart, parse_payload
from lading.testing.clock import ManualClock
from lading.testing.folder import PLACE, Folder, SimulatedFile
from lading.testing.source import Row, ScriptedSource, Shard
from lading.testing.stager import ScriptedStager, WriteFile

KEYS_EACH = 3
"""Keys of a partition of a topic. A new one brings its own: where a key moved, Kafka itself would lose its order."""
ROW_BYTES = 10


class Topic(ScriptedSource):
    """As Kafka: ends are known, partitions never go, and their number only grows."""

    def __init__(self, rng: Random, partitions: int) -> None:
        super().__init__(rng, shards=partitions, keys=KEYS_EACH * partitions, knows_ends=True)

    def approach(self, partitions: int) -> bool:
        """One partition more, if that many are wanted. Whether something was done."""
        if len(self.shards) >= partitions:
            return False
        self._add(0, 0, ())
        self._numbers |= dict.fromkeys(range(self.keys, self.keys + KEYS_EACH), 0)
        self.keys += KEYS_EACH
        return True

    def list_partitions(self) -> Listing:
        return replace(super().list_partitions(), can_shrink=False)

    def _owner(self, key: int) -> Shard:
        return self.shards[f"shard-{key // KEYS_EACH:04d}"]


class Stream(ScriptedSource):
    """As Kinesis: ends are found while reading, shards are split and merged, and a key moves with its hash."""

    def __init__(self, rng: Random, shards: int) -> None:
        super().__init__(rng, shards=shards, keys=21)

    def approach(self, shards: int) -> bool:
        """One split or merge, if that many are wanted. Whether something was done."""
        now = len(self._open_shards())
        if now != shards:
            (self.split if now < shards else self.merge)()
        return now != shards


class KeyedFolder(Folder):
    """Files that come whole and in the order of their names; rows of a key are in many of them."""

    def __init__(self, rng: Random, clock: ManualClock, keys: int = 12) -> None:
        super().__init__(rng, clock)
        self._rows: dict[str, list[Row]] = {}
        self._numbers = dict.fromkeys(range(keys), 0)

    def put(self, files: int) -> None:
        """So many more of them."""
        for _ in range(files):
            rows = [self._next_row() for _ in range(self._rng.randint(1, 8))]
            number = len(self.all)
            file = SimulatedFile(f"{PLACE}{number:05d}", number, len(rows), len(rows), self._clock.now())
            self.files[file.key], self._rows[file.key] = file, rows
            self.all.append(file)

    def sent(self) -> list[Row]:
        """All rows of all files, in order."""
        return [row for file in self.all for row in self._rows[file.key]]

    def read(self, part: FilePart) -> Sequence[Row]:
        """The rows that begin in a part of a file."""
        super().read(part)
        return [row for at, row in enumerate(self._rows[part.key]) if part.begin <= ROW_BYTES * at < part.end]

    def _next_row(self) -> Row:
        key = self._rng.choice(sorted(self._numbers))
        self._numbers[key] += 1
        return Row(key, self._numbers[key] - 1, "loaded")


class TaskStager(ScriptedStager):
    """Splits are shared out to tasks, as many as there are when the batch is read. Tasks fail whole, and end in any
    order."""

    def __init__(
        self,
        source: ScriptedSource,
        write_file: WriteFile,
        rng: Random,
        *,
        tasks: Callable[[], int],
        faults: float = 0.0,
    ) -> None:
        super().__init__(source, write_file, rng, faults=faults)
        self._tasks = tasks

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        reports: list[Report] = []
        self._watermark = self._watermark_of(plan)
        shares = shared_out(plan.splits, self._tasks())
        self._rng.shuffle(shares)
        for share in shares:
            for split in share if self._trouble() else ():
                # The executor was lost with what this task had written; another one runs all of it again.
                reports = self._collected(reports, self._attempt(split), accepted=False)
            for split in share:
                reports = self._collected(reports, self._attempt(split), accepted=True)
        return self._delivered(reports)


class FolderTaskStager(TaskStager):
    """The same over the files of a folder."""

    def __init__(
        self, folder: KeyedFolder, write_file: WriteFile, rng: Random, *, tasks: Callable[[], int], faults: float = 0.0
    ) -> None:
        super().__init__(ScriptedSource(Random(0)), write_file, rng, tasks=tasks, faults=faults)
        self._folder = folder

    def _attempt(self, split: Split) -> Report:
        payload = parse_payload(split.payload)
        rows = [row for part in payload.parts for row in self._folder.read(part)]
        if split.end is None:
            msg = f"Split {split.number} of files has no end"
            raise StageError(msg, left="Nothing was committed.", todo="Look at the planner.")
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end,
            finished=payload.finished,
            files=(self._staged(rows),) if rows else (),
            rows=RowCounts(total=len(rows), loaded=len(rows)),
            received_bytes=ROW_BYTES * len(rows),
            source_files=sum(part.begin == 0 for part in payload.parts),
            marks=payload.marks,
        )


def shared_out(splits: Sequence[Split], tasks: int) -> list[list[Split]]:
    """Neighbours to one task, as Spark divides a range."""
    each = sorted(splits, key=lambda split: split.number)
    borders = [len(each) * number // tasks for number in range(tasks + 1)]
    return [each[low:high] for low, high in pairwise(borders) if low < high]
