"""What an ALTER changes of a stream and moves in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lading.errors import SqlError
from lading.sources.discovery import DISCOVERY, check_discovery, without
from lading.sources.kinesis.properties import read_kinesis_properties
from lading.sources.starts import SHARD_END
from lading.sql.statements.alter import AlteredSource

_DEFAULT = "property.kinesis_default_pos"
KINESIS_STARTS = ("kinesis_shards", "kinesis_shards_pos", _DEFAULT, DISCOVERY)
"""Properties that say where a job begins."""
_ENDPOINTS = ("aws.endpoint", "kinesis_endpoint")


def alter(properties: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
    """Shards in ALTER are moved and become the only ones that are read; another stream forgets them all."""
    has_endpoint = any(name in changed for name in _ENDPOINTS)
    old = without(properties, _ENDPOINTS if has_endpoint else ())
    is_new = changed.get("kinesis_stream", old["kinesis_stream"]) != old["kinesis_stream"]
    asked = read_kinesis_properties({**without(old, KINESIS_STARTS), **changed})
    if is_new:
        return AlteredSource(properties={**without(old, KINESIS_STARTS), **changed}, is_new=True)
    for name in asked.shards:
        if name not in consumed:
            msg = f"The shard {name} is not in the consumed shards"
            raise SqlError(
                msg, code="Alter", todo=f"The job reads: {', '.join(sorted(consumed)) or 'none'}.", partition=name
            )
    check_discovery(old, changed, "kinesis_shards")
    has_default = _DEFAULT in changed
    starts = asked.shard_positions or (tuple(asked.default_position for _ in asked.shards) if has_default else ())
    moves = dict(zip(asked.shards, starts, strict=bool(starts)))
    dropped = ("kinesis_shards_pos",) if asked.shards or has_default else ()
    kept = without(changed, ("kinesis_shards_pos",))
    if asked.shards and asked.discovery == "ON":  # they are moved, and all others are still read
        left = without(kept, ("kinesis_shards",))
        return AlteredSource(properties={**without(old, dropped), **left}, moves=moves)
    if asked.shards:
        dropped = (*dropped, DISCOVERY)
    base = {**without(old, dropped), **_unfinished(old)} if has_default else without(old, dropped)
    return AlteredSource(properties={**base, **kept}, moves=moves)


def _unfinished(old: Mapping[str, str]) -> dict[str, str]:
    """Shards without those at SHARD_END: without that word they would be taken for new ones and be read again."""
    names, places = (old.get(name, "").split(",") for name in ("kinesis_shards", "kinesis_shards_pos"))
    if len(names) != len(places) or old.get(DISCOVERY, "").upper() == "ON":
        return {}
    left = [name for name, place in zip(names, places, strict=True) if place.strip().upper() != SHARD_END]
    return {"kinesis_shards": ",".join(left)} if len(left) < len(names) and left else {}


def begin_again(old: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """A stream that was made again begins at the default of the job; shards that were chosen stay chosen."""
    stale = ["kinesis_shards_pos"]
    if old.get(DISCOVERY, "").upper() == "ON" or "kinesis_shards" in changed:
        stale += ["kinesis_shards", DISCOVERY]
    if "kinesis_shards_pos" in changed or _DEFAULT in changed:
        stale.append(_DEFAULT)
    if any(name in changed for name in _ENDPOINTS):
        stale += _ENDPOINTS
    return {**without(old, stale), **changed}
