"""Kill jobs for so long, then count: `python -m tests.soak --hours 0.1 --seed 1 --form plain`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from lading.clock import SystemClock
from tests.crash.load_stories import SOURCES
from tests.soak.counts import Counts, render
from tests.soak.plain import soak_plain
from tests.soak.services_setup import soak_services
from tests.soak.spark import soak_spark

FORMS = {"plain": soak_plain, "spark": soak_spark, "services": soak_services}


def main() -> int:
    """Exit status 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=None, help="what is chosen; not when processes come to a point")
    parser.add_argument("--form", choices=[*FORMS, "all"], default="all")
    parser.add_argument("--sources", nargs="+", default=list(SOURCES), choices=SOURCES)
    parser.add_argument("--folder", type=Path, default=None, help="where homes are made, and left")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else SystemRandom().randrange(10**6)
    chosen = list(FORMS) if given.form == "all" else [given.form]
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lading-soak-"))
    clock, is_clean = SystemClock(), True
    for form in chosen:
        began = clock.monotonic_s()
        rows = FORMS[form](folder / form, seed, given.hours / len(chosen), given.sources)
        total = Counts()
        for counts in rows.values():
            total.add(counts)
        minutes = (clock.monotonic_s() - began) / 60
        print(f"\n{form}, seed {seed}, {minutes:.1f} minutes, homes in {folder / form}")
        print(render({**rows, "all": total}), flush=True)
        is_clean &= total.is_clean
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
