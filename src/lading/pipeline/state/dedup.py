"""Rows whose keys were loaded before are duplicates.

A row is a duplicate when a row with the same keys was loaded whose event time is less than the horizon away from its
own. Rows are judged in the order in which they were read. Rows behind the watermark are late and do not come here, so
what is a horizon or more behind it can never match again, and is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lading.errors import StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, StateFile
from lading.model.state import StateChange, StateManifest, StateRef
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state.files import ROW, TIME
from lading.pipeline.state.jobs import FATE, LEFT, NOTHING, TABLE, Merged, MergeTools, StateJobs
from lading.pipeline.state.manifests import drop_files, read_manifest, write_manifest
from lading.pipeline.state.packing import pack
from lading.pipeline.state.rules import DedupRule, StateStage
from lading.pipeline.state.selected import Among, Ranked, Times

_THERE = -1
"""The place of rows that were there before."""


class DedupMerger:
    """Implements the coordinator's Merger: lets the first row of each key through."""

    def __init__(self, stage: StateStage, rule: DedupRule, jobs: StateJobs, new_token: NewToken) -> None:
        self._rule = rule
        self._jobs = jobs
        self._schema = stage.schema
        self._open_writer = stage.open_table
        self._new_token = new_token

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        jobs = self._jobs
        before = read_manifest(jobs.place, state, self._shape())
        watermark_us = plan.positions.watermark_us
        # What is older can match no row that is not late. Files of nothing else go as a whole.
        forgotten_us = None if watermark_us is None else watermark_us - self._rule.horizon_us
        live = [file for file in before.files if forgotten_us is None or file.max_us > forgotten_us]
        spool = [Ranked(file=file, rank=report.split) for report in reports for file in report.spool]
        handed_on = sum(ranked.file.rows for ranked in spool)
        merged = self._round(jobs, spool, live, is_last=False) if spool else []
        left = [Ranked(file=file) for part in merged for file in part.left]
        if left:
            # Rows of a key that are a horizon or more away from the first one: they are judged when that is known.
            known = [*live, *(file for part in merged for file in part.state)]
            merged += self._round(jobs, left, known, is_last=True)
        kept = sum(part.written for part in merged)
        files = tuple(file for part in merged for file in part.files)
        new = [file for part in merged for file in part.state]
        if sum(file.rows for file in files) != kept or kept > handed_on:
            msg = f"{handed_on} rows were handed on and {kept} kept, and the files have other rows"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        times = Times(after_us=forgotten_us)
        packed = pack(jobs, self._state_schema(), [*live, *new], self._new_token, times=times)
        after = StateManifest(shape=before.shape, files=tuple(packed))
        drop_files(jobs.place, [*(ranked.file for ranked in spool), *(file for part in merged for file in part.left)])
        if after == before:
            return StateChange(state=state, files=files, duplicates=handed_on - kept)
        ref = write_manifest(jobs.place, f"{self._new_token():016x}", after, None)
        return StateChange(state=ref, files=files, duplicates=handed_on - kept)

    def _shape(self) -> str:
        keys = ", ".join(f"{name} {self._schema.field(name).type}" for name in self._rule.keys)
        return f"the keys ({keys}) by {self._rule.time}"

    def _round(
        self, jobs: StateJobs, spool: Sequence[Ranked], known: Sequence[StateFile], *, is_last: bool
    ) -> list[Merged]:
        key, names = jobs.new_key(), {name: f"c{n}" for n, name in enumerate(self._schema.names)}
        touched = 0
        for ranked in spool:
            touched |= ranked.file.buckets
        rows = jobs.read(spool, spool_schema(self._schema), key)
        keys = [names[name] for name in self._rule.keys]
        state = [Ranked(file=file) for file in known if file.buckets & touched]
        if state:
            among = Among.of(spool, {f"k{n}": short for n, short in enumerate(keys)})
            there = jobs.read(state, self._state_schema(), key, buckets=touched, among=among)
            rows = self._without(rows, there, keys) if is_last else _before(rows, there, keys)
        judged = self._all_firsts(rows, keys) if is_last else self._firsts(rows, keys)
        judged = judged.selectExpr(*names.values(), TIME, BUCKET, ROW, FATE).where(f"{FATE} <> {NOTHING}")
        return jobs.write(judged, self._tools(jobs, names, keys), key)

    def _without(self, rows: DataFrame, there: DataFrame, keys: Sequence[str]) -> DataFrame:
        """Rows that nothing is near which was there before."""
        near = f"abs(rows.{TIME} - there.{TIME}) < {self._rule.horizon_us}"
        same = [f"rows.{short} <=> there.k{n}" for n, short in enumerate(keys)]
        match = " AND ".join([f"rows.{BUCKET} = there.{BUCKET}", *same, near])
        return rows.alias("rows").join(there.alias("there").hint("merge"), on=expr(match), how="left_anti")

    def _firsts(self, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The first row of each key, or one that was there before; those that are far from it are left to another
        round."""
        order = f"(PARTITION BY {', '.join([BUCKET, *keys])} ORDER BY {ROW})"
        judged = rows.selectExpr(
            "*", f"row_number() OVER {order} AS __n", f"first_value({TIME}) OVER {order} AS __first"
        )
        fate = (
            f"CASE WHEN {ROW} = {_THERE} THEN {NOTHING} WHEN __n = 1 THEN {TABLE} "
            f"WHEN abs({TIME} - __first) < {self._rule.horizon_us} THEN {NOTHING} ELSE {LEFT} END AS {FATE}"
        )
        return judged.selectExpr("*", fate)

    def _all_firsts(self, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        """The same for keys that have several: one after the other, each against those before it."""
        near = f"exists(kept, k -> abs(k.t - x.t) < {self._rule.horizon_us})"
        none = "cast(array() AS array<struct<r:bigint,t:bigint>>)"
        each = f"array_sort(collect_list(struct({ROW} AS r, {TIME} AS t)))"
        fold = f"aggregate({each}, {none}, (kept, x) -> IF({near}, kept, array_append(kept, x))) AS firsts"
        firsts = rows.groupBy(BUCKET, *keys).agg(expr(fold)).selectExpr("explode(firsts) AS first")
        places = firsts.selectExpr("first.r AS __place")
        return rows.join(places, on=expr(f"{ROW} = __place"), how="left_semi").selectExpr("*", f"{TABLE} AS {FATE}")

    def _tools(self, jobs: StateJobs, names: Mapping[str, str], keys: Sequence[str]) -> MergeTools:
        remembered = [*((short, f"k{n}") for n, short in enumerate(keys)), (TIME, TIME), (BUCKET, BUCKET)]
        return MergeTools(
            place=jobs.place,
            attempt=f"{self._new_token():016x}",
            open_writer=self._open_writer,
            columns=tuple(names),
            shown=tuple(names.values()),
            remembered=tuple(remembered),
            left=(*names.values(), TIME, BUCKET, ROW),
            identity=jobs.identity,
        )

    def _state_schema(self) -> pa.Schema:
        keys = [pa.field(f"k{n}", self._schema.field(name).type) for n, name in enumerate(self._rule.keys)]
        return pa.schema([*keys, pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32())])


def _before(rows: DataFrame, there: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What was there as rows before all others: Spark then sorts once what it would sort twice to join it."""
    named = [*(f"k{n} AS {short}" for n, short in enumerate(keys)), TIME, BUCKET, f"CAST({_THERE} AS bigint) AS {ROW}"]
    return rows.unionByName(there.selectExpr(*named), allowMissingColumns=True)


def spool_schema(columns: pa.Schema) -> pa.Schema:
    """Rows on their way: the columns of the table, and what state needs of them."""
    hidden = [pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32()), pa.field(ROW, pa.int64())]
    return pa.schema([*(pa.field(f"c{n}", field.type) for n, field in enumerate(columns)), *hidden])
