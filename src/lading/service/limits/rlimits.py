"""How many files and connections a process may have open."""

from __future__ import annotations

import resource
from contextlib import suppress

WANTED = 65_536


def allow_many_open_files() -> int:
    """As many as the machine lets us have, up to what a service needs; says how many.

    Shells and service managers give 1,024 where nobody asked: less than the connections that the faces take together.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if most == resource.RLIM_INFINITY else min(WANTED, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):  # The kernel has a limit of its own, which it does not tell.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
