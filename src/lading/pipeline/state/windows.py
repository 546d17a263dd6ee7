"""GROUP BY window(…): rows are added up by time and keys, and a result is written once, when its window has closed.

The state is a log of partial aggregates. A batch appends those of its rows and reads nothing of what is open. Where
Arrow can compute them the tasks that read have done so, and their spool is what is appended; see `partials`. A window
closes when the watermark of the bill before has reached its end; then its parts are merged, once. Rows for windows that
have closed are late and do not come here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, StagedFile, StateFile
from lading.model.state import StateChange, StateManifest, StateRef
from lading.pipeline.checked import CheckedSelect
from lading.pipeline.mapping import BUCKET, NOTE, UNSELECTED, quoted, select_lists
from lading.pipeline.state.files import TIME
from lading.pipeline.state.jobs import BAD_RESULT, FATE, NOTHING, STATE, TABLE, Merged, MergeTools, StateJobs
from lading.pipeline.state.manifests import drop_files, read_manifest, write_manifest
from lading.pipeline.state.packing import pack
from lading.pipeline.state.partials import partials_of
from lading.pipeline.state.rules import RESULT_END, RESULT_START, START, StateStage, WindowRule
from lading.pipeline.state.selected import Ranked, Times


class WindowMerger:
    """Implements the coordinator's Merger."""

    def __init__(self, stage: StateStage, rule: WindowRule, jobs: StateJobs, new_token: NewToken) -> None:
        self._stage = stage
        self._rule = rule
        self._jobs = jobs
        self._new_token = new_token
        self._select = CheckedSelect()
        self._is_summed = partials_of(rule) is not None

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        jobs, watermark = self._jobs, plan.positions.watermark_us
        before = read_manifest(jobs.place, state, self._rule.shape)
        new = self._added(reports, watermark)
        closing = self._closing(before, watermark)
        files = self._results(closing, before.closed_us, watermark) if closing and watermark is not None else ()
        if not new and not closing:
            return StateChange(state=state)
        closed = max((time for time in (watermark, before.closed_us) if time is not None), default=None)
        kept = self._still_open(before, closing, closed)
        schema, times = self._rule.state_schema, Times(after_us=closed)
        packed = pack(jobs, schema, [*kept, *new], self._new_token, self._merged_parts, times=times)
        after = StateManifest(shape=before.shape, files=tuple(packed), closed_us=closed)
        name = f"{self._new_token():016x}"
        return StateChange(state=write_manifest(jobs.place, name, after, self._next_end(after)), files=files)

    def _still_open(
        self, before: StateManifest, closing: Sequence[StateFile], closed: int | None
    ) -> Sequence[StateFile]:
        """What is kept of the files of before. Rows of windows that have closed may be in them, and count no more."""
        return [file for file in before.files if closed is None or file.max_us > closed]

    def _added(self, reports: Sequence[Report], watermark: int | None) -> list[StateFile]:
        """What the batch adds to the log."""
        spool = [Ranked(file=file, rank=report.split) for report in reports for file in report.spool]
        if self._is_summed or not spool:
            return [ranked.file for ranked in spool]
        added = [file for part in self._appended(spool, watermark) for file in part.state]
        drop_files(self._jobs.place, [ranked.file for ranked in spool])
        return added

    def _appended(self, spool: Sequence[Ranked], watermark: int | None) -> list[Merged]:
        """Partial aggregates of the rows of a batch, for every window that has not closed."""
        rule, key = self._rule, self._jobs.new_key()
        rows = self._jobs.read(spool, rule.spool_schema, key)
        keys = [f"c{n} AS k{n}" for n in range(rule.keys)]
        first = f"({TIME} - pmod({TIME}, {rule.slide_us}))"
        count = -(-rule.size_us // rule.slide_us)
        starts = f"explode(sequence({first} - {(count - 1) * rule.slide_us}, {first}, {rule.slide_us}))"
        rows = rows.selectExpr("*", f"{first if count == 1 else starts} AS {START}")
        ends = f"{START} + {rule.size_us}"
        # The only window of a row has not closed: the row would be late.
        is_open = f"{ends} > {TIME}" + (f" AND {ends} > {watermark}" if watermark is not None and count > 1 else "")
        rows = rows.where(is_open).selectExpr("*", *keys)
        grouped = self._grouped(rows, [part.partial for part in rule.parts])
        return self._kept(grouped, key)

    def _merged_parts(self, rows: DataFrame) -> DataFrame:
        """Partial aggregates of several batches as one."""
        merges = [part.merge.format(f"p{n}") for n, part in enumerate(self._rule.parts)]
        return self._grouped(rows, merges)

    def _grouped(self, rows: DataFrame, parts: Sequence[str]) -> DataFrame:
        keys = [BUCKET, *(f"k{n}" for n in range(self._rule.keys)), START]
        values = [expr(f"{text} AS p{n}") for n, text in enumerate(parts)] or [expr("count(*) AS __n")]
        merged = rows.groupBy(*keys).agg(*values)
        return merged.selectExpr(
            *keys[1:],
            *(f"p{n}" for n in range(len(parts))),
            f"{START} + {self._rule.size_us} AS {TIME}",
            BUCKET,
        )

    def _kept(self, rows: DataFrame, key: str) -> list[Merged]:
        names = self._rule.state_schema.names
        tools = self._tools(remembered=tuple((name, name) for name in names))
        return self._jobs.write(rows.selectExpr(*names, f"{STATE} AS {FATE}"), tools, key)

    def _closing(self, manifest: StateManifest, watermark: int | None) -> list[StateFile]:
        """Files that have something of windows which close now."""
        if watermark is None:
            return []
        first = self._first_end(manifest.closed_us)
        return [
            f for f in manifest.files if f.min_us <= watermark and (first is None or first <= min(watermark, f.max_us))
        ]

    def _first_end(self, closed: int | None) -> int | None:
        """When the first windows after a time end. Most of the time there are none between two watermarks."""
        rule = self._rule
        return None if closed is None else closed + rule.slide_us - (closed - rule.size_us) % rule.slide_us

    def _next_end(self, manifest: StateManifest) -> int | None:
        """When the next window may close. A file with closed windows, too, does not say which of the others is next."""
        first = self._first_end(manifest.closed_us)
        ends = [file.min_us if first is None else max(file.min_us, first) for file in manifest.files]
        return min(ends, default=None)

    def _results(self, files: Sequence[StateFile], closed: int | None, watermark: int) -> tuple[StagedFile, ...]:
        rule, key = self._rule, self._jobs.new_key()
        ranked, times = [Ranked(file=file) for file in files], Times(after_us=closed, until_us=watermark)
        rows = self._jobs.read(ranked, rule.state_schema, key, times=times)
        return self._written_results(self._merged_parts(rows), key)

    def _written_results(self, merged: DataFrame, key: str) -> tuple[StagedFile, ...]:
        rule = self._rule
        results = merged.selectExpr(
            *(f"k{n} AS g{n}" for n in range(rule.keys)),
            *(f"CAST({text} AS {kind}) AS r{n}" for n, (text, kind) in enumerate(rule.results)),
            f"timestamp_micros({START}) AS {RESULT_START}",
            f"timestamp_micros({TIME}) AS {RESULT_END}",
            f"CAST(NULL AS binary) AS {NOTE}",
        )
        names = tuple(name for name in results.columns if name != NOTE)
        mapped = self._select(results, select_lists(rule.mapping, names))
        fate = f"CASE WHEN {NOTE} IS NULL THEN {TABLE} WHEN {NOTE} = CAST('{UNSELECTED}' AS binary) THEN {NOTHING} "
        fate += f"ELSE {BAD_RESULT} END AS {FATE}"
        mapped = mapped.selectExpr(*map(quoted, self._stage.schema.names), NOTE, fate).where(f"{FATE} <> {NOTHING}")
        written = self._jobs.write(mapped, self._tools(), key)
        return tuple(file for part in written for file in part.files)

    def _tools(self, remembered: tuple[tuple[str, str], ...] = ()) -> MergeTools:
        names = tuple(self._stage.schema.names)
        return MergeTools(
            place=self._jobs.place,
            attempt=f"{self._new_token():016x}",
            open_writer=self._stage.open_table,
            columns=names,
            shown=names,
            remembered=remembered,
            identity=self._jobs.identity,
        )
