"""Statistics of data files: what they let a reader pass over has no row that it looks for. For values at the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isinf, isnan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import BooleanExpression, EqualTo, Reference
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator

from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.types import arrow_schema
from tests.support.jvm_engine import JvmEngine
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig_iceberg import IcebergRig, iceberg_local

LAST = "\U0010ffff"
EDGES: dict[str, tuple[str, list[Any]]] = {
    "i": ("int", [-(2**31), -1, 0, 2**31 - 1]),
    "b": ("bigint", [-(2**63), -1, 0, 2**63 - 1]),
    "f": (
        "float",
        [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 3.4028234663852886e38, 1.401298464324817e-45],
    ),
    "d": ("double", [float("nan"), float("inf"), -0.0, 0.0, 1.7976931348623157e308, 5e-324, -1.5]),
    "p": ("decimal(5,2)", [Decimal("-999.99"), Decimal("0.00"), Decimal("999.99"), Decimal("-0.01")]),
    "q": ("decimal(38,10)", [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001")]),
    "s": (
        "string",
        [
            "",
            "a" * 15,
            "a" * 16,
            "a" * 17,
            "a" * 40,
            LAST * 20,
            "a" * 15 + "\ud7ff" + "z",
            "a" * 15 + LAST + "b",
            "\uffff" * 20,
            "é" * 30,
            "🙂" * 17,
            "\x00",
            "a\x00b",
            "'\\%_",
        ],
    ),
    "x": ("binary", [b"", b"\x00", b"\xff" * 20, b"a" * 16 + b"\xff", b"\x7f\x80"]),
    "day": ("date", [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1969, 12, 31), date(9999, 12, 31)]),
    "at": (
        "timestamp",
        [
            datetime(1, 1, 2, tzinfo=UTC),
            datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 30, tzinfo=UTC),
        ],
    ),
    "plain": ("timestamp_ntz", [datetime(1, 1, 1), datetime(1900, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23)]),  # noqa: DTZ001 - a time without a zone
    "yes": ("boolean", [True, False]),
}
ROWS = max(len(values) for _, values in EDGES.values()) + 1
"""Each row in a file of its own; the last one is NULL throughout, and one more file has all of them."""
BY = (
    PartitionField(column="s", transform="truncate[2]"),
    PartitionField(column="q", transform="bucket[4]"),
    PartitionField(column="day", transform="month"),
    PartitionField(column="at", transform="day"),
    PartitionField(column="i", transform="truncate[10]"),
    PartitionField(column="plain", transform="hour"),
    PartitionField(column="x", transform="truncate[3]"),
)


def spec(partition_by: Sequence[PartitionField] = ()) -> TableSpec:
    columns = tuple(Column(name=name, type=kind) for name, (kind, _) in EDGES.items())
    return TableSpec(columns=columns, partition_by=tuple(partition_by))


def rows() -> pa.Table:
    columns = {name: [*values, *[None] * (ROWS - len(values))] for name, (_, values) in EDGES.items()}
    return pa.table(columns, schema=arrow_schema(spec()))


def fill(rig: IcebergRig, partition_by: Sequence[PartitionField] = ()) -> None:
    table, job, made = rig.create("t", spec(partition_by)), new_job(), rows()
    first = opening(job)
    put_and_commit(table, first)
    staged = [file for at in range(ROWS) for file in rig.stage(table, made.slice(at, 1), f"a{at}")]
    staged += rig.stage(table, made, "all")
    put_and_commit(table, load(job, first, tuple(staged)))
    table.close()


def wanted(name: str, value: Any) -> BooleanExpression:
    return EqualTo(term=Reference(name), value=value)


def test_no_file_is_passed_over_that_has_the_value(tmp_path: Path) -> None:
    """As PyIceberg's readers do it, whose rules are those of the JVM."""
    rig = iceberg_local(tmp_path, None)
    fill(rig)
    table = rig.stranger("t")
    passed = 0
    for task in table.scan().plan_files():
        held = pq.read_table(task.file.file_path.removeprefix("file://"))
        for name, (kind, values) in EDGES.items():
            for value in values:
                if isinstance(value, float) and (isnan(value) or (kind == "float" and isinf(value))):
                    continue  # NaN is asked for by IS NAN. PyIceberg takes an infinite float for one that cannot be.
                may = _InclusiveMetricsEvaluator(table.schema(), wanted(name, value)).eval(task.file)
                has = any(found is not None and found == value for found in held[name].to_pylist())
                assert may or not has, (name, value, task.file.file_path)
                passed += not may
    assert passed > 500, "nothing would be passed over"


