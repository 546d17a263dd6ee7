"""How rows are written in a file or a record: CSV and JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lading.model.row_formats import CsvOptions, JsonOptions
from lading.sql.expressions.type_names import parse_type
from lading.sql.properties.values import (
    Rule,
    at_most_one_byte,
    boolean,
    json_paths,
    json_root,
    one_byte,
    only,
    read_fields,
    refuse,
    whole,
)
from lading.sql.syntax.separators import parse_separator

_FIELD = re.compile(r"\s*([^:;]+?)\s*:\s*([^;]+?)\s*")


def _schema(name: str, text: str) -> tuple[tuple[str, str], ...]:
    parts = [part for part in text.split(";") if part.strip()]
    matches = [_FIELD.fullmatch(part) for part in parts]
    found = [(match[1], parse_type(match[2]).name) for match in matches if match is not None]
    if len(found) != len(parts):
        msg = f"{name} must have the form name:type;name:type, and it is {text!r}"
        raise refuse(msg, property=name, value=text)
    if len({field.lower() for field, _ in found}) < len(found):
        msg = f"{name} has a name twice: {text!r}"
        raise refuse(msg, property=name, value=text)
    return tuple(found)


ENCLOSE_RULES = (
    Rule(name="enclose", field="enclose", read=at_most_one_byte),
    Rule(name="escape", field="escape", read=one_byte),
    Rule(name="empty_field_as_null", field="empty_field_as_null", read=boolean),
)
"""CSV options of files and of records."""
CSV_RULES = (
    Rule(name="column_separator", field="column_separator", read=parse_separator),
    Rule(name="line_delimiter", field="line_delimiter", read=parse_separator),
    *ENCLOSE_RULES,
    Rule(name="trim_double_quotes", field="trim_double_quotes", read=boolean),
    Rule(name="skip_lines", field="skip_lines", read=whole(lambda n: n >= 0, "should >= 0")),
    Rule(name="csv_schema", field="schema", read=_schema),
    Rule(
        name="enable_text_validate_utf8",
        field="",
        read=only(
            True,
            "enable_text_validate_utf8 cannot be false: a text that is not UTF-8 cannot be kept in a table",
            "Leave it out: rows with such texts are bad rows.",
        ),
    ),
)
RECORD_JSON_RULES = (
    Rule(name="jsonpaths", field="jsonpaths", read=json_paths),
    Rule(name="json_root", field="json_root", read=json_root),
    Rule(name="strip_outer_array", field="strip_outer_array", read=boolean),
    Rule(name="num_as_string", field="num_as_string", read=boolean),
    Rule(name="fuzzy_parse", field="fuzzy_parse", read=boolean),
)
"""JSON options of files and of records."""
JSON_RULES = (Rule(name="read_json_by_line", field="read_by_line", read=boolean), *RECORD_JSON_RULES)


def read_csv_options(properties: Mapping[str, str]) -> CsvOptions:
    """The CSV options of a file."""
    options = CsvOptions(**read_fields(CSV_RULES, properties))
    _check_apart(options, properties)
    return options


def _check_apart(options: CsvOptions, properties: Mapping[str, str]) -> None:
    """A line could be taken apart in two ways if one of these were part of another."""
    separator, delimiter, enclose = options.column_separator, options.line_delimiter, options.enclose
    culprit = ""
    if enclose and enclose in separator + delimiter + options.escape:
        culprit = "enclose"
    elif separator in delimiter or delimiter in separator:
        culprit = "column_separator" if "column_separator" in properties else "line_delimiter"
    if culprit:
        msg = "column_separator, line_delimiter, enclose and escape contain one another"
        raise refuse(msg, property=culprit, todo="Use different characters.")


def read_json_options(properties: Mapping[str, str]) -> JsonOptions:
    """The JSON options of a file: one document on each line, unless the outer array is to be stripped."""
    found = read_fields(JSON_RULES, properties)
    return JsonOptions(**{"read_by_line": not found.get("strip_outer_array", False), **found})


def read_record_csv_options(properties: Mapping[str, str], column_separator: str | None) -> CsvOptions:
    """The CSV options of a record. Its separator is written as COLUMNS TERMINATED BY."""
    found = read_fields(ENCLOSE_RULES, properties)
    if column_separator is not None:
        found["column_separator"] = parse_separator("COLUMNS TERMINATED BY", column_separator)
    return CsvOptions(**found)


def implied_record_quotes(properties: Mapping[str, str], column_separator: str | None) -> dict[str, str]:
    """`enclose` for CSV records of a new job that does not say it: double quotes, unless they mean something else."""
    form = properties.get("format", "csv").strip().lower()
    has_meaning = '"' in (column_separator or "") + properties.get("escape", "")
    return {} if "enclose" in properties or form != "csv" or has_meaning else {"enclose": '"'}


def read_record_json_options(properties: Mapping[str, str]) -> JsonOptions:
    """The JSON options of a record."""
    return JsonOptions(**read_fields(RECORD_JSON_RULES, properties))
