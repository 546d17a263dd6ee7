"""What executors do with the splits of two sources: rows of both have the columns of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from lading.model.batch import Split
from lading.model.pairs import side_of
from lading.sources.hidden import HIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReader:
    """One of the two."""

    read: Callable[[Sequence[Split]], Iterator[Any]]
    columns: Mapping[str, str]
    """What its columns are called in the pair."""


def read_pair(
    readers: Mapping[str, SideReader], schema: pa.Schema, splits: Sequence[Split]
) -> Iterator[pa.RecordBatch | Any]:
    """For each split in turn: rows, with nothing in the columns of the other side, and its end."""
    for side, own in groupby(splits, key=lambda split: side_of(split.partition)[0]):
        reader = readers[side]
        named = [replace(split, partition=side_of(split.partition)[1]) for split in own]
        # Split numbers of a source count from 0 only among its own; readers do not ask for them.
        for item in reader.read(named):
            yield _widened(item, reader.columns, schema) if isinstance(item, pa.RecordBatch) else item


def _widened(batch: pa.RecordBatch, columns: Mapping[str, str], schema: pa.Schema) -> pa.RecordBatch:
    own = {called: batch.column(name) for name, called in columns.items()}
    arrays = [
        own[field.name].cast(field.type) if field.name in own else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    hidden = [batch.column(field.name) for field in HIDDEN]
    return pa.RecordBatch.from_arrays([*arrays, *hidden], schema=pa.schema([*schema, *HIDDEN]))
