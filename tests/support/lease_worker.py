"""A service in a process of its own that shares a store, without Spark: `-m tests.support.lease_worker home store`.

Each line of its input is a statement, and is answered by a line of JSON: `{"rows": …}` or `{"error": …}`. What it logs
is a line `{"log": …}`, and `{"at": …}` says that it has come to a place where it stops or ends itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path

from lading import failpoints
from lading.errors import LadingError
from lading.service.scheduling.scheduler import Scheduler
from lading.service.statements.clean import clean_table
from tests.console.local import LocalLading


class ToOutput(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(log=self.format(record))


def cleaned(lading: LocalLading, line: str) -> list[dict[str, object]]:
    """`clean 0.5`: as ADMIN CLEAN ORPHANS, which takes no less than an hour."""
    age = timedelta(seconds=float(line.split()[1]))
    found = [clean_table(lading, entry, age=age, dry_run=False) for entry in lading.store.list_tables()]
    rows: list[dict[str, object]] = [{"Kind": each.what, "Remark": ""} for table in found for each in table.found]
    return rows + [{"Kind": None, "Remark": table.remark} for table in found if table.remark]


_SAYING = threading.Lock()


def say(**words: object) -> None:
    with _SAYING:
        print(json.dumps(words, default=str), flush=True)


def arm(place: str, times: int, sent: signal.Signals) -> None:
    """Send this process a signal when it comes to a place for the given time."""
    came = 0

    def hit(_name: str) -> None:
        nonlocal came
        came += 1
        if came == times:
            say(at=place)
            # To this thread: a signal to the process may be taken by another one, and this one would go on meanwhile.
            signal.pthread_kill(threading.get_ident(), sent)

    failpoints.arm(place, hit)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("store")
    parser.add_argument("--stop", nargs=2, metavar=("PLACE", "TIMES"))
    parser.add_argument("--die", nargs=2, metavar=("PLACE", "TIMES"))
    parser.add_argument("--idle", action="store_true", help="run no job")
    asked = parser.parse_args()
    for words, sent in ((asked.stop, signal.SIGSTOP), (asked.die, signal.SIGKILL)):
        if words:
            arm(words[0], int(words[1]), sent)
    logging.getLogger("lading").addHandler(ToOutput(logging.WARNING))
    with LocalLading(asked.home, store_url=asked.store, user="worker") as lading:
        scheduler = None if asked.idle else Scheduler(lading)
        if scheduler is not None:
            scheduler.start()
        say(at="ready")
        for line in sys.stdin:  # Until the other end is closed.
            try:
                say(rows=cleaned(lading, line) if line.startswith("clean ") else lading.sql(line)[-1].dicts())
            except LadingError as error:
                say(error=str(error))
        if scheduler is not None:
            scheduler.close()


if __name__ == "__main__":
    main()
