"""`python -m bench [section …]`: run the benchmarks and print their tables."""

from __future__ import annotations

import sys

from bench import commit, files, many

SECTIONS = {"commit": commit.run, "files": files.run, "many": many.run}


def main(names: list[str]) -> int:
    """Run the named sections, or all."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"unknown sections: {', '.join(unknown)}; there are: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    for name in names or SECTIONS:
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
