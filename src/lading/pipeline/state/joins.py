"""JOIN with a table: the rows of a batch are looked up in the snapshot that the bill before names.

Spark runs it as a LEFT JOIN in every case, so that each row of the spool comes out at least once. What becomes of a row
is judged when all that it was joined with is known: one bad result makes it a bad row, of which nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lading.errors import StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, StagedFile
from lading.model.joined import JoinedTable
from lading.model.rows import FILE
from lading.model.state import StateChange, StateRef
from lading.pipeline.checked import CheckedSelect, checked_join
from lading.pipeline.mapping import LINE, NOTE, UNSELECTED, quoted, select_lists
from lading.pipeline.notes import binaries, parse_bad
from lading.pipeline.remote import empty_frame, remote_frame
from lading.pipeline.session import is_local
from lading.pipeline.state.files import ROW
from lading.pipeline.state.jobs import StateJobs
from lading.pipeline.state.manifests import drop_files
from lading.pipeline.state.results import ResultFiles, ResultTools, hinted, write_results
from lading.pipeline.state.rules import JoinRule, StateStage
from lading.pipeline.state.selected import Ranked

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
        tools = ResultTools.of(self._stage, rule, jobs, self._new_token())
        return write_results(mapped, jobs, tools, key, judge=Judging, report=Judged)

    def _others(self, table: JoinedTable, key: str) -> DataFrame:
        """The rows of the table that are joined with."""
        rule, spark = self._rule, self._jobs.spark
        remote = rule.open(table, rule.table)
        remote = remote if is_local(spark) else replace(remote, identity={})
        found = remote_frame(spark, remote, key) if remote.files else empty_frame(spark, rule.table)
        columns = zip(rule.table.names, rule.names, strict=True)
        found = found.selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in columns), f"true AS {_MATCHED}")
        # Of both ways, what comes of one row stays together.
        return hinted(found, spark, remote.size_bytes)


class Judging:
    """Rows of one task: those that came of one row of the source follow each other."""

    def __init__(self, files: ResultFiles) -> None:
        self._files = files
        self._waiting: list[pa.RecordBatch] = []
        """Rows of the last row of the source: more of them may come."""
        self._rows = self._unselected = self._errors = 0

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
        files, quarantine = self._files.close()
        return Judged(
            rows=self._rows,
            unselected=self._unselected,
            errors=self._errors,
            files=files,
            quarantine=quarantine,
            first_error=self._files.first_error,
        )

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
        self._files.write(kept)

    def _put_aside(self, bad: pa.RecordBatch) -> None:
        """The first bad result of each row stands for it."""
        seen: set[int] = set()
        columns = (bad.column(name).to_pylist() for name in (ROW, FILE, LINE, NOTE))
        for row, file, line, note in zip(*columns, strict=True):
            if row in seen:
                continue
            seen.add(row)
            reason, raw = parse_bad(note)
            self._files.put_aside(file=file, row=line, reason=reason, raw=raw)
