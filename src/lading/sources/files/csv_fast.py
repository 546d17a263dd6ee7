"""Csv through pyarrow, for blocks where pyarrow and `csv_text` cannot differ. None means: take the slow way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pacsv

from lading.model.row_formats import CsvOptions
from lading.sources.files.blocks import BOM
from lading.sources.files.csv_reference import FILES_SAY, NULL, count_mismatch
from lading.sources.files.rows import BadRow

_SPARE = [bytes([code]) for code in range(1, 32) if code not in b"\t\n\r"]
_SENTINEL = b"x"
"""A record that is added behind blocks with enclosed fields: swallowed, it shows that the last one is not closed."""


@dataclass(frozen=True, slots=True)
class FastBlock:
    """What a block held."""

    columns: list[pa.Array]
    bad: list[BadRow]
    """Numbered from 1 within the block."""

    @property
    def rows(self) -> int:
        return len(self.columns[0]) + len(self.bad)


class FastCsv:
    """Parses blocks that start and end where records do."""

    def __init__(
        self, options: CsvOptions, file_columns: Sequence[str], wanted: Sequence[str], says: str = FILES_SAY
    ) -> None:
        self._options = options
        self._says = says
        self._enclose = options.enclose.encode()
        self._escape = options.escape.encode()
        self._separator = options.column_separator.encode()
        self._delimiter = options.line_delimiter.encode()
        self._is_possible = not options.trim_double_quotes and bool(wanted)
        # pyarrow knows columns by their names; numbers cannot clash with what a file calls them.
        self._names = [str(number) for number in range(len(file_columns))]
        picked = [self._names[list(file_columns).index(name)] for name in wanted]
        self._convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(picked, pa.string()),
            include_columns=picked,
            null_values=[NULL, ""] if options.empty_field_as_null else [NULL],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            check_utf8=False,
        )

    @property
    def is_hopeless(self) -> bool:
        """The options rule the fast way out."""
        return not self._is_possible

    def parse(self, block: bytes) -> FastBlock | None:
        """The block's rows; None also where the block ends inside an enclosed field."""
        if not self._is_possible or not block or not self._is_safe(block):
            return None
        text = self._with_newlines(block)
        if text is None:
            return None
        separator, text = self._with_short_separator(text)
        return None if separator is None else self._parse(text, separator)

    def _is_safe(self, block: bytes) -> bool:
        if self._escape and self._escape in block:
            return False
        if block.startswith(BOM):
            return False  # pyarrow would drop it, also in the middle of a file.
        return block.isascii() or _is_utf8(block)

    def _with_newlines(self, block: bytes) -> bytes | None:
        """The block with lines as pyarrow knows them, or None. pyarrow takes `\\r` alone for a line's end."""
        returns = block.count(b"\r")
        if self._delimiter == b"\n":
            return block if not returns or returns == block.count(b"\r\n") else None
        if self._delimiter == b"\r\n":
            return block if returns == block.count(b"\n") == block.count(b"\r\n") else None
        if returns or b"\n" in block or (self._enclose and self._enclose in block):
            return None
        return block.replace(self._delimiter, b"\n")

    def _with_short_separator(self, block: bytes) -> tuple[bytes | None, bytes]:
        separator = self._separator
        if len(separator) == 1 and separator != b"\0" and separator.isascii():
            return separator, block
        if self._enclose and self._enclose in block:
            return None, block
        spare = next((byte for byte in _SPARE if byte not in block), None)
        return spare, block if spare is None else block.replace(separator, spare)

    def _parse(self, text: bytes, separator: bytes) -> FastBlock | None:
        bad: list[BadRow] = []

        def skip(row: pacsv.InvalidRow) -> str:
            raw = row.text.encode()
            raw = raw if separator == self._separator else raw.replace(separator, self._separator)
            why = count_mismatch(row.actual_columns, row.expected_columns, raw, self._options, self._says)
            bad.append(BadRow(row.number, raw, why))
            return "skip"

        has_quotes = bool(self._enclose) and self._enclose in text
        if has_quotes:
            text += (b"" if text.endswith(b"\n") else b"\n") + _SENTINEL + b"\n"
        try:
            table = pacsv.read_csv(
                pa.BufferReader(text),
                read_options=pacsv.ReadOptions(
                    use_threads=False, block_size=len(text) + 1, column_names=self._names, encoding="utf8"
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=separator.decode(),
                    quote_char=self._enclose.decode() if has_quotes else False,
                    newlines_in_values=has_quotes,
                    invalid_row_handler=skip,
                ),
                convert_options=self._convert,
            )
        except pa.ArrowInvalid:
            return None
        columns = [_one_chunk(column) for column in table.columns]
        return self._without_sentinel(columns, bad) if has_quotes else FastBlock(columns, bad)

    def _without_sentinel(self, columns: list[pa.Array], bad: list[BadRow]) -> FastBlock | None:
        count = len(columns[0])
        if len(self._names) == 1:
            is_there = count > 0 and columns[0][count - 1].as_py() == _SENTINEL.decode()
            return FastBlock([columns[0].slice(0, count - 1)], bad) if is_there else None
        is_there = bool(bad) and bad[-1].raw == _SENTINEL and bad[-1].number == count + len(bad)
        return FastBlock(columns, bad[:-1]) if is_there else None


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, pa.string())])


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True
