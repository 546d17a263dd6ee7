"""How rows are written in a file or a record: CSV and JSON. Statements say it, stores keep it, readers go by it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """How a line becomes fields."""

    column_separator: str = "\t"
    line_delimiter: str = "\n"
    """`\\n` takes `\\r\\n` as a line's end too; any other text is taken to the letter."""
    enclose: str = ""
    escape: str = ""
    empty_field_as_null: bool = False
    trim_double_quotes: bool = False
    skip_lines: int = 0
    schema: tuple[tuple[str, str], ...] = ()
    """Names and Spark types of the fields, when the statement says them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """How a document becomes fields."""

    read_by_line: bool = True
    strip_outer_array: bool = False
    json_root: str = ""
    jsonpaths: tuple[str, ...] = ()
    num_as_string: bool = False
    fuzzy_parse: bool = False
