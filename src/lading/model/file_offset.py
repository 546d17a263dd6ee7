"""The position of a job that loads files, as statements and SHOW write it: `{"fileName": "…"}`."""

from __future__ import annotations

import json

_NAME = "fileName"


def render_offset(file_name: str) -> str:
    """A position as Doris shows it."""
    return json.dumps({_NAME: file_name}, ensure_ascii=False)


def file_name_or_none(text: str) -> str | None:
    """The name of the file; None when the JSON is of another form. Raises ValueError when it is no JSON."""
    found = json.loads(text)
    file_name = found.get(_NAME) if isinstance(found, dict) and found.keys() == {_NAME} else None
    return file_name if isinstance(file_name, str) and file_name else None
