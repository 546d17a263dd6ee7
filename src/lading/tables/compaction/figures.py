"""How the files of a table stand: how many, how many small ones, and what was compacted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lading.tables.compaction.choose import choose_groups, small_files
from lading.tables.compaction.model import CompactionNote, CompactionPolicy, LiveFile, LiveFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFigures:
    """The files of one partition."""

    partition: str
    files: int
    small: int
    due: int
    """Small files that the next round would put together."""
    rows: int
    size_bytes: int
    last: CompactionNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFigures:
    """The files of one table."""

    table: str
    mode: str
    at: datetime
    partitions: tuple[PartitionFigures, ...] = ()
    last: CompactionNote | None = None
    remark: str = ""
    """Why nothing can be compacted."""

    @property
    def files(self) -> int:
        return sum(each.files for each in self.partitions)

    @property
    def small(self) -> int:
        return sum(each.small for each in self.partitions)

    @property
    def due(self) -> int:
        return sum(each.due for each in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.partitions)

    @property
    def most_files(self) -> int:
        """In one partition."""
        return max((each.files for each in self.partitions), default=0)


def count_files(
    table: str, mode: str, live: LiveFiles, notes: Sequence[CompactionNote], policy: CompactionPolicy, now: datetime
) -> TableFigures:
    """From what the table was just asked, and the notes beside it."""
    last = {note.partition: note for note in notes}
    by_partition: dict[str, list[LiveFile]] = defaultdict(list)
    for file in live.files:
        by_partition[file.partition].append(file)
    due: dict[str, int] = defaultdict(int)
    for group in () if live.why_not else choose_groups(live.files, policy, now):
        due[group[0].partition] += len(group)
    return TableFigures(
        table=table,
        mode=mode,
        at=now,
        partitions=tuple(_partition(files, policy, due, last) for _, files in sorted(by_partition.items())),
        last=notes[-1] if notes else None,
        remark=live.why_not,
    )


def _partition(
    files: Sequence[LiveFile],
    policy: CompactionPolicy,
    due: Mapping[str, int],
    last: Mapping[str, CompactionNote],
) -> PartitionFigures:
    partition = files[0].partition
    return PartitionFigures(
        partition=partition,
        files=len(files),
        small=len(small_files(files, policy)),
        due=due.get(partition, 0),
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        last=last.get(partition),
    )
