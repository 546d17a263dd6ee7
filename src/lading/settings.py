"""What comes from the environment. Only this file and the command line's door read it."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ
