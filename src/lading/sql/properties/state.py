"""Properties of event time and of what is kept of rows, for jobs of every kind of source."""

from __future__ import annotations

from collections.abc import Mapping

from lading.model.load import DedupSpec, WatermarkSpec
from lading.sql.properties.values import (
    Rule,
    duration,
    names,
    needed,
    read_fields,
    refuse,
    word,
)

_RULES = (
    Rule(name="watermark.column", field="column", read=needed),
    Rule(name="watermark.delay", field="delay_s", read=duration),
    Rule(name="watermark.idle_timeout", field="idle_s", read=duration),
    Rule(name="watermark.max_future", field="max_future_s", read=duration),
    Rule(name="watermark.late_rows", field="late_rows", read=word("QUARANTINE", "DROP")),
)
_DEDUP_RULES = (
    Rule(name="dedup.keys", field="keys", read=names),
    Rule(name="dedup.horizon", field="horizon_s", read=duration),
)
STATE_PROPERTY_NAMES = frozenset(rule.name for rule in (*_RULES, *_DEDUP_RULES))


def read_watermark(properties: Mapping[str, str]) -> WatermarkSpec | None:
    """The event time of a job; None when it has none."""
    given = read_fields(_RULES, properties)
    if not given:
        return None
    if "column" not in given:
        others = ", ".join(sorted(name for name in properties if name.startswith("watermark.")))
        msg = f"{others} needs watermark.column, the column that has the event time"
        raise refuse(msg, property="watermark.column", todo='Add "watermark.column" = "the column", or leave it out.')
    return WatermarkSpec(**given)


def read_dedup(properties: Mapping[str, str], watermark: WatermarkSpec | None) -> DedupSpec | None:
    """Which rows of a job are the same; None when all of them are loaded."""
    given = read_fields(_DEDUP_RULES, properties)
    if not given:
        return None
    if "keys" not in given:
        msg = "dedup.horizon needs dedup.keys, the columns by which rows are the same"
        raise refuse(msg, property="dedup.keys", todo='Add "dedup.keys" = "the columns", or leave it out.')
    spec = DedupSpec(**given)
    if len({name.lower() for name in spec.keys}) < len(spec.keys):
        msg = f"dedup.keys names a column twice: {', '.join(spec.keys)}"
        raise refuse(msg, property="dedup.keys", todo="Name each once.")
    if watermark is None:
        msg = "dedup.keys needs a watermark: it says when a key can be forgotten"
        raise refuse(
            msg, property="watermark.column", todo='Add "watermark.column" = "the column with the event time".'
        )
    if spec.horizon_s <= 0:
        msg = "dedup.horizon is 0: no row would be a duplicate"
        raise refuse(msg, property="dedup.horizon", todo="Make it longer.")
    if spec.horizon_s < watermark.delay_s:
        msg = (
            f"dedup.horizon is {_text(spec.horizon_s)}, shorter than watermark.delay, "
            f"{_text(watermark.delay_s)}: keys would be forgotten before their rows are late"
        )
        raise refuse(msg, property="dedup.horizon", todo="Give it at least the delay.")
    return spec


def _text(seconds: float) -> str:
    """In the largest unit that needs no fraction."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0 and seconds:
            return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"
    return f"{seconds:g} seconds"
