"""What the plan tells the reader of a split."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Beside the range: what the range meant when it was planned."""

    first: int
    """The offset that the start stands for; a partition's beginning is a number only once somebody has asked."""
    incarnation: str = ""
    """The topic's id. Empty: the brokers have none."""
    leader_epoch: int | None = None
    """Of the leader that told the end. None: the brokers tell none."""


def render_payload(payload: Payload) -> str:
    """The payload as text."""
    return json.dumps(asdict(payload), sort_keys=True)


def parse_payload(text: str) -> Payload:
    """The payload that `render_payload` wrote."""
    return Payload(**json.loads(text))
