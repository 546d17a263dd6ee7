"""Csv by the letter: records and fields one at a time. Slow, and the judge of what is right.

A field that starts with the enclosing character reaches to the next one; two of them in a row stand for one. What
follows up to the separator belongs to the field. An enclosed field that is not closed before the file ends, or within
the longest row allowed, makes its line a bad row, and reading goes on with the next line. The escape character keeps
an enclosing character from closing; in the finished field it is dropped and the character after it stays. A field
that reads `\\N` is null, before escapes are looked at. Blank lines are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lading.model.row_formats import CsvOptions
from lading.sources.files.blocks import Lines

NULL = "\\N"
NOT_UTF8 = "Not UTF-8"
NOT_CLOSED = "Enclosed field is not closed"


FILES_SAY = '"column_separator" = "{}"'
"""How the properties of files say which separator there is."""
RECORDS_SAY = 'COLUMNS TERMINATED BY "{}"'
_LIKELY = {",": ",", ";": ";", "|": "|", "\t": "\\t"}


def count_mismatch(actual: int, expected: int, raw: bytes, options: CsvOptions, says: str = FILES_SAY) -> str:
    """Why a row with another number of fields is bad, and which option is probably missing."""
    why = f"Column count mismatch: {actual} fields, {expected} expected"
    for separator, written in _LIKELY.items():
        is_other = separator != options.column_separator and actual == 1 < expected
        if is_other and raw.count(separator.encode()) >= expected - 1:
            return f"{why}; is {says.format(written)} missing?"
    if b'"' in raw and not options.enclose and actual > expected:
        return f'{why}; is "enclose" = "\\"" missing?'
    return why


@dataclass(frozen=True, slots=True)
class Record:
    """The bytes of one record, without the delimiter at its end."""

    raw: bytes
    is_closed: bool = True


class CsvText:
    """Takes text apart as the options say."""

    def __init__(self, options: CsvOptions) -> None:
        self.options = options
        self.delimiter = options.line_delimiter.encode()
        self._drops_cr = options.line_delimiter == "\n"
        self._separator = options.column_separator
        self._enclose = options.enclose
        escape = re.escape(options.escape)
        self._escaped = re.compile(f"{escape}(.)|{escape}$", re.DOTALL) if escape else None
        if options.enclose:
            record = _record_pattern(options)
            self._record = re.compile(record.encode(), re.DOTALL)
            self._field = re.compile(_field_pattern(options), re.DOTALL)

    def records(self, text: bytes, lines: Lines, *, at_end: bool) -> tuple[list[Record], int]:
        """Whole records from the start of a text, and how many bytes they took. Blank lines are among them."""
        return self._enclosed(text, lines, at_end) if self._enclose else self._plain(text, at_end)

    def fields(self, line: str) -> list[str | None]:
        """The values of one record."""
        if self._enclose and self._enclose in line:
            values = [self._open(found) for found in self._field.finditer(line)]
        else:
            values = line.split(self._separator)
        return [self._value(value) for value in values]

    def names(self, line: str) -> list[str]:
        """The fields of a line of names: nothing in it is null."""
        return ["" if value is None else value.strip() for value in self.fields(line)]

    def trimmed(self, line: bytes) -> bytes:
        """A line without the carriage return before its newline."""
        return line[:-1] if self._drops_cr and line.endswith(b"\r") else line

    def _plain(self, text: bytes, at_end: bool) -> tuple[list[Record], int]:
        lines = text.split(self.delimiter)
        rest = lines.pop()
        if at_end and rest:
            lines.append(rest)
            rest = b""
        return [Record(self.trimmed(line)) for line in lines], len(text) - len(rest)

    def _enclosed(self, text: bytes, lines: Lines, at_end: bool) -> tuple[list[Record], int]:
        found, at, size = list[Record](), 0, len(text)
        while at < size:
            # The bound makes the outcome the same however the text came in.
            limit = min(size, at + lines.max_record)
            match = self._record.match(text, at, limit)
            if match and match[1]:
                found.append(Record(self.trimmed(text[at : match.start(1)])))
                at = match.end()
            elif limit == size and not at_end:
                break
            elif match and match.end() == limit:
                if limit < size:
                    raise lines.too_long()
                found.append(Record(self.trimmed(text[at:])))
                at = size
            else:
                end = text.find(self.delimiter, at)
                stop, after = (size, size) if end < 0 else (end, end + len(self.delimiter))
                found.append(Record(self.trimmed(text[at:stop]), is_closed=False))
                at = after
        return found, at

    def _open(self, found: re.Match[str]) -> str:
        inside, rest = found[1], found[2]
        if inside is None:
            return rest
        return inside.replace(self._enclose * 2, self._enclose) + rest

    def _value(self, value: str) -> str | None:
        if self.options.trim_double_quotes and len(value) > 1 and value[0] == value[-1] == '"':
            return self._unescaped(value[1:-1])
        if value == NULL or (not value and self.options.empty_field_as_null):
            return None
        return self._unescaped(value)

    def _unescaped(self, value: str) -> str:
        return self._escaped.sub(r"\1", value) if self._escaped and self.options.escape in value else value


def _inside(options: CsvOptions) -> str:
    """What may stand between two enclosing characters."""
    quote = re.escape(options.enclose)
    if not options.escape:
        return f"(?:[^{quote}]++|{quote}{quote})*+"
    escape = re.escape(options.escape)
    return f"(?:[^{quote}{escape}]++|{quote}{quote}|{escape}.)*+"


def _rest(stops: Sequence[str]) -> str:
    if all(len(stop) == 1 and stop.isascii() for stop in stops):
        return f"[^{''.join(map(re.escape, stops))}]*+"
    return f"(?:(?!{'|'.join(map(re.escape, stops))}).)*+"


def _record_pattern(options: CsvOptions) -> str:
    quote, separator, line_end = map(re.escape, (options.enclose, options.column_separator, options.line_delimiter))
    rest = _rest([options.column_separator, options.line_delimiter])
    field = f"(?:{quote}{_inside(options)}{quote}|(?!{quote})){rest}"
    return f"{field}(?:{separator}{field})*+({line_end})?+"


def _field_pattern(options: CsvOptions) -> str:
    quote, separator = re.escape(options.enclose), re.escape(options.column_separator)
    value = f"(?:{quote}({_inside(options)}){quote})?+({_rest([options.column_separator])})"
    return f"(?:(?<={separator})|(?<!.)){value}(?:{separator}|\\Z)"
