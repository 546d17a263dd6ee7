"""REPLAY ERRORS: rows of quarantine are loaded again by the definition of now, each once.

1. look: the bills from the head back to the last replay say which rows wait, and which of them may not be taken up.
2. open the job, which fences who had it, and finishes an ALTER that was cut off. Dies here: nothing has changed.
3. stage the rows as a batch whose source is the quarantine, and commit them on the head that was read: rows, and how
   far the quarantine was taken up, become true together. Dies before: files that nobody names. Dies after: the next
   start finds the commit, and the record of the job follows.
4. save the record and the audit, both or neither.

All of it in the job's turn, while it is PAUSED.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.protocols import Stager
from lading.commit.replays import SourceOrder, waiting_bills
from lading.commit.steps import run_steps
from lading.errors import ConfigError, JobStateError, LadingError, SourceError
from lading.ids import new_token
from lading.jobs.events import Replayed, bill_facts
from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan, Report
from lading.model.bill import Bill
from lading.pipeline.quarantine import quarantine_lines
from lading.pipeline.replays import ReplayQuarantine, ReplayReader
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.edits.audit import apply, audit
from lading.service.edits.begun import head_facts, settled
from lading.service.edits.edit import check_paused
from lading.service.runtime.kept_columns import check_columns
from lading.service.runtime.replaying import replaying
from lading.service.runtime.starting import start_steps
from lading.service.session import Session
from lading.storage.store import ObjectStore
from lading.tables.base import LakeTable
from lading.tables.bills import quarantine_folder
from lading.tables.fresh import open_table_store

if TYPE_CHECKING:
    from lading.pipeline.stage import Stage
    from lading.sql.statements.jobs import ReplayErrors

ACTION = "REPLAY ERRORS"
"""What the audit calls it."""
_NOTHING = "Nothing was changed."
_UNSEEN = "its source has no row now from which its columns can be learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayable:
    """What waits in the quarantine of a job."""

    bills: tuple[Bill, ...]
    """Those whose bad rows may be taken up, oldest first."""

    @property
    def rows(self) -> int:
        return sum(bill.tally.rows.error for bill in self.bills)


def look(session: Session, record: JobRecord, after: int | None) -> Replayable:
    """Which rows would be taken up. Raises JobStateError when some may not be. Changes nothing."""
    compiled, target = session.lading.compile(record)
    try:
        _check_kind(record, compiled)
        head = target.read_head(record.job_id)
        if head is None:
            return Replayable(bills=())
        base = target.bills.read(record.job_id, head)
        _check_after(record, base, after)
        waiting = waiting_bills(compiled.job, target.bills, base, _order(compiled), after=after)
        if waiting and compiled.stage is None:
            raise _unfit(str(record.full_name), _UNSEEN)
        _check_files(session, record, target, waiting)
        return Replayable(bills=tuple(waiting))
    finally:
        compiled.close()


def replay(session: Session, record: JobRecord, statement: ReplayErrors) -> tuple[Bill | None, int]:
    """Do it. The commit, and how many rows were looked at; None when none of them can be loaded now."""
    lading, job_id = session.lading, record.job_id
    with lading.job_locks.hold(job_id):
        settled(lading, record)
        record = lading.runner(job_id).record()
        check_paused(record, session)
        waiting = look(session, record, statement.after)
        if not waiting.rows:
            return None, 0
        lading.forget_runner(job_id)
        with replaying(lading.store, job_id, lading.clock.now()):
            bill, shown = _commit(session, record, statement)
        if bill is None:
            return None, waiting.rows
        rows = bill.tally.rows
        facts = head_facts(bill) | {
            "loaded": str(rows.loaded),
            "unselected": str(rows.unselected),
            "bad": str(rows.error),
            "through": str(bill.replayed_through),
        }
        facts |= {"gave_up": str(statement.after)} if statement.after is not None else {}
        facts |= {"why": statement.comment} if statement.comment else {}
        event = Replayed(**bill_facts(bill), current_offset=shown, at=lading.clock.now())
        try:
            apply(session, record, event, audit(session, record, ACTION, statement=statement, facts=facts))
        except LadingError as error:
            raise _half_done(record, bill, error) from error
        return bill, waiting.rows


def _half_done(record: JobRecord, bill: Bill, error: LadingError) -> JobStateError:
    rows = bill.tally.rows.loaded
    msg = f"{rows} bad rows of job {record.full_name} were loaded, but its record could not be saved: {error.what}"
    left = f"The table has commit {bill.seq}; the rows are there once, and are not taken up again."
    return JobStateError(msg, left=left, todo="RESUME the job: it goes on from the table.", job_id=record.job_id)


def _commit(session: Session, record: JobRecord, statement: ReplayErrors) -> tuple[Bill | None, str]:
    lading, tools = session.lading, session.lading.tools
    compiled, target = lading.compile(record)
    try:
        check_columns(tools.store, record, target.schema())
        stager = tools.make_stager(replace(compiled, stage=_stage(compiled, target)))
        world = CoordinatorPorts(
            table=target,
            bills=target.bills,
            planner=Planner(compiled.source.driver, tools.clock),
            stager=_Guarded(stager, partial(_is_ours, target.bills.storage, _home(session, record), record)),
            clock=tools.clock,
            new_token=new_token,
            followers=(tools.store,),
        )
        coordinator = Coordinator(compiled.job, world, tools.incarnation)
        run_steps(start_steps(tools.store, record, coordinator, target.bills))
        why = f"{ACTION} by {session.user}" + (f": {statement.comment}" if statement.comment else "")
        bill = run_steps(coordinator.replay(_order(compiled), reason=why, after=statement.after))
        return bill, compiled.show_position(bill.positions) if bill is not None else ""
    finally:
        compiled.close()


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Stages what is in quarantine of this job, and nothing else: others may have written the bills."""

    stager: Stager
    is_ours: Callable[[str], bool]

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        for split in plan.splits:
            if not self.is_ours(split.payload):
                msg = f"{split.payload} is no quarantine of this job"
                raise SourceError(msg, left=_NOTHING, todo="Give the rows of its commit up with AFTER.")
        return self.stager.stage(plan)


