"""Many JSON objects at once through pyarrow, where it cannot differ from `json_reference`. None: take another way.

pyarrow wants to know the type of each column. It is told what kinds of values the run before had.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from lading.sources.records.documents import DEEP_BYTES, SPACE, has_deep_line, may_be_deep
from lading.sources.records.line_shape import NUMBER, ShapedLines

_TYPES: dict[frozenset[type], pa.DataType] = {
    frozenset(): pa.string(),
    frozenset({str}): pa.string(),
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
}
_AS_TEXTS = frozenset({str, int, float})
"""Kinds that may stand in one column: their numbers are read as texts."""
_MAX_PAUSE = 64
_LEFT = rb"(?<=[\s:,\[-]%s)"
_STRANGE = [re.compile(word + _LEFT % word) for word in (b"NaN", b"Inf")]
"""What pyarrow takes for a number and JSON does not. Nearly the same words in strings are none."""
MINUS_ZERO = re.compile(rb"-0(?<=[\s:,\[]-0)(?=[\s,}\]])")
"""A number that several readers take for 0. The lookbehind stands behind what it looks at: so the search can jump."""
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.$@ -]+")


class FlatJson:
    """Reads runs of records that are one object each, of which the wanted values are not nested."""

    def __init__(self, keys: Sequence[str], *, needs_value: bool, keeps_rest: bool = False) -> None:
        self._keys = keys
        self._kinds: list[frozenset[type]] = [frozenset()] * len(keys)
        self._needs_value = needs_value
        # A field that nobody asked for must not get lost: such a run goes another way.
        self._unexpected = "error" if keeps_rest else "ignore"
        self._schema: pa.Schema | None = None
        self._quotes = NumberQuotes(())
        self._turns = _Turns()
        self._shape = ShapedLines(keys, keeps_rest=keeps_rest)
        self._had_shape = False
        self._shape_turns = _Turns()

    def learn(self, kinds: Sequence[set[type]]) -> None:
        """What values a run had that went another way, column by column."""
        self._kinds = [_merged(old, new) for old, new in zip(self._kinds, kinds, strict=True)]
        quoted = [
            key for key, kind in zip(self._keys, self._kinds, strict=True) if kind not in _TYPES and kind <= _AS_TEXTS
        ]
        types = [
            pa.string() if key in quoted else _TYPES.get(kind)
            for key, kind in zip(self._keys, self._kinds, strict=True)
        ]
        is_possible = None not in types and all(map(can_quote, quoted))
        self._schema = pa.schema(list(zip(self._keys, types, strict=True))) if is_possible else None
        self._quotes = NumberQuotes(quoted)

    def parse(self, values: Sequence[bytes]) -> list[pa.Array] | None:
        """One column of strings for each key, one row for each record. Tried less often when it keeps failing."""
        columns = self._shaped(b"\n".join(values), len(values)) if self._shape_turns.is_next() else None
        if columns is not None or self._schema is None or not self._turns.is_next():
            return columns
        text = _text(values)
        columns = self._read(text, len(values)) if text is not None else None
        self._turns.tell(is_good=columns is not None)
        return columns

    @property
    def knows_types(self) -> bool:
        """Whether it may take lines: it knows what kinds of values they have, or that they have one shape."""
        return self._had_shape or self._schema is not None

    @property
    def quotes_numbers(self) -> bool:
        """Whether a column has numbers with fractions."""
        return self._quotes.is_needed

    def parse_lines(self, block: bytes) -> list[pa.Array] | None:
        """The same for a block of lines, one record on each."""
        columns = self._shaped(block) if self._shape_turns.is_next() else None
        if columns is not None or self._schema is None:
            return columns
        text = _lines_text(block)
        return None if text is None else self._read(text, text.count(b"\n") + (not text.endswith(b"\n")))

    def _shaped(self, text: bytes, count: int | None = None) -> list[pa.Array] | None:
        columns = self._shape.take(text, count)
        self._shape_turns.tell(is_good=columns is not None)
        self._had_shape = self._had_shape or columns is not None
        return None if columns and self._needs_value and _has_empty_row(columns) else columns

    def _read(self, text: bytes, count: int) -> list[pa.Array] | None:
        text = self._quotes.put(text)
        try:
            table = pajson.read_json(
                pa.BufferReader(text),
                read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pajson.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior=self._unexpected
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != count:
            return None
        columns = [_written(table.column(key)) for key in self._keys]
        return None if self._needs_value and _has_empty_row(columns) else columns


class _Turns:
    """What keeps failing is tried less and less often."""

    def __init__(self) -> None:
        self._pause = 0
        self._left = 0

    def is_next(self) -> bool:
        """Whether it is tried this time."""
        if self._left:
            self._left -= 1
            return False
        return True

    def tell(self, *, is_good: bool) -> None:
        """What came of it."""
        self._pause = 0 if is_good else min(_MAX_PAUSE, 2 * self._pause + 1)
        self._left = max(0, self._pause - 1)


def _merged(old: frozenset[type], new: set[type]) -> frozenset[type]:
    """A column that once had numbers with a fraction may have them again; else the newest run counts."""
    if not new:
        return old
    return old | new if float in old | new and old | new <= _AS_TEXTS else frozenset(new)


def _text(values: Sequence[bytes]) -> bytes | None:
    """The records one after another, if pyarrow takes nothing in them wrongly.

    Between two of them stands `}\\n{`, which no JSON text can hold: so each record starts and ends an object, and where
    there are as many objects as records, each record is one.
    """
    if set(map(itemgetter(-1), values)) != {ord("}")}:
        values = [value.strip(SPACE) for value in values]
        if not all(values) or set(map(itemgetter(-1), values)) != {ord("}")}:
            return None
    text = b"\n".join(values)
    if set(map(itemgetter(0), values)) != {ord("{")} or b"\r" in text:
        return None
    return text if not _is_one_deep(values) and _is_plain(text) else None


def _lines_text(block: bytes) -> bytes | None:
    """The same of a block of lines: each line starts and ends an object."""
    text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if text.count(b"}\n{") + text.endswith(b"\n") != text.count(b"\n") or not text.startswith(b"{"):
        return None
    return text if b"\r" not in text and not has_deep_line(text) and _is_plain(text) else None


def _is_plain(text: bytes) -> bool:
    """Whether nothing is in it that pyarrow takes and JSON does not, or that readers read in several ways."""
    if MINUS_ZERO.search(text) or any(word.search(text) for word in _STRANGE):
        return False
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def _is_one_deep(values: Sequence[bytes]) -> bool:
    return max(map(len, values)) > DEEP_BYTES and any(map(may_be_deep, values))


def _written(column: pa.ChunkedArray) -> pa.Array:
    values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def _has_empty_row(columns: Sequence[pa.Array]) -> bool:
    empty = pc.is_null(columns[0])
    for column in columns[1:]:
        empty = pc.and_(empty, pc.is_null(column))
    return bool(pc.any(empty).as_py())


class NumberQuotes:
    """Puts the numbers of some keys into quotes. pyarrow reads numbers as doubles: `1.10` and the 20th digit would be
    lost; in quotes they come back as the texts they were.

    A key in quotes and a colon stand nowhere but before a value: within a string each quote has a backslash before it,
    so `"key"` cannot end there.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        names = b"|".join(re.escape(key.encode()) for key in keys)
        self._pattern = re.compile(rb'("(?:%s)"[ \t\r\n]*:[ \t\r\n]*)(%s)(?=[ \t\r\n,}])' % (names, NUMBER.encode()))
        self.is_needed = bool(keys)

    def put(self, text: bytes) -> bytes:
        """The same documents. What is no number of JSON stays as it is."""
        if not self.is_needed:
            return text
        # What `sub` does with a template, but for the Python code that it runs for each number.
        parts = self._pattern.split(text)
        parts[2::3] = [b'"%b"' % number for number in parts[2::3]]
        return b"".join(parts)


def can_quote(key: str) -> bool:
    """Whether a key is written in one way only, so that it is found."""
    return _PLAIN_KEY.fullmatch(key) is not None
