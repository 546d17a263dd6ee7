"""How rows are written in records that a job selects from: among the properties of KAFKA(…) and KINESIS(…).

A routine load says the same in its PROPERTIES and clauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lading.model.load import RecordOptions
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.sql.properties.routine import record_kind
from lading.sql.properties.row_formats import ENCLOSE_RULES, RECORD_JSON_RULES
from lading.sql.properties.values import Rule, names, read_fields, refuse
from lading.sql.syntax.separators import parse_separator

_CSV_RULES = (Rule(name="column_separator", field="column_separator", read=parse_separator), *ENCLOSE_RULES)
_COLUMNS, _FORMAT = "columns", "format"
RECORD_NAMES = frozenset((_COLUMNS, _FORMAT, *(rule.name for rule in (*_CSV_RULES, *RECORD_JSON_RULES))))
"""Properties that say how the rows of a stream are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRecords:
    """What a SELECT is over."""

    options: RecordOptions
    columns: tuple[str, ...] = ()
    """The fields of a record, by place for csv and jsonpaths. Empty: those that the SELECT names, by their names."""


def read_selected_records(properties: Mapping[str, str]) -> SelectedRecords:
    """What KAFKA(…) or KINESIS(…) says of its records."""
    if not properties.get(_FORMAT, "").strip():
        msg = "format is a required property"
        raise refuse(msg, property=_FORMAT, todo="Say json or csv; KAFKA has avro and protobuf, too.")
    options = RecordOptions(
        format=record_kind(_FORMAT, properties[_FORMAT]),
        csv=CsvOptions(**read_fields(_CSV_RULES, properties)),
        json=JsonOptions(**read_fields(RECORD_JSON_RULES, properties)),
    )
    columns = names(_COLUMNS, properties[_COLUMNS]) if _COLUMNS in properties else ()
    if len({name.lower() for name in columns}) < len(columns):
        msg = f"columns has a name twice: {properties[_COLUMNS]!r}"
        raise refuse(msg, property=_COLUMNS, todo="Give each field of a record a name of its own.")
    paths = options.json.jsonpaths if options.format == "json" else ()
    if not columns and (options.format == "csv" or paths):
        what = "records of csv" if options.format == "csv" else "jsonpaths"
        msg = f"columns is a required property for {what}: it names the fields of a record in their order"
        raise refuse(msg, property=_COLUMNS, todo='Write "columns" = "id, city, amount".')
    if paths and len(paths) != len(columns):
        msg = f"Invalid json path: {len(paths)} jsonpaths for {len(columns)} columns of the source"
        raise refuse(msg, property="jsonpaths", todo="Give one path for each name of columns.")
    return SelectedRecords(options=options, columns=columns)
