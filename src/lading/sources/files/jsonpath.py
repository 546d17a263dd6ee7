"""The JSON paths that Doris knows: `$.a.b`, `$.a[0]`, `$["a b"]`, `$.a[*]`; `$` and `$.` are the whole document."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lading.errors import ConfigError

_STEP = re.compile(r"""\.(?:"([^"]+)"|([^.\[\]"]+))|\[(?:(\d+)|(\*)|"([^"]+)"|'([^']+)')\]""")

Step = str | int | None
"""A key, an index, or None for every element."""

MISSING = object()
"""What a path gives that leads nowhere; null is something else."""


@cache
def parse_jsonpath(text: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ConfigError for a text that is none."""
    path = text.strip()
    if path in ("$", "$."):
        return ()
    steps, at = list[Step](), 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if not found:
            break
        steps.append(_step(found))
        at = found.end()
    if not path.startswith("$") or at < len(path):
        msg = f"Invalid json path: {text!r}"
        raise ConfigError(msg, left="Nothing was changed.", todo='Write it as in "$.a.b[0]".')
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found[3] is not None:
        return int(found[3])
    if found[4] is not None:
        return None
    return next(name for name in (found[1], found[2], found[5], found[6]) if name is not None)


def follow(value: Any, steps: tuple[Step, ...]) -> Any:
    """What a path leads to, or MISSING."""
    for number, step in enumerate(steps):
        if step is None:
            if not isinstance(value, list):
                return MISSING
            found = [follow(item, steps[number + 1 :]) for item in value]
            return [item for item in found if item is not MISSING]
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
        elif not isinstance(value, dict) or step not in value:
            return MISSING
        value = value[step]
    return value
