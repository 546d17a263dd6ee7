"""GROUP BY session_window(…): windows that last for as long as rows come.

The state is a log of partial sessions: the rows of a key in one batch that are less than the gap apart, from the first
of them to a gap after the last. Partial sessions that touch are one. A batch appends its own and reads nothing, unless
something is due: then all that is open is merged, what ended is written, and the others are kept as they are merged.

Rows that come here are not behind the watermark, and a session that closes ended a gap or more before it: no row can
come that belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lading.model.batch import StagedFile, StateFile
from lading.model.state import StateManifest
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state.files import TIME
from lading.pipeline.state.jobs import Merged
from lading.pipeline.state.rules import START
from lading.pipeline.state.selected import Ranked
from lading.pipeline.state.windows import WindowMerger

_END, _NUMBER = "__end", "__number"


class SessionMerger(WindowMerger):
    """Implements the coordinator's Merger."""

    def _appended(self, spool: Sequence[Ranked], watermark: int | None) -> list[Merged]:
        rule, key = self._rule, self._jobs.new_key()
        keys = [f"c{n} AS k{n}" for n in range(rule.keys)]
        times = [f"{TIME} AS {START}", f"{TIME} + {rule.size_us} AS {_END}"]
        rows = self._jobs.read(spool, rule.spool_schema, key).selectExpr("*", *keys, *times)
        return self._kept(self._sessions(rows, [part.partial for part in rule.parts]), key)

    def _closing(self, manifest: StateManifest, watermark: int | None) -> list[StateFile]:
        """All of them, when something may have ended: another partial session may go on where one ends."""
        if watermark is None or all(file.min_us > watermark for file in manifest.files):
            return []
        return list(manifest.files)

    def _first_end(self, closed: int | None) -> int | None:
        """Sessions end at any time."""
        return None if closed is None else closed + 1

    def _results(self, files: Sequence[StateFile], closed: int | None, watermark: int) -> tuple[StagedFile, ...]:
        key = self._jobs.new_key()
        rows = self._jobs.read([Ranked(file=file) for file in files], self._rule.state_schema, key)
        return self._written_results(self._merged_parts(rows).where(f"{TIME} <= {watermark}"), key)

    def _still_open(
        self, before: StateManifest, closing: Sequence[StateFile], closed: int | None
    ) -> Sequence[StateFile]:
        if not closing:
            return before.files
        key = self._jobs.new_key()
        rows = self._jobs.read([Ranked(file=file) for file in closing], self._rule.state_schema, key)
        is_open = self._merged_parts(rows).where(f"{TIME} > {closed}")
        return [file for part in self._kept(is_open, key) for file in part.state]

    def _merged_parts(self, rows: DataFrame) -> DataFrame:
        """Partial sessions that touch as one. Those that ended are among them, unless something was closed since."""
        merges = [part.merge.format(f"p{n}") for n, part in enumerate(self._rule.parts)]
        return self._sessions(rows.selectExpr("*", f"{TIME} AS {_END}"), merges)

    def _sessions(self, rows: DataFrame, parts: Sequence[str]) -> DataFrame:
        keys = [BUCKET, *(f"k{n}" for n in range(self._rule.keys))]
        order = f"PARTITION BY {', '.join(keys)} ORDER BY {START}, {_END} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        before = f"max({_END}) OVER ({order} 1 PRECEDING)"
        rows = rows.selectExpr("*", f"CASE WHEN {START} < {before} THEN 0 ELSE 1 END AS __begins")
        rows = rows.selectExpr("*", f"sum(__begins) OVER ({order} CURRENT ROW) AS {_NUMBER}")
        values = [expr(f"{text} AS p{n}") for n, text in enumerate(parts)]
        ends = [expr(f"min({START}) AS __first"), expr(f"max({_END}) AS __last")]
        merged = rows.groupBy(*keys, _NUMBER).agg(*ends, *values)
        return merged.selectExpr(
            *keys[1:],
            f"__first AS {START}",
            *(f"p{n}" for n in range(len(parts))),
            f"__last AS {TIME}",
            BUCKET,
        )
