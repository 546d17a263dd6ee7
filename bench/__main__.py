"""`python -m bench [section …]`: run the benchmarks and print their tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from bench import commit, extremes, files, kafka, kinesis, many, recovery, safety, state
from bench.state_cases import CASES

SECTIONS: dict[str, Callable[[], None]] = {
    "commit": commit.run,
    "files": files.run,
    "files-csv": partial(files.run, ("csv",)),
    "files-json": partial(files.run, ("json",)),
    "files-small": partial(files.run, ("small",)),
    "files-extremes": extremes.run,
    "many": many.run,
    "kinesis": kinesis.run,
    "kafka": kafka.run,
    "state": state.run,
    "state-windows": partial(state.run, tuple(name for name in CASES if name.startswith("windows"))),
    "state-deduplication": partial(state.run, tuple(name for name in CASES if name.startswith("dedup"))),
    "state-joins": partial(state.run, tuple(name for name in CASES if name.startswith("join"))),
    "state-back": state.run_back,
    "recovery": recovery.run,
    "takeover": recovery.run_takeover,
    "safety": safety.run,
}
USUAL = ("commit", "files", "many", "kinesis", "kafka", "state", "state-back")


def main(names: list[str]) -> int:
    """Run the named sections, or the usual ones."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"unknown sections: {', '.join(unknown)}; there are: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    for name in names or USUAL:
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
