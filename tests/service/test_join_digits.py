"""Keys of many digits: compared exactly, or refused by CREATE."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import SqlError
from lading.service.facade import Lading

KINDS = {
    "text": (pa.string(), "1"),
    "whole": (pa.int64(), 1),
    "price": (pa.decimal128(10, 2), Decimal(1)),
    "big": (pa.decimal128(38, 0), Decimal(1)),
    "big_too": (pa.decimal128(30, 4), Decimal(1)),
    "fine": (pa.decimal128(38, 30), Decimal(1)),
}
LONG = (("text", "big", "DECIMAL(38,0)"), ("fine", "text", "DECIMAL(38,30)"))
EXACT = (
    ("text", "whole", "decimal(38,18)"),
    ("price", "text", "decimal(38,18)"),
    ("big", "big", "decimal(38,0)"),
    ("big", "big_too", "decimal(38,4)"),
    ("whole", "price", "decimal(38,2)"),
    ("whole", "whole", "bigint"),
    ("text", "text", "string"),
)


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    (tmp_path / "in").mkdir()
    rows = {
        "at": [datetime(2026, 1, 1, tzinfo=UTC)],
        **{name: pa.array([value], kind) for name, (kind, value) in KINDS.items()},
    }
    pq.write_table(pa.table(rows), tmp_path / "in" / "1.parquet")
    with Lading(tmp_path / "home") as made:
        made.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT) USING delta")
        made.sql("CREATE TABLE d (big DECIMAL(38,0), whole BIGINT, price DECIMAL(10,2)) USING delta")
        yield made


def streams(path: Path, one: str, other: str) -> str:
    source = f'FILE("uri"="{path}/in/*.parquet", "format"="parquet")'
    return (
        'CREATE JOB j PROPERTIES("watermark.column"="a.at, b.at") ON STREAMING DO INSERT INTO t SELECT a.whole '
        f"FROM {source} AS a JOIN {source} AS b ON a.{one} = b.{other} AND b.at = a.at"
    )


@pytest.mark.parametrize(("one", "other", "kind"), LONG)
def test_a_text_and_a_longer_number_of_two_streams_are_refused(
    lading: Lading, tmp_path: Path, one: str, other: str, kind: str
) -> None:
    with pytest.raises(SqlError, match=r"is a text and is compared with a DECIMAL\(38,.*20 digits before the point"):
        lading.sql(streams(tmp_path, one, other))
    named = streams(tmp_path, one, other).replace(".text ", f".text AS {kind}) ").replace("a.text AS", "CAST(a.text AS")
    lading.sql(named.replace("b.text AS", "CAST(b.text AS"))


@pytest.mark.parametrize(("one", "other", "kind"), EXACT)
def test_other_keys_are_compared_in_a_type_that_holds_what_both_can_be(
    lading: Lading, tmp_path: Path, one: str, other: str, kind: str
) -> None:
    lading.sql(streams(tmp_path, one, other))
    compiled, _ = lading.compile(lading.job("j"), is_trial=True)
    assert compiled.stage is not None
    mapping = compiled.stage.mapping
    assert [column.type for column in mapping.columns if column.name in (mapping.keys or ())] == [kind]
    compiled.source.close()


def test_a_text_and_a_longer_number_of_a_table_are_refused(lading: Lading, tmp_path: Path) -> None:
    text = (
        "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT s.whole "
        f'FROM FILE("uri"="{tmp_path}/in/*.parquet", "format"="parquet") AS s JOIN d ON '
    )
    for long in ("s.text = d.big", "s.text = 123456789012345678901 AND s.whole = d.whole"):
        with pytest.raises(SqlError, match=r"s\.text is a text and is compared with a DECIMAL"):
            lading.sql(text + long)
    lading.sql(f"{text} s.text = d.whole AND s.text = d.price AND CAST(s.text AS DECIMAL(38,0)) = d.big")
