"""Section "latency": a new file every 200 ms; how long until its rows are visible in the table."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.compare.cases import NOTE, expected
from bench.compare.check import check
from bench.compare.contenders import CONTENDERS, Contender
from bench.compare.environments import NotInstalledError
from bench.compare.server import FailedError, Server, Taken
from bench.compare.visible import Lookout, latencies
from bench.pages import Pages, markdown_table
from bench.peers.order import Order
from bench.scale import FOLDER, ROUNDS, SCALE

EVERY_S = 0.2
ROWS = 1000
KEPT_ROWS = 990
WARM_FILES = 10
"""Written before the others; their latency is left out."""
PATIENCE_S = 90.0
WHO = ("lading", "lading-general", "streaming", "streaming-delta")
HEAD = ("a new file every 200 ms", "p50", "p99", "highest", "commits", "CPU, share of one core", "peak memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One round of one contender."""

    p50_s: float
    p99_s: float
    highest_s: float
    commits: int
    cpu_share: float
    peak_mb: float


def run(pages: Pages, contenders: Sequence[str] = ()) -> None:
    """Measure, in turns, and show the table."""
    seconds = max(6.0, 60 * SCALE)
    chosen = [one for one in CONTENDERS if one.name in (contenders or WHO)]
    taken: dict[Contender, list[Followed]] = {one: [] for one in chosen}
    failed: dict[Contender, str] = {}
    for number in range(ROUNDS):
        for one in [one for one in chosen if one not in failed]:
            folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
            try:
                followed = _follow(one, folder, seconds)
            except (NotInstalledError, FailedError) as error:
                failed[one] = (str(error).strip().splitlines() or [""])[-1][:200]
                print(f"NOT MEASURED: {one.title} (latency): {error}", file=sys.stderr, flush=True)
                continue
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            taken[one].append(followed)
            print(f"{one.name}, round {number + 1}: p50 {followed.p50_s:.2f} s, p99 {followed.p99_s:.2f} s", flush=True)
    rows = [_row(one, taken[one], failed.get(one, "")) for one in chosen]
    told = f"{seconds:.0f} s each, {ROWS:,} rows a file, warm; medians of {ROUNDS} rounds in turns."
    pages.show("latency", f"{markdown_table(HEAD, rows)}\n\n{told}")


def _row(one: Contender, taken: list[Followed], failed: str) -> list[str]:
    if failed:
        return [one.title, f"not measured: {failed.replace('|', '/')}", *[""] * (len(HEAD) - 2)]
    return [
        one.title,
        f"{median(round.p50_s for round in taken):.2f} s",
        f"{median(round.p99_s for round in taken):.2f} s",
        f"{max(round.highest_s for round in taken):.2f} s",
        f"{median(round.commits for round in taken):.0f}",
        f"{median(round.cpu_share for round in taken):.0%}",
        f"{max(round.peak_mb for round in taken):,.0f} MB",
    ]


def _follow(one: Contender, folder: Path, seconds: float) -> Followed:
    inbox, over = folder / "in", folder / "over"
    inbox.mkdir()
    (folder / "drafts").mkdir()
    home = folder / "server" / "load"
    order = Order(form="csv", ending="csv", inbox=str(inbox), home=str(home), extra={}, once=False, until=str(over))
    writer = _Writer(folder)
    with Server(one, folder / "server") as server, Lookout(order.out) as lookout, ThreadPoolExecutor(1) as pool:
        writer.write(range(WARM_FILES))
        following = pool.submit(server.load, order)
        try:
            _wait(following, lookout, WARM_FILES)
            began, usage = time.perf_counter(), server.usage()
            writer.write(range(WARM_FILES, WARM_FILES + int(seconds / EVERY_S)))
            _wait(following, lookout, len(writer.written))
            used, took = usage.stop(), time.perf_counter() - began
        finally:
            over.touch()
        following.result()
    moments = lookout.rows()
    check(one.title, order.out, expected(len(writer.written) * ROWS))
    each = latencies(writer.written, moments, KEPT_ROWS)[WARM_FILES:]
    return Followed(
        p50_s=median(each),
        p99_s=quantiles(each, n=100, method="inclusive")[98],
        highest_s=max(each),
        commits=sum(1 for at, _ in moments if at > began),
        cpu_share=used.cpu_s / took,
        peak_mb=used.peak_mb,
    )


def _wait(following: Future[Taken], lookout: Lookout, files: int) -> None:
    """Until the rows of so many files are visible."""
    deadline = time.perf_counter() + PATIENCE_S
    while not (moments := lookout.rows()) or moments[-1][1] < files * KEPT_ROWS:
        if following.done():
            following.result()
        if following.done() or time.perf_counter() > deadline:
            raise FailedError(f"only {moments[-1][1] if moments else 0:,} rows of {files} files became visible")
        time.sleep(0.3)


class _Writer:
    """Puts whole files into the inbox, one every 200 ms by the clock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written: list[float] = []

    def write(self, numbers: range) -> None:
        began = time.perf_counter()
        for place, number in enumerate(numbers):
            first = number * ROWS
            lines = (f"{n},city {n % 100},{n % 1000}.50,{NOTE}\n" for n in range(first, first + ROWS))
            draft = self._folder / "drafts" / f"{number:06d}.csv"
            draft.write_text("id,city,amount,note\n" + "".join(lines))
            time.sleep(max(0.0, began + place * EVERY_S - time.perf_counter()))
            os.rename(draft, self._folder / "in" / draft.name)
            self.written.append(time.perf_counter())
