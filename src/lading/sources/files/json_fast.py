"""JSON lines through pyarrow, for blocks where pyarrow and `json_text` cannot differ. None: take the slow way.

pyarrow wants to know the type of each column. It is learnt from the rows that went the slow way before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from lading.model.row_formats import JsonOptions
from lading.sources.files.json_numbers import NumberQuotes, can_quote
from lading.sources.files.jsonpath import parse_jsonpath

_MINUS_ZERO = re.compile(rb"-0(?![.\d])")
_MAX_FAILURES = 3
_NUMBERS = (pa.int64(), pa.float64())


class FastJson:
    """Parses blocks of whole lines."""

    def __init__(self, options: JsonOptions, names: Sequence[str]) -> None:
        self._keys = _keys(options, names)
        self._kinds: dict[str, pa.DataType | None] = {}
        self._failures = 0
        self._quotes = NumberQuotes(())
        self._quoted: set[str] = set()
        """Keys whose numbers have fractions: they come as texts."""
        self._has_paths = bool(options.jsonpaths)
        simple = options.read_by_line and not options.json_root and not options.strip_outer_array
        self._is_possible = simple and self._keys is not None

    @property
    def is_possible(self) -> bool:
        return self._is_possible

    def learn(self, documents: Sequence[bytes]) -> None:
        """Look at some documents. A column with values of several kinds, or nested ones, closes the fast way."""
        text = b"\n".join(documents)
        options = pajson.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            table = pajson.read_json(pa.BufferReader(text), read_options=options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            self._failures += 1
            self._is_possible = self._is_possible and self._failures < _MAX_FAILURES
            return
        for key in self._keys or ():
            if key in table.column_names:
                self._note(key, table.schema.field(key).type)

    def parse(self, block: bytes) -> list[pa.Array] | None:
        """One column of strings per column of the job."""
        if not self._is_possible or not self._kinds or not self._keys:
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if not _is_safe(block):
            return None
        block = self._quotes.put(block)
        schema = pa.schema([(key, self._kinds.get(key) or pa.string()) for key in self._keys])
        try:
            table = pajson.read_json(
                pa.BufferReader(block),
                read_options=pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != block.count(b"\n") + (not block.endswith(b"\n")):
            return None
        columns = [_text(table.column(key)) for key in self._keys]
        return None if self._has_paths and _has_empty_row(columns) else columns

    def _note(self, key: str, kind: pa.DataType) -> None:
        old = self._kinds.get(key)
        if key in self._quoted and kind in _NUMBERS:
            return
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
            kind = pa.string()  # What Arrow takes for a time is a string in JSON.
        if pa.types.is_null(kind) or kind == old:
            return
        if old is not None and not (kind in _NUMBERS and old in _NUMBERS):
            self._is_possible = False
        elif kind == pa.float64():
            self._kinds[key] = pa.string()
            self._quoted.add(key)
            self._quotes = NumberQuotes(sorted(self._quoted))
            self._is_possible = self._is_possible and can_quote(key)
        elif kind in (pa.int64(), pa.string(), pa.bool_()):
            self._kinds[key] = kind
        else:
            self._is_possible = False


def _keys(options: JsonOptions, names: Sequence[str]) -> list[str] | None:
    """The key of each column at the top of a document; None where one lies deeper or is taken twice."""
    keys = list(names)
    if options.jsonpaths:
        paths = [parse_jsonpath(path) for path in options.jsonpaths]
        keys = [path[0] for path in paths if len(path) == 1 and isinstance(path[0], str)]
        if len(keys) < len(paths):
            return None
    return keys if len(set(keys)) == len(keys) else None


def _is_safe(block: bytes) -> bool:
    """Whether each line is one document, and nothing is in it that pyarrow takes and JSON does not."""
    # One letter is found much faster than several, and most blocks have none of these.
    if b"\r" in block or (b"N" in block and b"NaN" in block) or (b"I" in block and b"Inf" in block):
        return False
    if b"-" in block and _MINUS_ZERO.search(block):
        return False
    if block.count(b"}\n{") + block.endswith(b"\n") != block.count(b"\n") or not block.startswith(b"{"):
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _text(column: pa.ChunkedArray) -> pa.Array:
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def _has_empty_row(columns: Sequence[pa.Array]) -> bool:
    empty = None
    for column in columns:
        is_null = pc.is_null(column)
        empty = is_null if empty is None else pc.and_(empty, is_null)
    return empty is not None and bool(pc.any(empty).as_py())
