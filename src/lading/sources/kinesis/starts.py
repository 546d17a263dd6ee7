"""Where a job begins, as the user said it: one start for all shards, and others for some."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lading.errors import ConfigError
from lading.sources.kinesis.position import HORIZON, Position, at_sequence, at_time, parse_position

LATEST, TRIM_HORIZON = "LATEST", "TRIM_HORIZON"
_AT = re.compile(r"AT_TIMESTAMP\s*\(\s*(.+?)\s*\)", re.IGNORECASE)
_WRITTEN = re.compile(r"AFTER \d+|AT \d+( \d+)?")
"""As bills write positions: a job can go on where another one stopped."""
_NOTHING = "Nothing was opened."


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The whole of it. Each text is LATEST, TRIM_HORIZON, AT_TIMESTAMP(ISO 8601 with a zone) or a sequence number."""

    default: str = LATEST
    shards: Mapping[str, str] = field(default_factory=dict)

    def of(self, shard: str) -> str:
        return self.shards.get(shard, self.default)


def render_start(default: str = LATEST, shards: Mapping[str, str] | None = None) -> str:
    """The text for `KinesisSource.open`."""
    return json.dumps({"default": default, "shards": dict(shards or {})}, sort_keys=True)


def parse_start(text: str) -> Start:
    """The opposite of `render_start`. A bare word, as in LATEST, is the start of all shards."""
    if not text.lstrip().startswith("{"):
        start = Start(default=text.strip() or LATEST)
    else:
        body = json.loads(text)
        start = Start(default=body.get("default", LATEST), shards=body.get("shards", {}))
    for given in (start.default, *start.shards.values()):
        place_or_none(given)
    return start


def place_or_none(text: str) -> Position | None:
    """What a start means. None: LATEST, which only the moment of opening can tell. A number is read with it."""
    given = text.strip()
    if given.upper() == LATEST:
        return None
    if given.upper() == TRIM_HORIZON:
        return HORIZON
    if given.isascii() and given.isdigit():
        return at_sequence(int(given))
    if _WRITTEN.fullmatch(given):
        return parse_position(given)
    match = _AT.fullmatch(given)
    moment = _moment_or_none(match[1].strip("'\"") if match else given)
    if moment is not None:
        return at_time(moment)
    msg = f"A start must be TRIM_HORIZON, LATEST, a valid sequence number, or AT_TIMESTAMP(…), and it is {text!r}"
    raise ConfigError(msg, left=_NOTHING, todo="Times have a zone, as in AT_TIMESTAMP(2026-08-01T00:00:00Z).")


def _moment_or_none(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None
