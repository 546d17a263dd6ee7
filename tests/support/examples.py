"""How many examples Hypothesis tries: fewer for each change, more in `make torture`."""

from __future__ import annotations

import os

WANTED = int(os.environ.get("LADING_TEST_EXAMPLES", "0"))


def examples(quick: int) -> int:
    """So many, unless LADING_TEST_EXAMPLES wants more."""
    return max(quick, WANTED)
