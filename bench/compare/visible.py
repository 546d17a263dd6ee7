"""When rows became visible: the log of a table is looked at all the time, and read when all is over."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote

import pyarrow.parquet as pq

LOOK_S = 0.01


class Lookout:
    """Notes when each entry of a log was there for the first time: of a Delta table, or of a Parquet sink."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._seen: dict[str, float] = {}
        self._known: dict[str, dict[str, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def rows(self) -> list[tuple[float, int]]:
        """When so many rows were visible, in all, in the order of time."""
        files: dict[str, int] = {}
        moments: list[tuple[float, int]] = []
        for name, at in sorted(self._seen.items(), key=lambda entry: int(entry[0].partition(".")[0])):
            if name not in self._known:
                self._known[name] = self._added(name)
            files.update(self._known[name])
            moments.append((at, sum(files.values())))
        return moments

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        now = time.perf_counter()
        for log, ending in ((self._out / "_delta_log", ".json"), (self._out / "_spark_metadata", "")):
            names = (path.name for path in log.iterdir()) if log.is_dir() else ()
            for name in names:
                if name[0].isdigit() and (name.endswith(ending) if ending else name.isdigit() or ".compact" in name):
                    self._seen.setdefault(name, now)

    def _added(self, name: str) -> dict[str, int]:
        """Rows by the name of the file."""
        delta = self._out / "_delta_log" / name
        if delta.exists():
            actions = [json.loads(line) for line in delta.read_text().splitlines()]
            added = [action["add"] for action in actions if "add" in action]
            return {add["path"]: int(json.loads(add["stats"])["numRecords"]) for add in added}
        lines = (self._out / "_spark_metadata" / name).read_text().splitlines()[1:]
        paths = [unquote(json.loads(line)["path"].removeprefix("file://")) for line in lines]
        return {path: pq.read_metadata(path).num_rows for path in paths}


def latencies(written: list[float], moments: list[tuple[float, int]], rows_of_file: int) -> list[float]:
    """Seconds from each file to its rows. Everybody loads files in the order in which they come."""
    taken: list[float] = []
    for number, since in enumerate(written):
        wanted = (number + 1) * rows_of_file
        at = next((at for at, rows in moments if rows >= wanted), None)
        if at is not None:
            taken.append(at - since)
    return taken
