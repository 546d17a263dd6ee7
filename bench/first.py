"""Section "first": from CREATE JOB to its first commit, in a service that was started a moment ago."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.pages import Pages, markdown_table
from bench.scale import FOLDER, ROUNDS

ON_SPARK = "spark.sql.shuffle.partitions=2"
"""A setting of Spark: it starts with the service, and all batches go there."""
KINDS = {
    "vector path": ("upper(city)",),
    "vector path, on Spark": ("upper(city)", ON_SPARK),
    "general path": ("regexp_replace(city, 'x', 'y')", ON_SPARK),
}
HEAD = ("a file of 1,000 rows, from CREATE JOB to its commit", "first job", "second", "third")


def run(pages: Pages) -> None:
    """Each kind in a new service, in turns."""
    taken: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind, arguments in KINDS.items():
            folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "bench.peers.first_batch", str(folder), *arguments],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            taken[kind].append(json.loads(done.stdout))
            print(kind, *(f"{seconds:.2f} s" for seconds in taken[kind][-1]), flush=True)
    rows = [
        [kind, *(f"{median(seconds):.2f} s" for seconds in zip(*rounds, strict=True))] for kind, rounds in taken.items()
    ]
    pages.show("first", f"{markdown_table(HEAD, rows)}\n\nMedians of {ROUNDS} rounds in turns.")
