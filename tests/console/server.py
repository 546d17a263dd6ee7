"""The service under test, in a process of its own: NiceGUI has one app in a process.

    python -m tests.console.server FOLDER PORT [--users] [--history]

It says `ready PORT` when it answers, and ends when its input does. What it shows of secrets it says at the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lading.console.mount import mount_console
from lading.http.app import create_app
from lading.http.server import HttpServer
from lading.service.scheduling.scheduler import Scheduler
from lading.service.security.root_password import ensure_root_password
from lading.service.telemetry.metrics import Metrics
from tests.console.history import make_history
from tests.console.local import LocalLading, PastClock
from tests.secret_leaks.hooks import watching
from tests.secret_leaks.pages import Overheard
from tests.secret_leaks.watch import WATCH


def main(folder: str, port: str, *flags: str) -> None:
    clock = PastClock()
    with watching(WATCH), LocalLading(Path(folder) / "home", user="anna", clock=clock) as lading:
        access = lading.access if "--users" in flags else None
        if access is not None:
            ensure_root_password(access, lading.home.path)
        metrics = Metrics(lading.store, lading.clock, audit=lading.audit)
        lading.watches.append(metrics)
        scheduler = Scheduler(lading, workers=2)
        app = create_app(lading, access=access, metrics=metrics, scheduler=scheduler)
        mount_console(app, lading, access=access, metrics=metrics, scheduler=scheduler)
        if "--history" in flags:
            make_history(lading, metrics, clock, Path(folder) / "in")
        with HttpServer(Overheard(app, WATCH)).start("127.0.0.1", int(port)) as server:
            scheduler.start()
            print(f"ready {server.port}", flush=True)
            sys.stdin.read()
            scheduler.close(5.0)
    for leak in WATCH.take():
        print(f"A secret was shown: {leak}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
