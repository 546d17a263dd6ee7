"""Where the time goes: flame graphs of the driver and of a task while the CSV files are loaded, by py-spy."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.compare.cases import cases
from bench.compare.contenders import CONTENDERS
from bench.compare.environments import Environment, NotInstalledError
from bench.compare.server import Server
from bench.memory import tree_of
from bench.pages import Pages, markdown_table
from bench.peers.order import Order
from bench.scale import FOLDER
from bench.scaling.flame_plot import flame_svg

PROFILER = Environment(name="profiler", packages=("py-spy==0.4.3",))
RATE = 200
READY_S = 1.0
"""How long it takes py-spy to begin."""
FORKING = (b"daemon", b"local_worker")
WAITING = ("manager (daemon.py", "recv_fds (")
"""The process that forks those of tasks waits for orders."""
SHARE = 0.03
"""Functions with less of the time are left out of the list."""
MOST = 12
Stacks = dict[tuple[str, ...], int]
"""Samples by the functions that were running, the outermost first."""


def run(pages: Pages) -> None:
    """Two loads of the CSV files in a warm process: one with an eye on the driver, one on the tasks."""
    try:
        spy = str(Path(PROFILER.python()).parent / "py-spy")
    except NotInstalledError as error:
        print(f"NOT MEASURED: flame graphs: {error}", file=sys.stderr, flush=True)
        return
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    try:
        inbox = cases()["csv"].write(folder / "in")
        with Server(CONTENDERS[0], folder / "server") as server:
            _load(server, inbox, folder, "warm")
            driver = _watched(spy, folder, server.pid, (), lambda: _load(server, inbox, folder, "driver"))
            forking = _forking_of(server.pid)
            task = _watched(spy, folder, forking, ("--subprocesses",), lambda: _load(server, inbox, folder, "task"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    parts = []
    for name, stacks in (("driver", driver), ("task", task)):
        image = pages.image(f"flame-{name}", flame_svg(f"The {name}, by samples", stacks), f"Flame graph of the {name}")
        parts.append(f"{image}\n\n{_told(name, stacks)}")
    pages.show("scaling-flames", "\n\n".join(parts))


def _load(server: Server, inbox: Path, folder: Path, name: str) -> None:
    order = Order(form="csv", ending="csv", inbox=str(inbox), home=str(folder / name), extra={}, once=False)
    server.load(order)


def _watched(spy: str, folder: Path, pid: int, more: Sequence[str], load: Callable[[], None]) -> Stacks:
    """The stacks of a process, while something is loaded."""
    raw = folder / f"raw-{pid}"
    command = [spy, "record", "--pid", str(pid), *more, "--rate", str(RATE), "--format", "raw"]
    command += ["--nonblocking", "--duration", "unlimited", "--output", str(raw)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(READY_S)
        load()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    stacks: Stacks = {}
    for line in raw.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = tuple(_function(frame) for frame in stack.split(";") if not frame.startswith(("process", "thread")))
        if frames and not frames[-1].startswith(WAITING):
            stacks[frames] = stacks.get(frames, 0) + int(count)
    return stacks


def _function(frame: str) -> str:
    """`name (file:line)` without the line; of the file its last two parts."""
    name, _, place = frame.partition(" (")
    path = place.rstrip(")").rpartition(":")[0]
    return f"{name} ({'/'.join(Path(path).parts[-2:])})"


def _forking_of(root: int) -> int:
    """The process that forks those of tasks."""
    for pid in tree_of(root):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if pid != root and any(name in word for word in command for name in FORKING) and b"python" in command[0]:
            return pid
    raise RuntimeError("there is no process that forks those of tasks")


def _told(name: str, stacks: Stacks) -> str:
    """Which functions were running themselves, most first."""
    total = sum(stacks.values())
    own: dict[str, int] = {}
    for stack, count in stacks.items():
        own[stack[-1]] = own.get(stack[-1], 0) + count
    most = sorted(own.items(), key=lambda entry: -entry[1])[:MOST]
    rows = [[f"`{function}`", f"{count / total:.0%}"] for function, count in most if count / total >= SHARE]
    return markdown_table((f"running in the {name} ({total:,} samples)", "share"), rows)
