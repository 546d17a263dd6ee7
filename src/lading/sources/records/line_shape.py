"""Many JSON objects of one shape at once, as one program writes them: the same keys in the same order, no value nested.

Commas cut such lines into a key with its value each. Where everything beside the values is the same in each line, and
each value is a string without quotes in it, a number, true, false or null, each line is JSON, and its values are known
as they were written. `json_reference` would say the same. None: take another way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from lading.sources.files.arrays import texts

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_SCALAR = f"{NUMBER}|true|false|null"
_FIELD = re.compile(rf'( *"([^"\\]*)" *: *)(?:"[^"\\]*"|{_SCALAR})( *)([,}}])')
_MOST_FIELDS = 256
"""Of a line. With more of them, a block has too few lines to gain anything."""
_MARK = b"\x01"
"""Cuts lines where commas do not: no JSON text has it."""


@dataclass(frozen=True, slots=True)
class _Field:
    """What stands beside one value in each line."""

    key: str
    before: str
    after: str

    @property
    def pattern(self) -> str:
        # Neither of them has a backslash.
        return rf"^\Q{self.before}\E(?P<value>{_SCALAR})\Q{self.after}\E$"


class ShapedLines:
    """Takes blocks of lines apart, for the values of some keys."""

    def __init__(self, keys: Sequence[str], *, keeps_rest: bool) -> None:
        self._keys = keys
        # A field that nobody asked for must not get lost: such lines go another way.
        self._keeps_rest = keeps_rest
        self._has_commas = False
        """Commas were seen within values."""

    def take(self, text: bytes, count: int | None = None) -> list[pa.Array] | None:
        """One column of strings for each key, one row for each line; of so many lines, where somebody knows."""
        fields = self._shape_of(text)
        if fields is None or b"\\" in text or not _is_unicode(text):
            return None
        letters = np.frombuffer(text, np.uint8)
        ends = np.count_nonzero(letters == ord("\n"))
        rows = int(ends) + (not text.endswith(b"\n"))
        if count not in (None, rows) or np.count_nonzero(letters < ord(" ")) != ends:
            return None
        cut = self._cut(text, fields, rows)
        if cut is None:
            return None
        taken, quotes = dict[str, pa.Array | None](), 2 * rows * len(fields)
        for field, column in zip(fields, cut, strict=True):
            one = _Taken.of(column, field, is_wanted=field.key in self._keys)
            if one is None:
                return None
            taken[field.key], quotes = one.values, quotes + 2 * one.strings
        if np.count_nonzero(letters == ord('"')) != quotes:
            return None
        return [taken[key] if key in taken else pa.nulls(rows, pa.string()) for key in self._keys]

    def _shape_of(self, text: bytes) -> list[_Field] | None:
        """The fields of the first line, when all can have the same."""
        end = text.find(b"\n")
        try:
            line = (text if end < 0 else text[:end]).decode()
        except UnicodeDecodeError:
            return None
        fields, at = list[_Field](), 1
        if not line.startswith("{"):
            return None
        while len(fields) < _MOST_FIELDS and (found := _FIELD.match(line, at)):
            before, key, space, end_of_it = found.groups()
            is_last = end_of_it == "}"
            fields.append(_Field(key, before if fields else "{" + before, space + ("}" if is_last else "")))
            at = found.end()
            if is_last:
                break
        else:
            return None
        keys = {field.key for field in fields}
        is_known = at == len(line) and len(keys) == len(fields)
        return fields if is_known and not (self._keeps_rest and keys - set(self._keys)) else None

    def _cut(self, text: bytes, fields: Sequence[_Field], rows: int) -> list[pa.Array] | None:
        if not self._has_commas:
            columns = _columns(text, ",", len(fields), rows)
            if columns is not None:
                return columns
        heads = {field.before.partition('"')[0] for field in fields[1:]}
        if len(heads) != 1:
            return None
        # Where a comma, a quote and nothing but spaces are between two values, no string has them.
        space = heads.pop().encode()
        marked = text.replace(b"," + space + b'"', _MARK + space + b'"')
        columns = _columns(marked, _MARK.decode(), len(fields), rows)
        self._has_commas = columns is not None
        return columns


@dataclass(frozen=True, slots=True)
class _Taken:
    """The values of one key, when somebody wants them, and how many of them are strings."""

    values: pa.Array | None
    strings: int

    @classmethod
    def of(cls, column: pa.Array, field: _Field, *, is_wanted: bool) -> _Taken | None:
        """None: not each value is a scalar, or something else is beside it. Quotes in strings are counted by others."""
        quoted = pc.starts_with(column, field.before + '"').true_count
        if not quoted:
            return cls._scalars(column, field, is_wanted=is_wanted)
        if quoted < len(column):
            null = texts([f"{field.before}null{field.after}".encode()], pa.string())[0]
            column = _without(column, null)
        # A quote that begins a string is not the one that ends it.
        least = len(f'{field.before}""{field.after}'.encode())
        if (
            len(column) - column.null_count != quoted
            or pc.ends_with(column, '"' + field.after).true_count != quoted
            or pc.min(pc.binary_length(column)).as_py() < least
        ):
            return None
        if not is_wanted:
            return cls(None, quoted)
        return cls(pc.utf8_slice_codeunits(column, len(field.before) + 1, -1 - len(field.after)), quoted)

    @classmethod
    def _scalars(cls, column: pa.Array, field: _Field, *, is_wanted: bool) -> _Taken | None:
        if not is_wanted:
            is_all = pc.match_substring_regex(column, field.pattern).true_count == len(column)
            return cls(None, 0) if is_all else None
        found = pc.extract_regex(column, field.pattern)
        if found.null_count:
            return None
        return cls(_without(found.field(0), texts([b"null"], pa.string())[0]), 0)


def _without(column: pa.Array, word: pa.Scalar) -> pa.Array:
    """Null where that word stands."""
    is_there = pc.equal(column, word)
    count = is_there.true_count
    return pc.replace_with_mask(column, is_there, pa.nulls(count, pa.string())) if count else column


def _columns(text: bytes, delimiter: str, width: int, rows: int) -> list[pa.Array] | None:
    """What stands between the delimiters, column by column."""
    names = [str(number) for number in range(width)]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text),
            read_options=pacsv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != rows:
        return None
    return [column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) for column in table.columns]


def _is_unicode(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False
