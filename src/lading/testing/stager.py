"""A stager in memory: reads the scripted source, writes rows into the table's file store, and sometimes fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from lading.errors import StageError
from lading.model.batch import BatchPlan, Report, Split, StagedFile
from lading.model.tally import RowCounts
from lading.testing.merger import StateObjects, spooled
from lading.testing.source import Row, ScriptedSource, Shard, offset_of

WriteFile = Callable[[str, Sequence[Row]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one attempt fetched and what of it was handed to the writer before a limit was hit."""

    fetched: int
    handed: int


class ScriptedStager:
    """Stages in memory. `faults` is the probability of each kind of trouble per batch."""

    def __init__(self, source: ScriptedSource, write_file: WriteFile, rng: Random, *, faults: float = 0.0) -> None:
        self._source = source
        self._write_file = write_file
        self._rng = rng
        self.faults = faults
        self._attempts = 0
        self._written: dict[str, list[Row]] = {}
        self._watermark: int | None = None
        self.spool: StateObjects | None = None
        """Where rows go that are merged with the state of the job. None: to the table."""

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        reports: list[Report] = []
        self._watermark = self._watermark_of(plan)
        for split in plan.splits:
            if self._trouble():
                # A first attempt wrote its files and died; Spark runs the split again and accepts only the second.
                rejected = self._attempt(split)
                reports = self._collected(reports, rejected, accepted=False)
            reports = self._collected(reports, self._attempt(split), accepted=True)
        return self._delivered(reports)

    def _watermark_of(self, plan: BatchPlan) -> int | None:
        return plan.positions.watermark_us

    def _collected(self, reports: list[Report], report: Report, *, accepted: bool) -> list[Report]:
        return [*reports, report] if accepted else reports

    def _delivered(self, reports: list[Report]) -> list[Report]:
        if reports and self._trouble():
            return [report for report in reports if report.split != self._rng.choice(reports).split]
        if reports and self._trouble():
            again = self._rng.choice(reports)
            return [*reports, replace(again, files=tuple(self._copied(file) for file in again.files))]
        if self._trouble():
            msg = "A task failed four times"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        return reports

    def _copied(self, file: StagedFile) -> StagedFile:
        """The same rows once more under another name, as a second attempt would leave them."""
        return self._staged(self._written[file.path])

    def _attempt(self, split: Split) -> Report:
        shard, start = self._source.shards[split.partition], offset_of(split.start)
        reading = self._reading(split, len(shard.rows) - start)
        end = self._end(start, reading)
        rows = shard.rows[self._first_row(shard, start) : start + reading.handed]
        if any(row.is_deadly for row in rows) and not split.poison:
            msg = "A worker of the batch was killed"
            raise StageError(msg, left="Nothing was committed.", todo="It is cut.", code="WorkerLost")
        fates = ["error" if split.poison else row.fate_at(self._watermark) for row in rows]
        loaded = [row for row, fate in zip(rows, fates, strict=True) if fate == "loaded"]
        files = (self._staged(loaded),) if loaded and self.spool is None else ()
        spool = (spooled(self.spool, self._file_name(), loaded),) if loaded and self.spool is not None else ()
        at_end = end == len(shard.rows)
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=str(end) if end != start else split.start,
            finished=shard.closed and at_end,
            files=files,
            spool=spool,
            rows=RowCounts(
                total=len(rows),
                loaded=len(loaded),
                unselected=fates.count("unselected"),
                error=fates.count("error"),
                late=fates.count("late"),
            ),
            event_us=max((row.event for row in loaded), default=None),
            received_bytes=10 * len(rows),
        )

    def _first_row(self, shard: Shard, start: int) -> int:
        if start < shard.horizon:
            msg = f"Rows {start} to {shard.horizon} of {shard.name} were trimmed while the batch was planned"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        return start

    def _reading(self, split: Split, available: int) -> Reading:
        if split.end is not None:
            count = offset_of(split.end) - offset_of(split.start)
            return Reading(fetched=count, handed=count)
        fetched = min(available, self._rng.randint(1, 8), split.limits.rows)
        handed = self._rng.randint(1, fetched) if fetched and self._rng.random() < 0.3 else fetched
        return Reading(fetched=fetched, handed=handed)

    def _end(self, start: int, reading: Reading) -> int:
        return start + reading.handed

    def _staged(self, rows: list[Row]) -> StagedFile:
        path = self._file_name()
        self._written[path] = rows
        self._write_file(path, rows)
        return StagedFile(path=path, rows=len(rows), size_bytes=8 * len(rows))

    def _file_name(self) -> str:
        self._attempts += 1
        return f"data/{self._attempts:06d}-{self._rng.getrandbits(32):08x}.rows"

    def _trouble(self) -> bool:
        return self._rng.random() < self.faults
