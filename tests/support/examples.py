"""How many examples random tests try, by one setting: few for each change, LADING_TEST_EXAMPLES in long runs, and
a part of the few (`25%`) while somebody works."""

from __future__ import annotations

import os

_SAID = os.environ.get("LADING_TEST_EXAMPLES", "0")
WANTED = 0 if _SAID.endswith("%") else int(_SAID)
PART = int(_SAID[:-1]) / 100 if _SAID.endswith("%") else 1.0


def examples(few: int, *, costs: int = 1) -> int:
    """So many, or a part of them, unless LADING_TEST_EXAMPLES wants more. `costs`: how many cheap ones take as long as
    one of these."""
    return max(1, round(few * PART), WANTED // costs)
