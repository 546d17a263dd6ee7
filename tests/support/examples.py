"""How many examples random tests try, by one setting: few for each change, LADING_TEST_EXAMPLES in long runs."""

from __future__ import annotations

import os

WANTED = int(os.environ.get("LADING_TEST_EXAMPLES", "0"))


def examples(few: int, *, costs: int = 1) -> int:
    """So many, unless LADING_TEST_EXAMPLES wants more. `costs`: how many cheap ones take as long as one of these."""
    return max(few, WANTED // costs)
