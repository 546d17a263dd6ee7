"""Lines that read a table with other engines. Each format has its own; they are shown, and never run here."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template


def filled_in(lines: Mapping[str, str], name: str, location: str) -> dict[str, str]:
    """Lines by engine, for the table of a name at its place.

    `$place` is the location inside of double quotes, `$location` inside of single quotes. The parts of the name are
    `$schema` and `$table` inside of single quotes, and `$schema_name` and `$table_name` inside of double quotes.
    """
    schema, _, table = name.rpartition(".")
    values = {
        "place": location.replace("\\", "\\\\").replace('"', '\\"').rstrip("/"),
        "location": location.replace("'", "''"),
        "schema": schema.replace("'", "''"),
        "table": table.replace("'", "''"),
        "schema_name": schema.replace('"', '""'),
        "table_name": table.replace('"', '""'),
    }
    return {engine: Template(text).substitute(values) for engine, text in lines.items()}
