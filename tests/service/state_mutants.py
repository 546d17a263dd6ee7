"""Laws of state that are switched off in the real code, one at a time: what compares must then find something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lading.commit import coordinator
from lading.commit.next_bill import draft_load
from lading.model.batch import BatchPlan, Report
from lading.model.bill import Bill
from lading.model.state import StateChange, StateManifest, StateRef
from lading.pipeline.sealing import Sealed
from lading.pipeline.stager import SparkStager
from lading.pipeline.state import dedup, jobs, stream_joins, windows
from lading.pipeline.state.copies import StateCopies
from lading.pipeline.state.dedup import DedupMerger
from lading.pipeline.state.files import ROW, StatePlace
from lading.pipeline.state.jobs import StateJobs
from lading.pipeline.state.manifests import read_manifest, write_manifest
from lading.pipeline.state.selected import Ranked
from lading.pipeline.state.windows import WindowMerger
from tests.crash.state_stories import Found
from tests.crash.stop_chain import Stop

Patch = pytest.MonkeyPatch
MERGERS = (dedup, windows, stream_joins)
_DELAY_US = 60_000_000
"""The watermark.delay of the stories."""


STOPS = (Stop("commit.before", 2), Stop("commit.after", 2), Stop("merge.after", 1))
"""What was merged and never landed, what landed and nobody was told, and once more what never landed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """What it switches off, over which jobs, and what must be found then."""

    name: str
    kind: str
    switch_off: Callable[[Patch], None]
    finds: Callable[[Found], int]
    stops: tuple[Stop, ...] = STOPS


def state_of_an_uncommitted_attempt(patch: Patch) -> None:
    """A batch goes on from the state that was written last, whether or not a bill names it."""
    last: dict[str, StateRef] = {}

    def write(place: StatePlace, name: str, manifest: StateManifest, next_us: int | None) -> StateRef:
        last[place.folder] = write_manifest(place, name, manifest, next_us)
        return last[place.folder]

    def read(place: StatePlace, state: StateRef | None, shape: str) -> StateManifest:
        return read_manifest(place, last.get(place.folder, state), shape)

    for merger in MERGERS:
        patch.setattr(merger, "write_manifest", write)
        patch.setattr(merger, "read_manifest", read)


def state_of_before(patch: Patch) -> None:
    """The bill of a batch names the state that was there before it. Where none was, the bill is refused as it is."""

    def stale(job: Any, base: Bill, *rest: Any) -> Bill:
        bill = draft_load(job, base, *rest)
        return replace(bill, state=base.state or bill.state)

    patch.setattr(coordinator, "draft_load", stale)


def forgotten_file(patch: Patch) -> None:
    """The first file is not in the next manifest."""

    def write(place: StatePlace, name: str, manifest: StateManifest, next_us: int | None) -> StateRef:
        return write_manifest(place, name, replace(manifest, files=manifest.files[1:]), next_us)

    for merger in MERGERS:
        patch.setattr(merger, "write_manifest", write)


def forgotten_buckets(patch: Patch) -> None:
    """Half of the buckets of keys have no task that reads them."""
    read = StateJobs.read

    def half(self: StateJobs, files: Sequence[Ranked], schema: pa.Schema, key: str, **rest: Any) -> Any:
        if "buckets" in rest:
            rest["buckets"] &= (1 << 32) - 1
        return read(self, files, schema, key, **rest)

    patch.setattr(StateJobs, "read", half)


def closed_windows_open_again(patch: Patch) -> None:
    """What has closed is not remembered: files have rows of such windows, as long as others in them are open."""

    def read(place: StatePlace, state: StateRef | None, shape: str) -> StateManifest:
        return replace(read_manifest(place, state, shape), closed_us=None)

    patch.setattr(windows, "read_manifest", read)


def watermark_of_after(patch: Patch) -> None:
    """Windows close by the watermark that the batch itself leads to."""
    merge = WindowMerger.merge

    def hasty(self: WindowMerger, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        times = [report.event_us for report in reports if report.event_us is not None]
        known = plan.positions.watermark_us
        marks = [*([] if known is None else [known]), *(time - _DELAY_US for time in times)]
        positions = replace(plan.positions, watermark_us=max(marks, default=None))
        return merge(self, replace(plan, positions=positions), reports, state)

    patch.setattr(WindowMerger, "merge", hasty)


def rows_in_another_order(patch: Patch) -> None:
    """The rows of a batch are judged from its last one to its first."""
    firsts = DedupMerger._firsts

    def lasts(self: DedupMerger, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        return firsts(self, rows.withColumn(ROW, expr(f"IF({ROW} < 0, {ROW}, {1 << 60} - {ROW})")), keys)

    patch.setattr(DedupMerger, "_firsts", lasts)


def use_copies(patch: Patch, folder: Path, *, trusts: bool) -> None:
    """Tasks keep copies of state files, and believe those as they are, or not."""
    where = str(folder)

    def read(sealed: Sealed, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs in the processes of Spark, and leaves them as they were."""
        from lading.pipeline.state import files, selected

        place, ranked, wanted, _ = sealed.open()
        copied = replace(place, copies=StateCopies(folder=where, most_bytes=1 << 30))
        chosen = [ranked[number] for batch in numbers for number in batch.column(0).to_pylist()]
        check = files._is_whole
        if trusts:
            files._is_whole = lambda content, file: True
        try:
            yield from list(selected.read_rows(copied, chosen, wanted))
        finally:
            files._is_whole = check

    patch.setattr(jobs, "_read", read)


def cut_copies(folder: Path) -> int:
    """Each copy has lost its rows, and can be read."""
    cut = 0
    for path in folder.glob("*"):
        pq.write_table(pq.read_table(path).slice(0, 0), path)
        cut += 1
    return cut


def late_rows_twice(patch: Patch) -> None:
    """Reports count each late row twice."""
    stage = SparkStager.stage

    def twice(self: SparkStager, plan: BatchPlan) -> Any:
        reports = stage(self, plan)
        return tuple(replace(each, rows=replace(each.rows, late=2 * each.rows.late)) for each in reports)

    patch.setattr(SparkStager, "stage", twice)


MUTANTS = (
    Mutant(
        name="uncommitted",
        kind="counts",
        switch_off=state_of_an_uncommitted_attempt,
        finds=lambda found: min(found.loss, found.corrupt),
        stops=STOPS[-1:],
    ),
    Mutant(
        name="uncommitted",
        kind="joins",
        switch_off=state_of_an_uncommitted_attempt,
        finds=lambda found: found.dup + found.loss,
    ),
    Mutant(name="before", kind="counts", switch_off=state_of_before, finds=lambda found: min(found.dup, found.loss)),
    Mutant(name="before", kind="joins", switch_off=state_of_before, finds=lambda found: found.loss),
    Mutant(name="file", kind="counts", switch_off=forgotten_file, finds=lambda found: found.dup),
    Mutant(name="file", kind="joins", switch_off=forgotten_file, finds=lambda found: found.loss),
    Mutant(name="buckets", kind="counts", switch_off=forgotten_buckets, finds=lambda found: found.dup),
    Mutant(
        name="reopened", kind="counts", switch_off=closed_windows_open_again, finds=lambda found: found.dup, stops=()
    ),
    Mutant(name="hasty", kind="counts", switch_off=watermark_of_after, finds=lambda found: found.loss + found.corrupt),
    Mutant(name="turned", kind="counts", switch_off=rows_in_another_order, finds=lambda found: found.reorder),
)
