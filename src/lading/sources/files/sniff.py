"""How files are written, when nobody has said it: from the name and the first bytes of one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_SUFFIXES = {
    "csv": "csv",
    "tsv": "csv",
    "txt": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
    "pq": "parquet",
    "orc": "orc",
}
_PACKED = re.compile(r"\.(gz|gzip|zst|zstd|bz2|lz4|snappy|deflate)$", re.IGNORECASE)
_SEPARATORS = (",", "\t", ";", "|", "\x01")
_LINES = 50
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def sniffed(name: str, head: bytes, given: Mapping[str, str]) -> dict[str, str]:
    """Properties that are not given, as the first bytes of a file (unpacked) show them."""
    found: dict[str, str] = {}
    form = given.get("format", "").lower() or _format(name, head)
    if "format" not in given:
        found["format"] = form
    if form == "json" and "strip_outer_array" not in given and head.lstrip()[:1] == b"[":
        found |= {"strip_outer_array": "true", "read_json_by_line": "false"}
    if form.startswith("csv"):
        found |= _csv(head, given, has_format="format" in given)
    return {key: value for key, value in found.items() if key not in given}


def _format(name: str, head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ORC"):
        return "orc"
    known = _SUFFIXES.get(_PACKED.sub("", name).rpartition(".")[2].lower())
    if head.lstrip()[:1] in (b"{", b"["):
        return "json"
    return known if known in ("csv", "json") else "csv"


def _csv(head: bytes, given: Mapping[str, str], *, has_format: bool) -> dict[str, str]:
    text = head.decode(errors="replace").removeprefix("\ufeff")
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip("\r")][:_LINES]
    separator = given.get("column_separator") or _separator(lines)
    found = {"column_separator": separator}
    if '"' in text and "enclose" not in given:
        found["enclose"] = '"'
    if not has_format and lines and _is_header(_cells(lines[0], separator), lines[1:], separator):
        found["format"] = "csv_with_names"
    return found


def _separator(lines: Sequence[str]) -> str:
    """The one that stands equally often in most lines, outside of quotes."""
    best, most = ",", 0.0
    for separator in _SEPARATORS:
        counts = Counter(_outside(line).count(separator) for line in lines)
        for count, times in counts.most_common(1):
            score = times / max(1, len(lines)) * (1 + min(count, 20) / 100) if count else 0.0
            if score > most:
                best, most = separator, score
    return best


def _outside(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _cells(line: str, separator: str) -> list[str]:
    cells = re.split(re.escape(separator) + r'(?=(?:[^"]*"[^"]*")*[^"]*$)', line)
    return [cell.strip().strip('"') for cell in cells]


def _is_header(first: Sequence[str], others: Sequence[str], separator: str) -> bool:
    """Names are different, none is a number or empty; and below at least one of them are numbers, or other words."""
    if len({cell.lower() for cell in first}) < len(first) or any(not cell or _NUMBER.fullmatch(cell) for cell in first):
        return False
    rows = [_cells(line, separator) for line in others]
    if any(_NUMBER.fullmatch(cell) for row in rows for cell in row):
        return True
    return all(re.fullmatch(r"[^\W\d][\w .-]{0,60}", cell) for cell in first)


def text_type(values: Sequence[str | None]) -> str:
    """The type of a column whose values are texts. An empty column is one of texts."""
    given = [value for value in values if value not in (None, "")]
    if not given:
        return "string"
    for kind, pattern in _TYPES:
        if all(value is not None and pattern.fullmatch(value) for value in given):
            return kind
    return "string"


_TYPES = (
    ("bigint", re.compile(r"-?(0|[1-9]\d{0,17})")),
    ("double", re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?")),
    ("boolean", re.compile(r"true|false", re.IGNORECASE)),
    ("date", re.compile(r"\d{4}-\d{2}-\d{2}")),
    ("timestamp", re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")),
)
"""Codes with leading zeros stay texts: as numbers they would be others."""