def _home(session: Session, record: JobRecord) -> str:
    return session.lading.home.quarantine(record.job_id)


def _order(compiled: Compiled) -> SourceOrder:
    kind = compiled.kind
    way = kind.way if kind.is_ordered else None
    return SourceOrder(way=way, repeats_nothing=kind.repeats_nothing, names_again=kind.names_again)


def _stage(compiled: Compiled, target: LakeTable) -> Stage:
    """The stage of the job, reading what is in quarantine in the place of the source."""
    stage = compiled.stage
    if stage is None or stage.tools.form is None:
        raise _unfit(compiled.job.name, _UNSEEN)
    form, spec = stage.tools.form, target.writer_spec()
    own = [field for field in stage.source if field.name not in stage.of_batch]
    lines = partial(quarantine_lines, partial(open_table_store, spec))
    reader = ReplayReader(open_lines=lines, schema=pa.schema(own), form=form, parse=compiled.source.parse)
    tools = replace(
        stage.tools,
        read=reader,
        open_quarantine=partial(ReplayQuarantine, lines, stage.tools.open_quarantine),
        takes_up=True,
    )
    # Files of bad rows may lie beside the table: who may write there may read them.
    as_service = stage.reads_as_service or stage.writes_as_service
    return replace(stage, tools=tools, reads_as_service=as_service, most_tasks=stage.most_tasks or _MOST_TASKS)


_MOST_TASKS = 1024
"""Bad rows of many small files are read by as many tasks as run at once."""


def _check_kind(record: JobRecord, compiled: Compiled) -> None:
    """Jobs that judge rows together with others cannot judge some of them later."""
    job, stage = compiled.job, compiled.stage
    told = {
        "it keeps something of its rows between batches, or has a watermark": job.keeps_state or job.watermark,
        "it joins its rows with a table": compiled.joins is not None,
        "it tells listeners which partitions are done": job.listening is not None,
        "it keeps fields that have no column": stage is not None and stage.tools.form is None,
    }
    for why, holds in told.items():
        if holds:
            raise _unfit(str(record.full_name), why)


def _unfit(name: str, why: str) -> JobStateError:
    msg = f"The bad rows of job {name} cannot be replayed: {why}"
    todo = "SHOW LOAD ERRORS shows them; correct them in the source, and load them from there."
    return JobStateError(msg, left=_NOTHING, todo=todo)


def _check_after(record: JobRecord, base: Bill, after: int | None) -> None:
    if after is not None and after > base.seq:
        msg = f"AFTER {after} is behind the newest commit of job {record.full_name}, which is {base.seq}"
        raise ConfigError(msg, left=_NOTHING, todo="Name a commit that it has; EXPLAIN REPLAY ERRORS lists them.")


def _check_files(session: Session, record: JobRecord, target: LakeTable, waiting: Sequence[Bill]) -> None:
    """Every file of bad rows is there, and one of this job. Others may have written the bill."""
    objects, home = target.bills.storage, _home(session, record)
    for bill in waiting:
        for place in bill.quarantine:
            if not _is_ours(objects, home, record, place):
                msg = f"Commit {bill.seq} of job {record.full_name} names {place}, which is no quarantine of this home"
                raise SourceError(msg, left=_NOTHING, todo=f"Give its rows up with AFTER {bill.seq}.")
    gone = [(bill.seq, place) for bill in waiting for place in _missing(bill, objects)]
    if gone:
        seqs = ", ".join(str(seq) for seq in sorted({seq for seq, _ in gone})[:20])
        msg = f"Quarantine of job {record.full_name} is gone, of the commits {seqs}; the first file is {gone[0][1]}"
        todo = f"Restore it, or give up what those commits put there: REPLAY ERRORS FOR … AFTER {gone[-1][0]}."
        raise SourceError(msg, left=_NOTHING, todo=todo, job_id=record.job_id)


def _missing(bill: Bill, objects: ObjectStore) -> Iterator[str]:
    for place in bill.quarantine:
        if "://" not in place:
            is_there = Path(place).is_file()
        else:
            is_there = objects.sizes([place.removeprefix(f"{objects.uri}/")])[0] is not None
        if not is_there:
            yield place


def _is_ours(objects: ObjectStore, home: str, record: JobRecord, place: str) -> bool:
    beside = f"{objects.uri}/{quarantine_folder(record.job_id)}"
    if ".." in place.split("/"):
        return False
    if "://" in place:
        return place.startswith(f"{beside}/")
    real = os.path.realpath(place)
    return any(real.startswith(f"{os.path.realpath(folder)}/") for folder in (home, beside))
