"""JOIN with a table: the rows of a batch are looked up in the snapshot that the bill before names.

Spark runs it as a LEFT JOIN in every case, so that each row of the spool comes out at least once. What becomes of a row
is judged when all that it was joined with is known: one bad result makes it a bad row, of which nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.taskcontext import TaskContext

from lading.errors import StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, StagedFile
from lading.model.codec import decode, encode
from lading.model.joined import JoinedTable
from lading.model.rows import FILE
from lading.model.state import StateChange, StateRef
from lading.pipeline.checked import CheckedSelect, checked_join
from lading.pipeline.mapping import LINE, NOTE, UNSELECTED, quoted, select_lists
from lading.pipeline.notes import binaries, parse_bad
from lading.pipeline.remote import empty_frame, remote_frame
from lading.pipeline.sealing import Sealed
from lading.pipeline.session import is_local
from lading.pipeline.state.files import ROW
from lading.pipeline.state.jobs import StateJobs
from lading.pipeline.state.manifests import drop_files
from lading.pipeline.state.rules import JoinRule, StateStage
from lading.pipeline.state.selected import Ranked
from lading.pipeline.tasks import Quarantine, Writer
from lading.settings import lent_variables

_MATCHED = "__matched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one accepted task of a joining job did with its rows, each counted once however often it was joined."""

    rows: int = 0
    unselected: int = 0
    errors: int = 0
    files: tuple[StagedFile, ...] = ()
    quarantine: tuple[str, ...] = ()
    first_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTools:
    """What a writing task of a joining job is given. Sealed, as all that has keys."""

    open_writer: Callable[[str], Writer]
    open_quarantine: Callable[[str], Quarantine]
    columns: tuple[str, ...]
    """Columns of the table that is loaded into, in order."""
    attempt: str
    identity: dict[str, str] = field(default_factory=dict, repr=False)


class JoinMerger:
    """Implements the coordinator's Merger."""

    def __init__(self, stage: StateStage, rule: JoinRule, jobs: StateJobs, new_token: NewToken) -> None:
        self._stage = stage
        self._rule = rule
        self._jobs = jobs
        self._new_token = new_token

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        spool = [Ranked(file=file, rank=report.split) for report in reports for file in report.spool]
        handed_on = sum(ranked.file.rows for ranked in spool)
        if not handed_on:
            return StateChange(state=None)
        judged = self._judged(spool, plan.joined[0])
        # Also when what belongs to one row did not come out together: it was judged in parts then.
        if (total := sum(part.rows for part in judged)) != handed_on:
            msg = f"{handed_on} rows were handed on and {total} came out of the join"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        drop_files(self._jobs.place, [ranked.file for ranked in spool])
        return StateChange(
            state=None,
            files=tuple(file for part in judged for file in part.files),
            unselected=sum(part.unselected for part in judged),
            errors=sum(part.errors for part in judged),
            quarantine=tuple(place for part in judged for place in part.quarantine),
            first_error=next((part.first_error for part in judged if part.first_error), ""),
        )

    def _judged(self, spool: Sequence[Ranked], table: JoinedTable) -> list[Judged]:
        jobs, rule, key = self._jobs, self._rule, self._jobs.new_key()
        count = len(rule.source)
        names = [f"c{n} AS {quoted(name)}" for n, name in enumerate(rule.source)]
        rows = jobs.read(spool, rule.spool_schema, key)
        rows = rows.selectExpr(*names, f"c{count} AS {FILE}", f"c{count + 1} AS {LINE}", ROW)
        joined = checked_join(rows, self._others(table, key), rule.on)
        note = "CAST(NULL AS binary)"
        if not rule.is_left:
            note = f"CASE WHEN {_MATCHED} IS NULL THEN CAST('{UNSELECTED}' AS binary) END"
        both, carried = (*rule.source, *rule.names), (FILE, LINE, ROW)
        joined = joined.selectExpr(*map(quoted, both), *carried, f"{note} AS {NOTE}")
        # Who may see bad rows of a job may not SELECT from each table that it joins with.
        mapped = CheckedSelect()(joined, select_lists(rule.mapping, both, carried, hidden=rule.names))
        tools = JoinTools(
            open_writer=self._stage.open_table,
            open_quarantine=rule.open_quarantine,
            columns=tuple(self._stage.schema.names),
            attempt=f"{self._new_token():016x}",
            identity=dict(jobs.identity),
        )
        written = mapped.mapInArrow(partial(_write, Sealed.of(tools, key)), "report string")
        return [decode(Judged, json.loads(row[0]), where="a task's report") for row in jobs.collect(written, key)]

    def _others(self, table: JoinedTable, key: str) -> DataFrame:
        """The rows of the table that are joined with."""
        rule, spark = self._rule, self._jobs.spark
        remote = rule.open(table, rule.table)
        remote = remote if is_local(spark) else replace(remote, identity={})
        found = remote_frame(spark, remote, key) if remote.files else empty_frame(spark, rule.table)
        columns = zip(rule.table.names, rule.names, strict=True)
        found = found.selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in columns), f"true AS {_MATCHED}")
        # Spark does not know how much comes from Python, takes it for little, and would send all of it everywhere. Of
        # both ways, what comes of one row stays together.
        session: Any = spark._jsparkSession  # noqa: SLF001 - a text such as 10MB, or a number
        small = session.sessionState().conf().autoBroadcastJoinThreshold()
        return found if remote.size_bytes <= small else found.hint("merge")


