"""Whether properties have keys of their own. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def has_keys(properties: Mapping[str, str], prefix: str) -> bool:
    """Both, and not empty: libraries take an empty key for none and sign with the identity of the machine."""
    return all(properties.get(f"{prefix}.{name}", "").strip() for name in ("access_key", "secret_key"))
