"""How the files of a table are reached: properties that are kept apart from the table."""

from __future__ import annotations


def is_reach(key: str) -> bool:
    """Whether a property says how to reach the files, and not how the table is made."""
    return key.startswith("s3.") or key == "use_path_style"


def reach_key(database: str, name: str) -> str:
    """The setting under which they are kept."""
    return f"reach/{database}.{name}"
