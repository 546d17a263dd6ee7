"""A service in a process of its own that shares a store: `python -m tests.support.lease_worker home store [stop-at]`.

Without Spark. With `stop-at`, it stops itself (SIGSTOP) before its commit with that number.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from lading import failpoints
from lading.service.scheduling.scheduler import Scheduler
from tests.console.local import LocalLading


def main() -> None:
    home, store, stop_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
    commits = 0

    def stop(_name: str) -> None:
        nonlocal commits
        commits += 1
        if commits == stop_at:
            print("stopped", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    if stop_at:
        failpoints.arm("commit.before", stop)
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with LocalLading(home, store_url=store, user="worker") as lading:
        scheduler = Scheduler(lading)
        scheduler.start()
        print("ready", flush=True)
        ending.wait()
        scheduler.close()


if __name__ == "__main__":
    main()
