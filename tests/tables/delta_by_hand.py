"""Log entries of Delta tables as some other program writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lading.tables.delta.actions import LOG, entry_key


def newest(location: Path) -> int:
    """The version of the newest log entry."""
    return max(int(path.stem) for path in (location / LOG).glob("*.json") if path.stem.isdigit())


def actions(location: Path, kind: str) -> list[dict[str, Any]]:
    """All actions of a kind, oldest first."""
    found: list[dict[str, Any]] = []
    for version in range(newest(location) + 1):
        path = location / entry_key(version)
        for line in path.read_text().splitlines() if path.exists() else ():
            found.extend(action for name, action in json.loads(line).items() if name == kind)
    return found


def add_entry(location: Path, *given: Mapping[str, Any]) -> None:
    """One more log entry."""
    lines = [json.dumps(action) for action in ({"commitInfo": {"timestamp": 1, "operation": "CHANGE"}}, *given)]
    (location / entry_key(newest(location) + 1)).write_text("\n".join(lines) + "\n")


def change_field(location: Path, name: str, **changes: Any) -> None:
    """ALTER TABLE … on one column."""
    metadata = actions(location, "metaData")[-1]
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        if field["name"] == name:
            field.update(changes)
    add_entry(location, {"metaData": {**metadata, "schemaString": json.dumps(schema)}})
