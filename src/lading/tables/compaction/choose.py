"""Which files are put together. Pure: from the files of a table and the policy to groups.

The order of rows is kept. Files of one line are sorted by their place in it, and a group is a run of neighbours: no
file of the line that stays stands between two of them. The new file takes the place of the last one.

A file is not rewritten again and again while small ones come in behind it: the first of a group is no larger than the
others together. So each time its rows are rewritten they are in a file twice as large, and there are few such times
from the first size to the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from lading.tables.compaction.model import CompactionPolicy, LiveFile

MOST_FILES = 5_000
"""In one group: a commit names them all."""

Group = tuple[LiveFile, ...]


def choose_groups(files: Iterable[LiveFile], policy: CompactionPolicy, now: datetime) -> list[Group]:
    """What is due, the groups with the most files first, within the budget. At least one group when any is due."""
    lines: dict[str, list[LiveFile]] = defaultdict(list)
    for file in files:
        if file.is_ours:
            lines[file.line].append(file)
    due = [group for line in lines.values() for run in _runs(line, policy, now) for group in _bins(run, policy)]
    due.sort(key=lambda group: (-len(group), group[0].path))
    return list(_within(due, policy.budget_bytes))


def small_files(files: Iterable[LiveFile], policy: CompactionPolicy) -> list[LiveFile]:
    """All files below the limit, also those of other writers."""
    return [file for file in files if file.size_bytes < policy.small_bytes]


def _runs(line: Sequence[LiveFile], policy: CompactionPolicy, now: datetime) -> Iterator[list[LiveFile]]:
    """Neighbours that may be put together."""
    run: list[LiveFile] = []
    for file in sorted(line, key=lambda file: (file.order, file.path)):
        if file.size_bytes < policy.small_bytes and not file.has_deletes and now - file.written_at >= policy.min_age:
            run.append(file)
            continue
        yield run
        run = []
    yield run


def _bins(run: Sequence[LiveFile], policy: CompactionPolicy) -> Iterator[Group]:
    """Cut a run where the target size is reached. What is left at its end waits until it is worth it."""
    group, size = list[LiveFile](), 0
    for file in run:
        group.append(file)
        size += file.size_bytes
        if size >= policy.target_bytes or len(group) >= MOST_FILES:
            if len(group) > 1:
                yield tuple(group)
            group, size = [], 0
    while group and not policy.is_thorough and group[0].size_bytes > size - group[0].size_bytes:
        size -= group.pop(0).size_bytes
    if len(group) >= max(policy.min_files, 2):
        yield tuple(group)


def _within(due: Iterable[Group], budget_bytes: int) -> Iterator[Group]:
    spent = 0
    for group in due:
        size = sum(file.size_bytes for file in group)
        if spent and spent + size > budget_bytes:
            continue
        spent += size
        yield group
