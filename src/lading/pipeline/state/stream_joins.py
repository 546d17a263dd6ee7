"""JOIN of two streams: rows of both are kept for as long as a row can come that they match.

The spool of a batch becomes its state as it is: nothing is written twice. New rows of one stream are joined with the
new and the kept ones of the other, and what was kept is never joined with what was kept: each pair is written once, by
the batch that reads its second row. Rows behind the watermark are late and do not come here, so a row whose partners
would all be behind it can match nothing more, and is forgotten.

LEFT: a row of the first stream that is forgotten and matches nothing of what is kept is written alone. Rows of the
second are kept until all are forgotten that they may match, so nothing has to be remembered about who matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lading.errors import SourceError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, StagedFile, StateFile
from lading.model.pairs import SIDES, side_of
from lading.model.rows import FILE
from lading.model.state import StateChange, StateManifest, StateRef
from lading.pipeline.checked import CheckedSelect, checked_join
from lading.pipeline.mapping import BUCKET, LINE, NOTE, UNSELECTED, quoted, select_lists
from lading.pipeline.notes import parse_bad
from lading.pipeline.state.files import ROW, TIME
from lading.pipeline.state.jobs import StateJobs
from lading.pipeline.state.manifests import read_manifest, write_manifest
from lading.pipeline.state.packing import pack
from lading.pipeline.state.results import ResultFiles, ResultTools, hinted, write_results
from lading.pipeline.state.rules import StateStage, StreamJoinRule
from lading.pipeline.state.selected import ALL_TIMES, Among, Ranked, Times

LEFT, RIGHT = 0, 1
_ALONE = -1
"""The place of a result that no row of the batch brought: of one that was forgotten without a match."""
_MOST_BAD = 100_000
"""Rows with results that do not fit, in one task: they are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What one accepted task of a joining job did."""

    files: tuple[StagedFile, ...] = ()
    quarantine: tuple[str, ...] = ()
    first_error: str = ""
    bad: tuple[int, ...] = ()
    """Places of rows of the batch that have a result which does not fit the table."""


class StreamJoinMerger:
    """Implements the coordinator's Merger."""

    def __init__(self, stage: StateStage, rule: StreamJoinRule, jobs: StateJobs, new_token: NewToken) -> None:
        self._stage = stage
        self._rule = rule
        self._jobs = jobs
        self._new_token = new_token
        self._select = CheckedSelect()

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        jobs, watermark = self._jobs, plan.positions.watermark_us
        before = read_manifest(jobs.place, state, self._rule.shape)
        new = [
            Ranked(file=replace(file, side=SIDES.index(side_of(report.partition)[0])), rank=report.split)
            for report in reports
            for file in report.spool
        ]
        live = [file for file in before.files if watermark is None or self._end(file, file.max_us) > watermark]
        closing = self._closing(before, watermark)
        joined = self._joined(new, live, before, closing, watermark)
        change = StateChange(
            state=state,
            files=tuple(file for part in joined for file in part.files),
            errors=len({place for part in joined for place in part.bad}),
            quarantine=tuple(place for part in joined for place in part.quarantine),
            first_error=next((part.first_error for part in joined if part.first_error), ""),
        )
        if not new and not closing and len(live) == len(before.files):
            return change
        closed = max((time for time in (watermark, before.closed_us) if time is not None), default=None)
        packed = self._packed([*live, *(ranked.file for ranked in new)], closed)
        after = StateManifest(shape=before.shape, files=tuple(packed), closed_us=closed)
        name = f"{self._new_token():016x}"
        return replace(change, state=write_manifest(jobs.place, name, after, self._next_end(after)))

    def _end(self, file: StateFile, time_us: int) -> int:
        """The watermark at which a row of this event time can match nothing more."""
        return time_us + self._rule.keeps_us[file.side] + 1

    def _began(self, side: int, end_us: int) -> int:
        """The event time of a row that ends there."""
        return end_us - self._rule.keeps_us[side] - 1

    def _closing(self, manifest: StateManifest, watermark: int | None) -> list[StateFile]:
        """Files of the first stream with rows that are forgotten now, where those without a match are written."""
        closed = manifest.closed_us
        if not self._rule.is_left or watermark is None or (closed is not None and watermark <= closed):
            return []
        return [
            file
            for file in manifest.files
            if file.side == LEFT
            and self._end(file, file.min_us) <= watermark
            and (closed is None or self._end(file, file.max_us) > closed)
        ]

    def _next_end(self, manifest: StateManifest) -> int | None:
        """When the next row of the first stream may have to be written alone."""
        if not self._rule.is_left:
            return None
        closed = manifest.closed_us
        ends = [self._end(file, file.min_us) for file in manifest.files if file.side == LEFT]
        return min((end if closed is None or end > closed else closed + 1 for end in ends), default=None)

    def _packed(self, files: Sequence[StateFile], closed: int | None) -> list[StateFile]:
        found = list[StateFile]()
        for side in (LEFT, RIGHT):
            own = [file for file in files if file.side == side]
            times = Times(after_us=self._began(side, closed)) if closed is not None else ALL_TIMES
            packed = pack(self._jobs, self._rule.spool_schema, own, self._new_token, times=times)
            found += [replace(file, side=side) for file in packed]
        return found

    def _joined(
        self,
        new: Sequence[Ranked],
        live: Sequence[StateFile],
        before: StateManifest,
        closing: Sequence[StateFile],
        watermark: int | None,
    ) -> list[Joined]:
        key, kept = self._jobs.new_key(), [Ranked(file=file) for file in live]
        lefts, rights = ([ranked for ranked in new if ranked.file.side == side] for side in (LEFT, RIGHT))
        parts = [
            self._pairs(lefts, [*rights, *(each for each in kept if each.file.side == RIGHT)], key, arriving=LEFT),
            self._pairs([each for each in kept if each.file.side == LEFT], rights, key, arriving=RIGHT),
            self._alone(closing, before, watermark or 0, key) if closing else None,
        ]
        frames = [part for part in parts if part is not None]
        return self._written(reduce(DataFrame.unionByName, frames), key) if frames else []

    def _pairs(self, lefts: Sequence[Ranked], rights: Sequence[Ranked], key: str, *, arriving: int) -> DataFrame | None:
        touched = _buckets(lefts) & _buckets(rights)
        sides = [[ranked for ranked in side if ranked.file.buckets & touched] for side in (lefts, rights)]
        if not all(sides):
            return None
        first, keys = sum(map(len, self._rule.names)), self._rule.keys
        among = Among.of(sides[arriving], {f"c{first + n}": f"c{first + n}" for n in range(keys)})
        one, other = (
            self._rows(sides[side], side, key, touched, tells=True)
            if side == arriving
            else self._rows(sides[side], side, key, touched, tells=False, among=among)
            for side in (LEFT, RIGHT)
        )
        return self._named(checked_join(one, self._hinted(other, sides), self._on(), "inner"))

    def _alone(self, files: Sequence[StateFile], before: StateManifest, watermark: int, key: str) -> DataFrame:
        """Rows of the first stream that match nothing, and never will."""
        rule = self._rule
        ends = f"__lt + {rule.keeps_us[LEFT] + 1}"
        is_due = f"{ends} <= {watermark}" + (
            f" AND {ends} > {before.closed_us}" if before.closed_us is not None else ""
        )
        lefts = [Ranked(file=file) for file in files]
        touched = _buckets(lefts)
        due = self._rows(lefts, LEFT, key, -1, tells=True).where(is_due)
        rights = [Ranked(file=file) for file in before.files if file.side == RIGHT and file.buckets & touched]
        if rights:
            others = self._hinted(self._rows(rights, RIGHT, key, touched, tells=False), [lefts, rights])
            due = checked_join(due, others, self._on(), "left_anti")
        nothing = [
            f"CAST(NULL AS {kind}) AS {quoted(name)}"
            for name, kind in zip(rule.names[RIGHT], rule.types[RIGHT], strict=True)
        ]
        own = [quoted(name) for name in rule.names[LEFT]]
        return self._named(due.selectExpr(*own, *nothing, FILE, LINE, f"CAST({_ALONE} AS bigint) AS {ROW}"))

    def _rows(
        self,
        files: Sequence[Ranked],
        side: int,
        key: str,
        buckets: int,
        *,
        tells: bool,
        times: Times = ALL_TIMES,
        among: Among | None = None,
    ) -> DataFrame:
        """Rows of one stream. `tells`: with where they are from."""
        rule, letter = self._rule, "lr"[side]
        first = len(rule.names[LEFT]) if side == RIGHT else 0
        columns = len(rule.names[LEFT]) + len(rule.names[RIGHT])
        rows = self._jobs.read(files, rule.spool_schema, key, buckets=buckets, times=times, among=among)
        place = columns + rule.keys
        return rows.selectExpr(
            *(f"c{first + n} AS {quoted(name)}" for n, name in enumerate(rule.names[side])),
            *(f"c{columns + n} AS __{letter}k{n}" for n in range(rule.keys)),
            f"{TIME} AS __{letter}t",
            f"{BUCKET} AS __{letter}b",
            *([f"c{place} AS {FILE}", f"c{place + 1} AS {LINE}", ROW] if tells else []),
        )

    def _on(self) -> str:
        rule = self._rule
        near = f"__rt >= __lt + {rule.low_us} AND __rt <= __lt + {rule.high_us}"
        keys = [f"__lk{n} = __rk{n}" for n in range(rule.keys)]
        return " AND ".join(["__lb = __rb", *keys, near, *([f"({rule.rest})"] if rule.rest else [])])

    def _hinted(self, rows: DataFrame, sides: Sequence[Sequence[Ranked]]) -> DataFrame:
        largest = max(sum(ranked.file.size_bytes for ranked in side) for side in sides)
        return hinted(rows, self._jobs.spark, largest)

    def _named(self, rows: DataFrame) -> DataFrame:
        names = (*self._rule.names[LEFT], *self._rule.names[RIGHT])
        return rows.selectExpr(*map(quoted, names), FILE, LINE, ROW)

    def _written(self, rows: DataFrame, key: str) -> list[Joined]:
        rule, jobs = self._rule, self._jobs
        both, carried = (*rule.names[LEFT], *rule.names[RIGHT]), (FILE, LINE, ROW)
        noted = rows.selectExpr(*map(quoted, both), *carried, f"CAST(NULL AS binary) AS {NOTE}")
        mapped = self._select(noted, select_lists(rule.mapping, both, carried))
        mapped = mapped.where(f"{NOTE} IS NULL OR {NOTE} <> CAST('{UNSELECTED}' AS binary)")
        tools = ResultTools.of(self._stage, rule, jobs, self._new_token())
        return write_results(mapped, jobs, tools, key, judge=Results, report=Joined)


