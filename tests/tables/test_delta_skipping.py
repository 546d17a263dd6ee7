"""Statistics of Lading's files, as Spark uses them: WHERE c = v with data skipping finds what a full scan finds."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lading.model.table import Column, TableSpec
from tests.support.jvm_engine import JvmEngine
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig_delta import delta_local

LAST, NAN, INF = chr(0x10FFFF), float("nan"), float("inf")
LONG = "x" * 31
TEXTS = [
    *("", "a", LONG + "y", LONG + "yz", LONG + "y" + LAST, LONG + LAST, LONG + LAST + "a", LAST * 40, "\ud7ff" * 33),
    *("\ue000" * 33, "😀" * 16, "😀" * 33, LONG + "😀" + "b", "\uffff" * 32 + "q", "z" * 31 + "\x7f" + "tail"),
    *("quote ' \" \\ \n \t", "e\u0301" * 20, " trailing ", None),
]
DOUBLES = [NAN, 0.0, -0.0, INF, -INF, 1.7976931348623157e308, 5e-324, -5e-324, 0.1, 9007199254740993.0, None]
FLOATS = [NAN, 0.0, -0.0, INF, -INF, 3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612, None]
MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1582, 10, 15, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 59, 999001, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC),
    datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    None,
]
DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 10), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)]
BIG = Decimal("9999999999999999999999999999.9999999999")
VALUES: dict[str, tuple[str, list[Any]]] = {
    "text": ("string", TEXTS),
    "double": ("double", DOUBLES),
    "float": ("float", FLOATS),
    "decimal": (
        "decimal(38,10)",
        [BIG, BIG.copy_negate(), Decimal("0E-10"), Decimal("0.0000000001"), Decimal("-1.5000000000"), None],
    ),
    "small": ("decimal(5,2)", [Decimal("999.99"), Decimal("-999.99"), Decimal("0.10"), None]),
    "day": ("date", [*DAYS, None]),
    "moment": ("timestamp", MOMENTS),
    "plain": ("timestamp_ntz", [each.replace(tzinfo=None) if each else None for each in MOMENTS]),
    "tiny": ("tinyint", [-128, 0, 127, None]),
    "short": ("smallint", [-32768, 0, 32767, None]),
    "number": ("int", [-(2**31), 0, 2**31 - 1, None]),
    "long": ("bigint", [-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1, None]),
    "bytes": ("binary", [b"", b"\x00", b"\xff" * 40, b"\x80abc", None]),
    "flag": ("boolean", [True, False, None]),
    "nothing": ("string", [None]),
}
NAMES = list(VALUES)


def literal(value: Any, kind: str) -> str:
    """The value for Spark SQL."""
    if isinstance(value, str):
        return f"decode(X'{value.encode().hex()}', 'UTF-8')"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        text = f"{value.year:04d}-{value:%m-%d %H:%M:%S}.{value.microsecond:06d}"
        return f"TIMESTAMP'{text}Z'" if kind == "timestamp" else f"TIMESTAMP_NTZ'{text}'"
    if isinstance(value, date):
        return f"DATE'{value.year:04d}-{value:%m-%d}'"
    return f"CAST('{value}' AS {kind})"


def make(folder: Path) -> int:
    """Each value in a file of its own, and then all of them in one. How many files."""
    rig = delta_local(folder, None)
    columns = tuple(Column(name=name, type=kind) for name, (kind, _) in VALUES.items())
    table, job = rig.create("t", TableSpec(columns=columns)), new_job()
    most = max(len(values) for _, values in VALUES.values())
    every = {name: [values[at % len(values)] for at in range(most)] for name, (_, values) in VALUES.items()}
    schema = pa.schema([field.with_nullable(True) for field in table.schema()])  # type: ignore[attr-defined]
    rows = pa.table({name: pa.array(every[name], schema.field(name).type) for name in NAMES}, schema=schema)
    bill = opening(job)
    put_and_commit(table, bill)
    files = [file for at in range(most) for file in rig.stage(table, rows.slice(at, 1), f"a{at}")]
    bill = load(job, bill, [*files, *rig.stage(table, rows, "all")])
    put_and_commit(table, bill)
    return len(bill.files)


def answers(jvm: JvmEngine, place: Path, name: str, *, skips: bool) -> list[int]:
    kind, values = VALUES[name]
    jvm.sql(f"SET spark.databricks.delta.stats.skipping = {str(skips).lower()}")
    tests = [
        f"{name} {sign} {literal(value, kind)}" for value in values if value is not None for sign in ("=", "<=", ">=")
    ]
    tests += [f"{name} IS NULL", f"{name} IS NOT NULL"]
    if kind == "string":
        tests += [f"startswith({name}, {literal(value[:20], kind)})" for value in values if value]
    parts = [f"SELECT {at} AS at, count(*) AS n FROM delta.`{place}` WHERE {test}" for at, test in enumerate(tests)]
    rows = jvm.sql(f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY at")
    assert [row["at"] for row in rows] == list(range(len(tests)))
    return [row["n"] for row in rows]


def check(jvm: JvmEngine, folder: Path, names: list[str]) -> None:
    count = make(folder)
    place = folder / "lake" / "t"
    try:
        for name in names:
            found = answers(jvm, place, name, skips=True)
            assert found == answers(jvm, place, name, skips=False), name
            assert name == "nothing" or all(found), name
    finally:
        jvm.sql("SET spark.databricks.delta.stats.skipping = true")
    if "long" in names:
        (row,) = jvm.sql(f"SELECT min(long) a, max(long) b, count(*) n FROM delta.`{place}`")
        assert (row["a"], row["b"], row["n"]) == (-(2**63), 2**63 - 1, 2 * (count - 1))


def test_skipping_finds_texts_and_numbers_at_the_edges(tmp_path: Path, jvm: JvmEngine) -> None:
    check(jvm, tmp_path, ["double", "moment"])


@pytest.mark.slow
def test_skipping_finds_every_type_at_the_edges(tmp_path: Path, jvm: JvmEngine) -> None:
    check(jvm, tmp_path, NAMES)