def _write(sealed: Sealed, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: JoinTools = sealed.open()
    context = TaskContext.get()
    judging = Judging(tools, f"{tools.attempt}-{context.taskAttemptId() if context else 0}")
    with lent_variables(tools.identity):
        try:
            for batch in batches:
                judging.take(batch)
            report = judging.close()
        except BaseException:
            # Spark runs the task again under another attempt; the files of this one can never be committed.
            judging.abort()
            raise
    text = json.dumps(encode(report)).encode()
    yield pa.RecordBatch.from_arrays([binaries([text]).view(pa.string())], names=["report"])


class Judging:
    """Rows of one task: those that came of one row of the source follow each other."""

    def __init__(self, tools: JoinTools, attempt: str) -> None:
        self._tools = tools
        self._attempt = attempt
        self._names = list(tools.columns)
        self._waiting: list[pa.RecordBatch] = []
        """Rows of the last row of the source: more of them may come."""
        self._writer: Writer | None = None
        self._quarantine: Quarantine | None = None
        self._rows = self._unselected = self._errors = 0
        self._first_error = ""

    def take(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        if not batch.num_rows:
            return
        ends = pc.run_end_encode(batch.column(ROW)).run_ends.to_pylist()
        last = ends[-2] if len(ends) > 1 else 0
        goes_on = bool(self._waiting) and self._waiting[0].column(ROW)[0] == batch.column(ROW)[0]
        if self._waiting and not goes_on:
            self._judge_waiting()
        if last:
            first = ends[0] if goes_on else 0
            if goes_on:
                self._waiting.append(batch.slice(0, first))
                self._judge_waiting()
            self._judge(batch.slice(first, last - first))
        self._waiting.append(batch.slice(last))

    def close(self) -> Judged:
        """Finish all files and say what they hold."""
        self._judge_waiting()
        return Judged(
            rows=self._rows,
            unselected=self._unselected,
            errors=self._errors,
            files=tuple(self._writer.close()) if self._writer is not None else (),
            quarantine=(self._quarantine.close(),) if self._quarantine is not None else (),
            first_error=self._first_error,
        )

    def abort(self) -> None:
        """The attempt failed."""
        if self._writer is not None:
            self._writer.abort()

    def _judge_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = pa.concat_batches(self._waiting), []
            self._judge(waiting)

    def _judge(self, batch: pa.RecordBatch) -> None:
        """All rows that came of some rows of the source."""
        if not batch.num_rows:
            return
        rows, notes = batch.column(ROW), batch.column(NOTE)
        total = len(pc.run_end_encode(rows).values)
        is_bad = pc.fill_null(pc.not_equal(notes, binaries([UNSELECTED.encode()])[0]), False)
        bad = pc.unique(rows.filter(is_bad))
        if len(bad):
            self._put_aside(batch.filter(is_bad))
        is_kept = pc.and_(pc.is_null(notes), pc.invert(pc.is_in(rows, value_set=bad)))
        kept = batch.filter(is_kept)
        self._rows += total
        self._errors += len(bad)
        self._unselected += total - len(bad) - len(pc.unique(kept.column(ROW)))
        if kept.num_rows:
            self._writer = self._writer or self._tools.open_writer(self._attempt)
            self._writer.write(kept.select(self._names))

    def _put_aside(self, bad: pa.RecordBatch) -> None:
        """The first bad result of each row stands for it."""
        if self._quarantine is None:
            self._quarantine = self._tools.open_quarantine(self._attempt)
        seen: set[int] = set()
        columns = (bad.column(name).to_pylist() for name in (ROW, FILE, LINE, NOTE))
        for row, file, line, note in zip(*columns, strict=True):
            if row in seen:
                continue
            seen.add(row)
            reason, raw = parse_bad(note)
            self._quarantine.add(file=file, row=line, reason=reason, raw=raw)
            self._first_error = self._first_error or f"{file}, row {line}: {reason}"
