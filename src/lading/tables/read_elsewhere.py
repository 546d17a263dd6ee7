"""Lines that read a table with other engines. Each format has its own; they are shown, and never run here."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template


def filled_in(lines: Mapping[str, str], name: str, location: str) -> dict[str, str]:
    """Lines by engine, for the table of a name at its place.

    `$place` is the location inside of double quotes, `$location` inside of single quotes; `$schema` and `$table` are
    the parts of the name, for either.
    """
    schema, _, table = name.rpartition(".")
    values = {
        "place": location.replace("\\", "\\\\").replace('"', '\\"').rstrip("/"),
        "location": location.replace("'", "''"),
        "schema": schema.replace("'", "''").replace('"', '""'),
        "table": table.replace("'", "''").replace('"', '""'),
    }
    return {engine: Template(text).substitute(values) for engine, text in lines.items()}
