"""Every format in every compression, on the disk and in a bucket."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest

from tests.sources.support import Place, load, pack, values

COUNT = 5_000
ROWS = [(str(n), f"näme {n % 7}", None if n % 5 == 0 else f"{n}.25") for n in range(COUNT)]
TEXT = {
    "csv": "".join("\t".join("\\N" if v is None else v for v in row) + "\n" for row in ROWS),
    "csv_with_names": "id\tname\tamount\n"
    + "".join("\t".join("\\N" if v is None else v for v in row) + "\n" for row in ROWS),
    "csv_with_names_and_types": "id\tname\tamount\nint\tstring\tdouble\n"
    + "".join("\t".join("\\N" if v is None else v for v in row) + "\n" for row in ROWS),
    "json": "".join(json.dumps(dict(zip(("id", "name", "amount"), row, strict=True))) + "\n" for row in ROWS),
}
COMPRESSIONS = {
    "plain": "",
    "gz": ".gz",
    "zstd": ".zst",
    "bz2": ".bz2",
    "lz4": ".lz4",
    "snappy": ".snappy",
    "snappy_framed": ".snappy",
    "deflate": ".deflate",
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", TEXT)
def test_text_in_every_compression_by_suffix(folder: Place, kind: str, compression: str) -> None:
    folder.put(f"a.txt{COMPRESSIONS[compression]}", pack(TEXT[kind].encode(), compression))
    rows = load(folder.spec("*", format=kind))
    assert values(rows) == ROWS
    assert [row["__row"] for row in rows] == list(range(1, COUNT + 1))
    assert {row["__file"].rpartition("/")[2] for row in rows} == {f"a.txt{COMPRESSIONS[compression]}"}


@pytest.mark.parametrize("compression", [*COMPRESSIONS, "lz4block"])
def test_text_in_a_bucket_in_every_compression_by_property(place: Place, compression: str) -> None:
    place.put("a", pack(TEXT["csv"].encode(), compression))
    named = {"snappy_framed": "snappy", "plain": "none", "gz": "GZIP"}.get(compression, compression)
    assert values(load(place.spec("a", compress_type=named))) == ROWS


def table() -> pa.Table:
    ids = pa.array(range(COUNT), pa.int64())
    amounts = pa.array([None if n % 5 == 0 else n + 0.25 for n in range(COUNT)], pa.float64())
    tags = pa.array([[str(n)] for n in range(COUNT)], pa.list_(pa.string()))
    return pa.table({"id": ids, "name": [f"näme {n % 7}" for n in range(COUNT)], "amount": amounts, "tags": tags})


def parquet(content: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(content, sink, **options)
    return sink.getvalue()


def orc(content: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    paorc.write_table(content, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columnar_files_in_every_compression(place: Place, kind: str, compression: str) -> None:
    if kind == "parquet":
        content = parquet(table(), compression=compression, row_group_size=1_000)
    else:
        content = orc(table(), compression={"none": "uncompressed", "gzip": "zlib"}.get(compression, compression))
    place.put(f"a.{kind}", content)
    rows = load(place.spec(f"*.{kind}", format=kind))
    assert [row["__row"] for row in rows] == list(range(1, COUNT + 1))
    assert [(row["id"], row["name"], row["amount"], row["tags"]) for row in rows] == [
        tuple(row.values()) for row in table().to_pylist()
    ]


def test_types_that_spark_lacks_are_read_as_types_it_has(folder: Place) -> None:
    content = pa.table(
        {
            "u8": pa.array([200], pa.uint8()),
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "ns": pa.array([1_000], pa.timestamp("ns")),
            "local": pa.array([1_000], pa.timestamp("ms", tz="Europe/Berlin")),
            "dictionary": pa.array(["x"]).dictionary_encode(),
            "large": pa.array(["x"], pa.large_string()),
            "nested": pa.array([[{"x": 1}]], pa.large_list(pa.struct([("x", pa.uint16())]))),
        }
    )
    folder.put("a.parquet", parquet(content))
    spec = folder.spec("a.parquet", format="parquet")
    assert spec.schema is not None
    assert [str(kind) for kind in spec.schema.types] == [
        *("int16", "decimal128(20, 0)", "timestamp[us]", "timestamp[us, tz=UTC]", "string", "string"),
        "list<item: struct<x: int32>>",
    ]
    assert load(spec)[0]["nested"] == [{"x": 1}]


def test_folders_of_the_path_become_columns(place: Place) -> None:
    place.put("year=2025/month=3/a.csv", b"1\n")
    place.put("year=2025/month=__HIVE_DEFAULT_PARTITION__/b.csv", b"2\n")
    place.put("year=2026/month=a%20b/c.csv", b"3\n")
    rows = load(place.spec("**.csv", path_partition_keys="year, month"))
    assert sorted(values(rows)) == [("1", "2025", "3"), ("2", "2025", None), ("3", "2026", "a b")]
