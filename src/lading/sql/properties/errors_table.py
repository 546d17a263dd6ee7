"""The table that gets the bad rows of a job, for jobs of every kind of source."""

from __future__ import annotations

from collections.abc import Mapping

from lading.sql.properties.values import refuse

PROPERTY = "errors.table"
ERRORS_PROPERTY_NAMES = frozenset((PROPERTY,))
_MOST_PARTS = 3


def read_errors_table(properties: Mapping[str, str]) -> str:
    """The name of that table; empty: none does. ALTER can leave no property out, so an empty one takes it away."""
    text = properties.get(PROPERTY, "").strip()
    parts = text.split(".")
    if text and (len(parts) > _MOST_PARTS or not all(part.strip() == part != "" for part in parts)):
        msg = f"{PROPERTY} should be the name of a table"
        raise refuse(msg, property=PROPERTY, value=text, todo="Write db.table.")
    return text
