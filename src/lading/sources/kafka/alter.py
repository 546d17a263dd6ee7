"""What an ALTER changes of a topic and moves in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lading.errors import SqlError
from lading.sources.discovery import DISCOVERY, check_discovery, without
from lading.sources.kafka.properties import read_kafka_properties
from lading.sql.statements.alter import AlteredSource

_DEFAULTS = ("kafka_default_offsets", "property.kafka_default_offsets")
KAFKA_STARTS = ("kafka_partitions", "kafka_offsets", *_DEFAULTS, DISCOVERY)
"""Properties that say where a job begins."""


def alter(old: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
    """Positions in ALTER move partitions; they do not change which partitions are read."""
    is_new = changed.get("kafka_topic", old["kafka_topic"]) != old["kafka_topic"]
    asked = read_kafka_properties({**without(old, KAFKA_STARTS), **changed})
    has_default = any(name in changed for name in _DEFAULTS)
    if asked.partitions and not asked.offsets and not has_default:
        msg = "Must set offset or default offset with partition property"
        raise SqlError(msg, code="Alter", todo="Add kafka_offsets or property.kafka_default_offsets.")
    if is_new:
        return AlteredSource(properties={**without(old, KAFKA_STARTS), **changed}, is_new=True)
    check_discovery(old, changed, "kafka_partitions")
    starts = asked.offsets or tuple(asked.default_offset for _ in asked.partitions)
    moves = {str(number): start for number, start in zip(asked.partitions, starts, strict=True)}
    for name in moves:
        if name not in consumed:
            msg = f"The partition {name} is not in the consumed partitions"
            raise SqlError(
                msg, code="Alter", todo=f"The job reads: {', '.join(sorted(consumed)) or 'none'}.", partition=name
            )
    kept = without(changed, ("kafka_partitions", "kafka_offsets"))
    base = without(old, _DEFAULTS) if has_default else dict(old)
    merged = without(base, ("kafka_offsets",)) if has_default else base
    return AlteredSource(properties={**merged, **kept}, moves=moves)


def begin_again(old: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """A topic that was made again begins at the default of the job; partitions that were chosen stay chosen."""
    stale = ["kafka_offsets"]
    if old.get(DISCOVERY, "").upper() == "ON" or "kafka_partitions" in changed:
        stale += ["kafka_partitions", DISCOVERY]
    if "kafka_offsets" in changed or any(name in changed for name in _DEFAULTS):
        stale += _DEFAULTS
    return {**without(old, stale), **changed}
