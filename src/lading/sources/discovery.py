"""Whether a job reads partitions that come later: the same words for every stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lading.errors import SqlError

DISCOVERY = "property.discovery"


def is_discovering(properties: Mapping[str, str], names: str) -> bool:
    """Whether partitions that come later are read too."""
    return names not in properties or properties.get("property.discovery", "").upper() == "ON"


def check_discovery(old: Mapping[str, str], changed: Mapping[str, str], names: str) -> None:
    """What was never read has no position, and would be read from its beginning: so a job stays as it was made."""
    is_pinned = names in old and old.get(DISCOVERY, "").upper() != "ON"
    if DISCOVERY in changed and (changed[DISCOVERY].upper() == "ON") == is_pinned:
        msg = f"{DISCOVERY} cannot be changed to {changed[DISCOVERY]}"
        raise SqlError(msg, code="Alter", todo="Make another job with what SHOW CREATE ROUTINE LOAD prints.")


def without(properties: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """The properties but for these."""
    return {name: value for name, value in properties.items() if name not in names}