@pytest.mark.parametrize(
    ("partition_by", "asked_of"),
    [
        pytest.param((), ("d", "s", "q"), id="quick"),
        pytest.param((), tuple(EDGES), id="plain", marks=pytest.mark.slow),
        pytest.param(BY, tuple(EDGES), id="partitioned", marks=pytest.mark.slow),
    ],
)
def test_the_jvm_finds_what_a_full_scan_finds(
    tmp_path: Path, jvm: JvmEngine, partition_by: Sequence[PartitionField], asked_of: Sequence[str]
) -> None:
    rig = iceberg_local(tmp_path, None)
    fill(rig, partition_by)
    wrong: list[Mapping[str, Any]] = []
    for name in asked_of:
        kind, values = EDGES[name]
        asked = [f"`{name}` = {sql(value, kind)}" for value in values] + [f"`{name}` IS NULL"]
        if partition_by:
            asked += [
                f"`{name}` {sign} {sql(value, kind)}" for value in values for sign in (">=", "<=", "<", ">", "!=")
            ]
        counts = [f"count_if({condition}) c{at}" for at, condition in enumerate(asked)]
        (whole,) = jvm.sql(f"SELECT {', '.join(counts)} FROM lading.lake.t", tmp_path / "home")
        parts = [
            f"SELECT {at} at, count(*) n FROM lading.lake.t WHERE {condition}" for at, condition in enumerate(asked)
        ]
        found = {row["at"]: row["n"] for row in jvm.sql(" UNION ALL ".join(parts), tmp_path / "home")}
        wrong += [
            {"asked": condition, "found": found[at], "there": whole[f"c{at}"]}
            for at, condition in enumerate(asked)
            if found[at] != whole[f"c{at}"]
        ]
        assert all(found[at] for at in range(len(values) + 1)), (name, found)
    assert wrong == (as_the_jvm_has_it(jvm, tmp_path / "home", wrong) if partition_by else [])


def as_the_jvm_has_it(jvm: JvmEngine, home: Path, wrong: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The same of a table that the JVM wrote itself: its smallest integer is in a partition behind all others, since
    truncate wraps there, and its own readers pass over that in ranges.
    """
    own = "lading.lake.own"
    jvm.sql(f"CREATE TABLE {own} USING iceberg PARTITIONED BY (truncate(10, i)) AS SELECT i FROM lading.lake.t", home)
    found = list[Mapping[str, Any]]()
    for each in wrong:
        ((count,),) = (row.values() for row in jvm.sql(f"SELECT count(*) n FROM {own} WHERE {each['asked']}", home))
        found.append({**each, "found": count})
    return found


def sql(value: Any, kind: str) -> str:
    """A literal of Spark."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"CAST('{value!r}' AS {kind})"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return "'" + "".join(f"\\u{ord(unit):04x}" for unit in _units(value)) + "'"
        case datetime():
            return f"{kind}'{value.isoformat(sep=' ')}'"
        case date():
            return f"date'{value.isoformat()}'"
    return f"CAST('{value}' AS {kind})"


def _units(text: str) -> list[str]:
    """As UTF-16, in which literals of Spark are written."""
    packed = text.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(packed[at : at + 2], "big")) for at in range(0, len(packed), 2)]
