"""One compaction, step by step.

1. **choose**: read the files of the table; choose runs of small ones. Nothing durable happens.
2. **copy**: write their rows, in order, into new files under names that nobody else can have.
3. **note**: write what replaces what, beside the table.
4. **commit**: one commit of the table that takes the old files out and puts the new ones in. It moves no job's head and
   changes no row. It is given up when an old file is not in the table any more, or has deleted rows. Right before every
   attempt: it is given up when a new file is gone, or it took too long: clean-up keeps the files of a note for a day.
5. **settle**: Landed, NotLanded, or Unknown. After a certain NotLanded the new files and the note are deleted; after
   Unknown they stay, and clean-up takes them when no commit names them.

A load never waits for a compaction: its commit lands behind it, as behind any other writer's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from lading.clock import Clock
from lading.errors import LadingError, TableError
from lading.failpoints import failpoint
from lading.model.batch import StagedFile
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.tables.base import LakeTable
from lading.tables.compaction.choose import Group, choose_groups
from lading.tables.compaction.model import Compacted, CompactionNote, CompactionPolicy, NotedFile
from lading.tables.compaction.notes import KEPT, drop_note, prune_notes, put_note
from lading.tables.compaction.rewrite import Rewrite, copy_rows, rewrites_of
from lading.tables.staged_files import check_present

LONGEST = timedelta(minutes=30)
"""A compaction that takes longer is given up: clean-up may take its files for orphans one day."""
COMPACTED, GIVEN_UP, UNKNOWN = "compacted", "given up", "unknown"

GoesOn = Callable[[], bool]


def plan_compaction(table: LakeTable, policy: CompactionPolicy, now: datetime) -> tuple[list[Group], str]:
    """What is due, and why nothing can be. Changes nothing."""
    live = table.live_files()
    if live.why_not:
        return [], live.why_not
    return choose_groups(live.files, policy, now), ""


def compact_table(
    table: LakeTable, groups: Sequence[Group], policy: CompactionPolicy, clock: Clock, goes_on: GoesOn = lambda: True
) -> Iterator[Compacted]:
    """Compact the groups, one commit each. What fails is told and leaves the table as it was."""
    for group in groups:
        if not goes_on():
            return
        try:
            rewrites = rewrites_of(table.bills.storage, group)
        except LadingError as error:
            yield _gave_up(group, error.what)
            continue
        for rewrite in rewrites:
            yield _compact(table, rewrite, policy, clock)
    prune_notes(table.bills, table.job_ids(), older_than=clock.now() - KEPT)


def _compact(table: LakeTable, rewrite: Rewrite, policy: CompactionPolicy, clock: Clock) -> Compacted:
    begun_s, compaction_id = clock.passed_s(), f"{secrets.randbits(64):016x}"
    storage = table.bills.storage
    staged: tuple[StagedFile, ...] = ()
    note: CompactionNote | None = None

    def check() -> None:
        _check_time(clock, begun_s)
        check_present(storage, staged)

    try:
        failpoint("compact.copy.before")
        stats = table.rewrite_stats(rewrite.files[0], rewrite.schema)
        staged = copy_rows(storage, rewrite, stats, compaction_id=compaction_id, target_bytes=policy.target_bytes)
        failpoint("compact.copy.after")
        _check_time(clock, begun_s)
        note = _note(rewrite, staged, compaction_id, clock.now())
        put_note(storage, note)
        failpoint("compact.note.after")
        outcome: Outcome = table.replace_files(rewrite.files, staged, compaction_id, clock.now(), check)
        failpoint("compact.commit.after")
    except LadingError as error:
        # Whatever raises has not sent the commit: once it is sent, its end is an outcome.
        outcome = NotLanded(why=error.what)
    if isinstance(outcome, NotLanded):
        # Dies in here: the rest are orphans, which clean-up takes.
        table.discard(staged)
        if note is not None:
            drop_note(storage, note)
    return _told(rewrite, staged, outcome)


def _check_time(clock: Clock, begun_s: float) -> None:
    if clock.passed_s() - begun_s > LONGEST.total_seconds():
        msg = f"it took longer than {LONGEST}"
        raise TableError(msg, left="The table is as it was.", todo="It is tried again.")


def _note(rewrite: Rewrite, staged: Sequence[StagedFile], compaction_id: str, at: datetime) -> CompactionNote:
    return CompactionNote(
        compaction_id=compaction_id,
        at=at,
        partition=rewrite.files[0].partition,
        replaced=tuple(NotedFile(path=file.path, rows=file.rows) for file in rewrite.files),
        added=tuple(NotedFile(path=file.path, rows=file.rows) for file in staged),
        bytes_before=sum(file.size_bytes for file in rewrite.files),
        bytes_after=sum(file.size_bytes for file in staged),
    )


def planned(group: Group) -> Compacted:
    """A group that is only told of."""
    return Compacted(
        partition=group[0].partition,
        files=len(group),
        rows=sum(file.rows for file in group),
        bytes_before=sum(file.size_bytes for file in group),
    )


def _gave_up(group: Group, why: str) -> Compacted:
    told = planned(group)
    return Compacted(
        partition=told.partition,
        files=told.files,
        rows=told.rows,
        bytes_before=told.bytes_before,
        outcome=GIVEN_UP,
        remark=why,
    )


def _told(rewrite: Rewrite, staged: Sequence[StagedFile], outcome: Outcome) -> Compacted:
    if isinstance(outcome, NotLanded):
        return _gave_up(rewrite.files, outcome.why)
    told = planned(rewrite.files)
    return Compacted(
        partition=told.partition,
        files=told.files,
        rows=told.rows,
        bytes_before=told.bytes_before,
        files_after=len(staged),
        bytes_after=sum(file.size_bytes for file in staged),
        outcome=COMPACTED if isinstance(outcome, Landed) else UNKNOWN,
        remark=outcome.why if isinstance(outcome, Unknown) else "",
    )
