"""Whether Spark's Java still answers. One that lives and says nothing would hold every batch, and the end, for ever."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JError

SILENCE = "spark.lading.driver.timeout"
"""How many seconds Java may answer nothing before it is ended, and started again when it is needed; 0: for ever."""
DEFAULT_S = 120.0
_LOOKS = 20
"""Within that time. They are counted, so that the time in which this process was stopped itself is none of Java's."""
_log = logging.getLogger("lading.spark")


def watch_answers(gateway: Any, limit_s: float) -> None:
    """Ask now and then, from its start on; end Java when no answer comes. What waits for it hears that it is gone."""
    if limit_s <= 0:
        return
    heard, rest_s = threading.Event(), limit_s / _LOOKS
    asking = partial(_ask, gateway, heard, rest_s)
    watching = partial(_watch, gateway.proc, heard, limit_s, rest_s)
    for work in (asking, watching):
        threading.Thread(target=work, name="lading-answers", daemon=True).start()


def _ask(gateway: Any, heard: threading.Event, rest_s: float) -> None:
    waiting = threading.Event()
    while gateway.proc.poll() is None:
        with suppress(Py4JError, OSError):  # It has ended, or ends.
            gateway.jvm.java.lang.System.nanoTime()
            heard.set()
        waiting.wait(rest_s)


def _watch(process: Any, heard: threading.Event, limit_s: float, rest_s: float) -> None:
    waiting, silent = threading.Event(), 0
    while process.poll() is None:
        waiting.wait(rest_s)
        silent = 0 if heard.is_set() else silent + 1
        heard.clear()
        if silent >= _LOOKS:
            _log.error("Spark's Java (pid %d) has answered nothing for %g seconds; it is ended", process.pid, limit_s)
            process.kill()
            return
