"""The hidden columns beside the columns of a source, as Arrow has them."""

from __future__ import annotations

import pyarrow as pa

from lading.model.rows import ERROR, FILE, RAW, REST, ROW

HIDDEN = pa.schema([(FILE, pa.string()), (ROW, pa.int64()), (RAW, pa.binary()), (ERROR, pa.string())])
"""`__file` and `__row` say where a row is from; `__raw` and `__error` are null for good rows. `__row` counts the
records of a file from 1, bad ones too, but no header and no blank line."""


def without_hidden(schema: pa.Schema, *, keeps_rest: bool = False) -> pa.Schema:
    """The columns of the source alone; `__rest` is one where rows keep it."""
    return pa.schema([field for field in list(schema)[: -len(HIDDEN)] if keeps_rest or field.name != REST])