def _buckets(files: Sequence[Ranked]) -> int:
    return reduce(lambda found, ranked: found | ranked.file.buckets, files, 0)


class Results:
    """Results of one task, on their way to the table. Nothing is held back: a key may have any number of them."""

    def __init__(self, files: ResultFiles) -> None:
        self._files = files
        self._bad: set[int] = set()

    def take(self, batch: pa.RecordBatch) -> None:
        """Write what fits, and put the others aside."""
        good = batch.filter(pc.is_null(batch.column(NOTE)))
        self._files.write(good)
        if good.num_rows < batch.num_rows:
            self._put_aside(batch.filter(pc.is_valid(batch.column(NOTE))))

    def close(self) -> Joined:
        """Finish all files and say what they hold."""
        files, quarantine = self._files.close()
        first_error = self._files.first_error
        return Joined(files=files, quarantine=quarantine, first_error=first_error, bad=tuple(sorted(self._bad)))

    def _put_aside(self, bad: pa.RecordBatch) -> None:
        columns = (bad.column(name).to_pylist() for name in (ROW, FILE, LINE, NOTE))
        for row, file, line, note in zip(*columns, strict=True):
            reason, raw = parse_bad(note)
            if row == _ALONE or len(self._bad) >= _MOST_BAD:
                what = "of a row without a match" if row == _ALONE else "and more than could be put aside"
                msg = f"A result of the join does not fit the table ({what}): {file}, row {line}: {reason}"
                raise SourceError(msg, left="Nothing was committed.", todo="ALTER the job or the table, then RESUME.")
            self._files.put_aside(file=file, row=line, reason=reason, raw=raw)
            self._bad.add(row)
