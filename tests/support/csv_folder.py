"""The smallest real source: CSV files in a local folder, read with pyarrow and staged in this process.

It is enough to show and to crash-test the commit on real tables without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from lading.ids import Incarnation
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.model.tally import RowCounts
from lading.tables.base import Writer

OpenWriter = Callable[[str], Writer]
"""attempt → writer"""


class CsvFolder:
    """A folder as one partition; the position is the name of the last file that was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, start: str) -> Positions:
        return Positions(partitions={str(self._folder): PartitionState(at=BEGINNING)})

    def list_partitions(self) -> Listing:
        return Listing(partitions={str(self._folder): ListedPartition()})

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        splits: list[Split] = []
        for partition, state in ready.items():
            names = sorted(path.name for path in self._folder.glob("*.csv") if path.name > state.at)
            for before, name in zip([state.at, *names], names[: limits.files], strict=False):
                splits.append(Split(number=len(splits), partition=partition, start=before, end=name))
        return tuple(splits)


class CsvStager:
    """Reads whole files; rows whose amount is no number are bad rows."""

    def __init__(self, folder: Path, open_writer: OpenWriter, incarnation: Incarnation) -> None:
        self._folder = folder
        self._open_writer = open_writer
        self._incarnation = incarnation
        self._attempts = 0

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return [self._report(split) for split in plan.splits]

    def _report(self, split: Split) -> Report:
        path = self._folder / (split.end or "")
        rows = pacsv.read_csv(path, convert_options=pacsv.ConvertOptions(column_types={"amount": pa.string()}))
        is_number = pc.match_substring_regex(rows["amount"], r"^\d+\.\d\d$")
        good = rows.filter(is_number)
        amount = pc.cast(good["amount"], pa.decimal128(10, 2))
        good = good.set_column(good.schema.get_field_index("amount"), "amount", amount)
        self._attempts += 1
        writer = self._open_writer(f"{self._incarnation}-{self._attempts}")
        for batch in good.combine_chunks().to_batches():
            writer.write(batch)
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end or split.start,
            files=writer.close(),
            rows=RowCounts(total=rows.num_rows, loaded=good.num_rows, error=rows.num_rows - good.num_rows),
            received_bytes=path.stat().st_size,
            source_files=1,
            source_bytes=path.stat().st_size,
        )
