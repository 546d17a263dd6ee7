"""`python -m bench [section …]`: run the benchmarks, print their tables, and with --write put them into the docs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

from bench import commit, extremes, first, kafka, kinesis, many, recovery, safety, state
from bench.compare import latency
from bench.compare import run as compare
from bench.compare.cases import cases
from bench.compare.contenders import CONTENDERS
from bench.pages import Pages
from bench.scaling import run as scaling
from bench.state_cases import CASES

SECTIONS: dict[str, Callable[[], None]] = {
    "commit": commit.run,
    "files-extremes": extremes.run,
    "many": many.run,
    "kinesis": kinesis.run,
    "state": state.run,
    "state-windows": partial(state.run, tuple(name for name in CASES if name.startswith("windows"))),
    "state-deduplication": partial(state.run, tuple(name for name in CASES if name.startswith("dedup"))),
    "state-joins": partial(state.run, tuple(name for name in CASES if name.startswith("join"))),
    "state-back": state.run_back,
    "recovery": recovery.run,
    "takeover": recovery.run_takeover,
    "safety": safety.run,
}
USUAL = ("compare", "latency", "first", "kafka", "scaling", "commit", "many", "kinesis", "state", "state-back")


def main(arguments: Sequence[str]) -> int:
    """Run the named sections, or the usual ones."""
    asked = _parser().parse_args(arguments)
    pages = Pages(writes=asked.write)
    sections: dict[str, Callable[[], None]] = {
        **SECTIONS,
        "compare": lambda: compare.run(pages, asked.cases, asked.contenders),
        "scaling": lambda: scaling.run(pages),
        **{name: partial(part, pages) for name, part in scaling.PARTS.items()},
        "kafka": lambda: kafka.run(pages),
        "latency": lambda: latency.run(pages, asked.contenders),
        "first": lambda: first.run(pages),
    }
    unknown = [name for name in asked.sections if name not in sections]
    if unknown:
        print(f"unknown sections: {', '.join(unknown)}; there are: {', '.join(sections)}", file=sys.stderr)
        return 2
    for name in asked.sections or USUAL:
        sections[name]()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"the usual ones: {' '.join(USUAL)}")
    parser.add_argument("--cases", nargs="+", default=(), choices=tuple(cases()), help="of the section compare")
    parser.add_argument(
        "--contenders",
        nargs="+",
        default=(),
        choices=tuple(one.name for one in CONTENDERS),
        help="of the section compare",
    )
    parser.add_argument("--write", action="store_true", help="put tables and plots into docs/performance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
