"""Section "compare": everybody loads the same files, in turns, from the start of a process and in a warm one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.compare.cases import Case, cases, expected
from bench.compare.check import check
from bench.compare.contenders import CONTENDERS, Contender
from bench.compare.environments import NotInstalledError
from bench.compare.server import FailedError, Server, Taken
from bench.compare.tables import table_of
from bench.pages import Pages
from bench.peers.order import Order
from bench.scale import COLD_ROUNDS, FOLDER, ROUNDS


@dataclass(slots=True)
class Rounds:
    """What one contender took, by number of the round."""

    warm: dict[int, Taken] = field(default_factory=dict)
    cold: dict[int, Taken] = field(default_factory=dict)
    bytes: int = 0
    failed: str = ""


def run(pages: Pages, names: Sequence[str] = (), contenders: Sequence[str] = ()) -> None:
    """Measure these cases, or all, for these contenders, or all."""
    known = cases()
    chosen = [one for one in CONTENDERS if not contenders or one.name in contenders]
    for name in names or known:
        folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
        try:
            measured = _Case(known[name], folder, chosen).measure()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        pages.show(f"compare-{name}", table_of(known[name], measured))


class _Case:
    def __init__(self, case: Case, folder: Path, contenders: Sequence[Contender]) -> None:
        self._case = case
        self._folder = folder
        self._wanted = expected(case.total)
        self._rounds = {one: Rounds() for one in contenders}

    def measure(self) -> dict[Contender, Rounds]:
        """All rounds, in turns. A contender that fails is left out from then on, and the table says so."""
        inbox = self._case.write(self._folder / "in")
        for number in range(COLD_ROUNDS):
            for one in self._turns(number):
                self._cold(one, inbox, number)
        with ExitStack() as stack:
            servers = {one: server for one in self._turns(0) if (server := self._start(one, stack)) is not None}
            for number in range(1 + ROUNDS):
                for one in self._turns(number):
                    self._warm(one, servers[one], inbox, number)
        return self._rounds

    def _turns(self, number: int) -> list[Contender]:
        """Those that have not failed, beginning with another one in each round."""
        alive = [one for one, rounds in self._rounds.items() if not rounds.failed]
        first = number % max(1, len(alive))
        return alive[first:] + alive[:first]

    def _cold(self, one: Contender, inbox: Path, number: int) -> None:
        home = self._folder / f"{one.name}-cold-{number}"
        try:
            with Server(one, home) as server:
                taken = server.load_once(self._order(inbox, home / "load", once=True))
            self._rounds[one].bytes = check(one.title, home / "load" / "out", self._wanted).bytes
        except (NotInstalledError, FailedError) as error:
            self._fail(one, error)
            return
        finally:
            shutil.rmtree(home, ignore_errors=True)
        self._rounds[one].cold[number] = taken
        _say(f"{one.name}, from process start: {taken.seconds:.1f} s, {taken.peak_mb:,.0f} MB")

    def _start(self, one: Contender, stack: ExitStack) -> Server | None:
        try:
            return stack.enter_context(Server(one, self._folder / f"{one.name}-warm"))
        except NotInstalledError as error:
            self._fail(one, error)
            return None

    def _warm(self, one: Contender, server: Server, inbox: Path, number: int) -> None:
        home = self._folder / f"{one.name}-warm" / str(number)
        try:
            taken = server.load(self._order(inbox, home, once=False))
            self._rounds[one].bytes = check(one.title, home / "out", self._wanted).bytes
        except FailedError as error:
            self._fail(one, error)
            return
        finally:
            shutil.rmtree(home, ignore_errors=True)
        _say(f"{one.name}, round {number}: {taken.seconds:.2f} s, {taken.cpu_s:.1f} s of processor time")
        if number:  # The first warms up.
            self._rounds[one].warm[number] = taken

    def _order(self, inbox: Path, home: Path, *, once: bool) -> Order:
        case = self._case
        return Order(form=case.form, ending=case.ending, inbox=str(inbox), home=str(home), extra=case.extra, once=once)

    def _fail(self, one: Contender, error: Exception) -> None:
        self._rounds[one].failed = str(error).strip().splitlines()[-1][:200] if str(error) else type(error).__name__
        print(f"NOT MEASURED: {one.title} ({self._case.name}): {error}", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(text, flush=True)
