"""`make torture`: all lanes at once; prints what each step counted, how long it took and what it cost.

`python -m tests.torture --only kills soak` runs the steps whose names have one of these words.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.torture.plan import LANES, MOST_MINUTES, Step

_COUNTED = re.compile(r"\d.*(kill|seed|row|schedule|passed|failed|skipped)|^ *\|? *[A-Z-]{3,} .*\d|\| \d")
"""Lines that say what was counted, or how many tests there were."""
_PATIENCE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of one step."""

    lane: str
    step: Step
    status: int
    seconds: float
    cpu_s: float
    log: Path


def main() -> int:
    """Exit status 1 when a step failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="words in the names of steps")
    parser.add_argument("--folder", type=Path, default=None, help="where logs are written")
    parser.add_argument("--memory", type=Path, default=None, help="a folder in memory for small files of tests")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lading-torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    done, began = list[Done](), time.monotonic()
    lanes = [
        threading.Thread(target=_run_lane, args=(name, _chosen(steps, given.only), folder, given.memory, done))
        for name, steps in LANES.items()
    ]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    minutes, failed = (time.monotonic() - began) / 60, [one for one in done if one.status]
    cpu = sum(one.cpu_s for one in done) / 60
    load = os.getloadavg()[2]
    print(f"\n{len(done)} steps in {minutes:.1f} minutes (at most {MOST_MINUTES} on two free cores), ", end="")
    print(f"{cpu:.1f} minutes of processor time, load {load:.1f}; logs in {folder}")
    for one in failed:
        print(f"FAILED: {one.step.name}, status {one.status}: see {one.log}")
    return 1 if failed else 0


def _chosen(steps: tuple[Step, ...], words: list[str]) -> list[Step]:
    return [step for step in steps if not words or any(word in step.name for word in words)]


def _run_lane(lane: str, steps: list[Step], folder: Path, memory: Path | None, done: list[Done]) -> None:
    # What executors unpack is large, and stays on the disk.
    small = {"TMPDIR": str(memory)} if memory is not None and lane == "plain" else {}
    for step in steps:
        one = _run(lane, step, small, folder / f"{re.sub(r'[^a-z]+', '-', step.name.lower())}.log")
        done.append(one)
        _show(one)


def _run(lane: str, step: Step, small: dict[str, str], log: Path) -> Done:
    """A process group of its own, so that nothing of it is left when its time is over."""
    began = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *step.words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **small, **step.variables},
            process_group=0,
        )
        late = threading.Timer(step.minutes * 60 * _PATIENCE, os.killpg, (process.pid, 9))
        late.daemon = True
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    cpu_s = used.ru_utime + used.ru_stime
    return Done(lane=lane, step=step, status=code, seconds=time.monotonic() - began, cpu_s=cpu_s, log=log)


def _show(one: Done) -> None:
    counted = [line for line in one.log.read_text(errors="replace").splitlines() if _COUNTED.search(line)]
    said = "\n".join(f"    {line.strip()[:200]}" for line in counted[-30:])
    word = "passed" if one.status == 0 else f"FAILED with status {one.status}"
    minutes, cpu = one.seconds / 60, one.cpu_s / 60
    print(
        f"{one.lane}: {one.step.name}: {word}, {minutes:.1f} minutes, {cpu:.1f} of processor time\n{said}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
