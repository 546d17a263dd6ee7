"""SKIP FILE and LOAD FILE: edits that move nothing but what a job does with one file."""

from __future__ import annotations

from dataclasses import replace

from lading.errors import SqlError
from lading.jobs.record import JobRecord
from lading.model.moves import PartitionMove
from lading.service.compile.sourced import source_of
from lading.service.edits.edit import Edit
from lading.service.edits.written import statement_of
from lading.service.session import Session
from lading.sources.files.aside import SKIP, FileWord, moved_aside
from lading.sources.registry import kind_of
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad


def prepare_file(
    session: Session, record: JobRecord, statement: AlterJob | AlterRoutineLoad, word: FileWord, state_word: str
) -> Edit:
    """An edit of a paused job. Its commit has the same positions, with a mark for the file. State is kept: the job has
    kept nothing of a file of which it has loaded nothing."""
    old, what = statement_of(session.lading, record), "SKIP FILE" if word.what == SKIP else "LOAD FILE"
    is_alone = not state_word and not (isinstance(statement, AlterJob) and statement.insert is not None)
    if not kind_of(source_of(old).name).keeps_offset or not is_alone:  # Only files have names to go by.
        msg = f"{what} is for jobs that load files, and goes alone"
        todo = "A record of a stream is passed by moving the offset behind it; see docs/routine-load.md."
        raise SqlError(msg, todo=todo)
    bills = session.lading.bills(record, 1)
    if not bills:
        msg = f"Job {record.full_name} was never opened, so that it has no position yet"
        raise SqlError(msg, todo="RESUME it once, and PAUSE it.")
    newest = bills[0]
    moved, key, told = moved_aside(newest.positions, word, source_of(old).properties["uri"], session.lading.clock.now())
    (partition, state), *_ = moved.partitions.items()
    move = PartitionMove(
        partition=partition,
        start=state.at,
        end=state.at,
        direction="SAME",
        again=0,
        skipped=int(word.what == SKIP),
        unit="files",
        remark=told,
    )
    return Edit(
        record=record,
        old=old,
        new=old,
        seen=newest.head,
        moves=(move,),
        marked=replace(newest, positions=moved),
        reason=f"{what} {key}" + (f": {statement.comment}" if statement.comment else ""),
        statement=statement,
        facts={"file": key},
    )
