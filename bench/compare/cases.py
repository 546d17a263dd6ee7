"""What is loaded: the cases, and the files of each."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.scale import SCALE, scaled

NOTE = "a remark that no column of the table takes"
"""It makes a row about 62 bytes of CSV, and 400,000 rows 25 MB."""
_OLD_S = 1_700_000_000
"""When files were modified: long ago, so that nobody waits for their writers."""
WIDE = {f"c{number:03}": ("BIGINT", "STRING", "DECIMAL(10,2)")[number % 3] for number in range(197)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many files of so many rows."""

    name: str
    title: str
    form: str
    ending: str
    files: int
    rows: int
    """Of each file."""
    is_wide: bool = False

    @property
    def extra(self) -> dict[str, str]:
        return WIDE if self.is_wide else {}

    @property
    def total(self) -> int:
        return self.files * self.rows

    def write(self, folder: Path) -> Path:
        """All of its files."""
        folder.mkdir(parents=True)
        for number in range(self.files):
            first = number * self.rows
            place = folder / f"{number:06d}.{self.ending}"
            _WRITERS[self.ending](place, range(first, first + self.rows), self.extra)
            os.utime(place, (_OLD_S, _OLD_S))
        return folder


def cases() -> dict[str, Case]:
    """By name. The scale makes files shorter; small files it makes fewer."""
    rows = scaled(400_000, least=100)
    listed = (
        Case(name="csv", title=f"16 CSV files of {25 * SCALE:g} MB", form="csv", ending="csv", files=16, rows=rows),
        Case(name="json", title="the same as JSON lines", form="json", ending="json", files=16, rows=rows),
        Case(name="parquet", title="the same as Parquet", form="parquet", ending="parquet", files=16, rows=rows),
        Case(name="gzip", title="the same as gzip CSV", form="csv", ending="csv.gz", files=16, rows=rows),
        Case(
            name="small",
            title=f"{scaled(2000):,} CSV files of 200 rows",
            form="csv",
            ending="csv",
            files=scaled(2000),
            rows=200,
        ),
        Case(
            name="wide",
            title="16 CSV files, 200 columns",
            form="csv",
            ending="csv",
            files=16,
            rows=rows // 20,
            is_wide=True,
        ),
    )
    return {case.name: case for case in listed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What must be in the table."""

    rows: int
    ids: int
    amounts: Decimal
    cities: int
    """Rows whose city is the capital form of the right one."""


def expected(total: int) -> Result:
    """What the mapping makes of the rows 0 to total - 1, by arithmetic."""
    rows, ids, amounts = 0, 0, Decimal(0)
    for rest in (rest for rest in range(1000) if rest % 100 != 7):
        count = len(range(rest, total, 1000))
        rows += count
        ids += sum((rest * count, 1000 * count * (count - 1) // 2))
        amounts += count * (Decimal(rest) + Decimal("0.50")) * Decimal("1.1")
    return Result(rows=rows, ids=ids, amounts=amounts.quantize(Decimal("0.01")), cities=rows)


def _cell(number: int, position: int, kind: str) -> str:
    value = (number * 31 + position) % 100_000
    return f"text {value}" if kind == "STRING" else f"{value}.25" if kind.startswith("DECIMAL") else str(value)


def _csv(numbers: range, extra: dict[str, str]) -> bytes:
    """Amounts end in .50: times 1.1 they have two decimals, so that nobody's rounding matters."""
    head = ",".join(["id", "city", "amount", "note", *extra])
    if not extra:
        lines = (f"{n},city {n % 100},{n % 1000}.50,{NOTE}" for n in numbers)
    else:
        kinds = list(enumerate(extra.values()))
        lines = (
            f"{n},city {n % 100},{n % 1000}.50,{NOTE}," + ",".join(_cell(n, at, kind) for at, kind in kinds)
            for n in numbers
        )
    return ("\n".join([head, *lines]) + "\n").encode()


def _write_csv(place: Path, numbers: range, extra: dict[str, str]) -> None:
    place.write_bytes(_csv(numbers, extra))


def _write_gzip(place: Path, numbers: range, extra: dict[str, str]) -> None:
    with gzip.open(place, "wb", compresslevel=6) as file:
        shutil.copyfileobj(io.BytesIO(_csv(numbers, extra)), file)


def _write_json(place: Path, numbers: range, extra: dict[str, str]) -> None:
    place.write_text(
        "".join(
            f'{{"id": {n}, "city": "city {n % 100}", "amount": {n % 1000}.50, "note": "{NOTE}"}}\n' for n in numbers
        )
    )


def _write_parquet(place: Path, numbers: range, extra: dict[str, str]) -> None:
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "city": pa.array([f"city {n % 100}" for n in numbers]),
            "amount": pa.array([Decimal(f"{n % 1000}.50") for n in numbers], pa.decimal128(10, 2)),
            "note": pa.array([NOTE] * len(numbers)),
        }
    )
    pq.write_table(table, place)


_WRITERS: dict[str, Callable[[Path, range, dict[str, str]], None]] = {
    "csv": _write_csv,
    "csv.gz": _write_gzip,
    "json": _write_json,
    "parquet": _write_parquet,
}
