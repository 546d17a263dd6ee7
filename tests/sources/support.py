"""Writing files in all shapes, and reading splits back as plain rows."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa

from lading.model.batch import Limits, Split
from lading.model.positions import PartitionState, Positions
from lading.model.rows import SplitEnd
from lading.sources.files.kind import files_spec_of
from lading.sources.files.properties import read_file_source
from lading.sources.files.reader import output_schema, read_split
from lading.sources.files.schema import infer_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec
from lading.sql.properties.jobs import JOB_PROPERTY_NAMES, read_job_properties
from lading.sql.statements.load_specs import intake_of
from lading.testing.marked import secret
from tests.tables.s3_server import S3Server

Row = dict[str, Any]
BIG = Limits(files=10**6, size_bytes=2**60)


def bare_spec_of(**properties: str) -> FilesSpec:
    """A spec without columns, as a job with these properties would have it; csv unless they say otherwise."""
    job = {name: value for name, value in properties.items() if name in JOB_PROPERTY_NAMES}
    rest = {name: value for name, value in properties.items() if name not in job}
    source = read_file_source("FILE", {"format": "csv", **rest})
    return files_spec_of(source, intake_of(read_job_properties(job)))


def spec_of(**properties: str) -> FilesSpec:
    """A spec with the columns of its first file."""
    found = infer_schema(bare_spec_of(**properties))
    assert found is not None
    return found


def with_columns(spec: FilesSpec, *names: str) -> FilesSpec:
    return replace(spec, schema=pa.schema([pa.field(name, pa.string()) for name in names]))


def read_all(spec: FilesSpec, splits: Iterable[Split]) -> tuple[list[Row], list[SplitEnd]]:
    """All rows in the order they came, and the ends of all splits."""
    rows: list[Row] = []
    ends: list[SplitEnd] = []
    for split in splits:
        seen = 0
        for item in read_split(spec, split):
            if isinstance(item, SplitEnd):
                ends.append(item)
            else:
                assert item.schema.equals(output_schema(spec))
                seen += item.num_rows
                rows += item.to_pylist()
        assert ends[-1].rows == seen
        assert ends[-1].end == split.end
    return rows, ends


def load(spec: FilesSpec) -> list[Row]:
    """Everything there is, sorted by file and row."""
    source = FilesSource(spec)
    rows, _ = read_all(spec, source.plan(source.open("").partitions, BIG))
    return sorted(rows, key=lambda row: (row["__file"], row["__row"]))


def values(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """The source columns of good rows."""
    return [tuple(v for k, v in row.items() if not k.startswith("__")) for row in rows if row["__error"] is None]


def errors(rows: Iterable[Row]) -> list[tuple[int, bytes, str]]:
    return [(row["__row"], row["__raw"], row["__error"]) for row in rows if row["__error"] is not None]


class Job:
    """A job as the coordinator would run it: positions move only when a batch is read to its end."""

    def __init__(self, spec: FilesSpec, start: str = "") -> None:
        self.spec = spec
        self.source = FilesSource(spec)
        self.positions = self.source.open(start)

    @property
    def state(self) -> PartitionState:
        return self.positions.partitions[self.source.partition]

    def plan(self, limits: Limits = BIG) -> tuple[Split, ...]:
        ready = {name: state for name, state in self.positions.partitions.items() if not state.finished}
        return self.source.plan(ready, limits)

    def run(self, limits: Limits = BIG) -> list[Row]:
        """One batch, committed."""
        splits = self.plan(limits)
        rows, ends = read_all(self.spec, splits)
        for split, end in zip(splits, ends, strict=True):
            assert split.start == self.state.at
            marks = {**self.state.marks, **end.marks}
            moved = replace(self.state, at=end.end, finished=end.finished, marks=marks)
            self.positions = Positions(partitions={self.source.partition: moved})
        return rows

    def files(self, limits: Limits = BIG) -> list[str]:
        """Names of the files that one batch loads, without folders."""
        return [row["__file"].rpartition("/")[2] for row in self.run(limits)]


def pack(content: bytes, compression: str) -> bytes:
    """Bytes as a tool of that name would pack them."""
    if compression == "plain":
        return content
    if compression == "gz":
        return gzip.compress(content)
    if compression == "bz2":
        return bz2.compress(content)
    if compression == "deflate":
        return zlib.compress(content)
    if compression == "snappy":
        return b"".join(_hadoop(content, "snappy"))
    if compression == "lz4block":
        return b"".join(_hadoop(content, "lz4_raw"))
    if compression == "snappy_framed":
        return b"".join(_framed(content))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def _hadoop(content: bytes, codec: str, size: int = 50_000) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        piece = content[at : at + size]
        packed = pa.Codec(codec).compress(piece, asbytes=True)
        yield struct.pack(">II", len(piece), len(packed)) + packed


def _framed(content: bytes, size: int = 50_000) -> Iterator[bytes]:
    yield b"\xff\x06\x00\x00sNaPpY"
    yield b"\xfe\x03\x00\x00abc"
    for number, at in enumerate(range(0, len(content), size)):
        piece = content[at : at + size]
        packed = piece if number % 2 else pa.Codec("snappy").compress(piece, asbytes=True)
        body = b"\0\0\0\0" + packed
        yield bytes([number % 2]) + len(body).to_bytes(3, "little") + body


class Place:
    """A folder on the disk or a prefix in a bucket, for tests that run on both."""

    def __init__(self, root: Path | S3Server) -> None:
        self._root = root
        self.properties: dict[str, str] = {}
        if isinstance(root, Path):
            self.uri = f"file://{root}"
            return
        self._bucket = root.make_bucket()
        self._s3 = boto3.client(
            "s3",
            endpoint_url=root.endpoint,
            region_name="us-east-1",
            aws_access_key_id=secret("owner"),
            aws_secret_access_key=secret("owner"),
        )
        self.uri = f"s3://{self._bucket}/in"
        self.properties = {
            "s3.endpoint": root.endpoint,
            "s3.region": "us-east-1",
            "s3.access_key": secret("access"),
            "s3.secret_key": secret("key"),
            "use_path_style": "true",
        }

    def put(self, key: str, content: bytes) -> None:
        if isinstance(self._root, Path):
            path = self._root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        else:
            self._s3.put_object(Bucket=self._bucket, Key=f"in/{key}", Body=content)

    def delete(self, key: str) -> None:
        if isinstance(self._root, Path):
            (self._root / key).unlink()
        else:
            self._s3.delete_object(Bucket=self._bucket, Key=f"in/{key}")

    def spec(self, glob: str, **properties: str) -> FilesSpec:
        return spec_of(**{"uri": f"{self.uri}/{glob}", **self.properties, **properties})

    def bare(self, glob: str, **properties: str) -> FilesSpec:
        """A spec without columns."""
        return bare_spec_of(**{"uri": f"{self.uri}/{glob}", **self.properties, **properties})
