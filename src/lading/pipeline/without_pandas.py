"""Workers without pandas. Nothing they do needs it, and its import takes a fifth of a second in each new one."""

from __future__ import annotations

import sys

import pyarrow as pa


class _Absent:
    """Finds no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def leave_out_pandas() -> None:
    """Let Arrow look for pandas now, and find nothing: it looks once, at the first value of Python that it is given,
    and imports what it finds. Who needs pandas can still import it."""
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        # From a pool that reserves nothing: the usual one takes 1 GiB of addresses, which a limit of memory counts.
        pa.scalar(0, memory_pool=pa.system_memory_pool())
    finally:
        sys.meta_path.remove(absent)
