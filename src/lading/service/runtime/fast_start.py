"""Later starts of Spark find its classes read and checked: a service makes an archive of them while nobody waits."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lading.settings import environment

if TYPE_CHECKING:
    from lading.pipeline.java import Java

REST_S = 60.0
"""So long Spark has run by then: a service that has just started has other things to do."""


class FastStart:
    """One home's. Safe to use from many threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._making: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()

    def keep(self, java: Java, spark: Any, rest_s: float = REST_S) -> None:
        """Wait, and make the archive, if there is none for this Java and this Spark. `close` ends it."""
        from lading.pipeline.class_archive import archive_of
        from lading.pipeline.environment import spark_environment

        archive = archive_of(self._folder, java)
        if archive.path.exists() or self._closed.wait(rest_s):
            return
        with self._lock:
            if not self._closed.is_set():
                self._making = archive.make(java, spark.pid, spark_environment(environment()))
        if self._making is not None:
            archive.take(self._making)

    def close(self) -> None:
        """Another service makes it."""
        self._closed.set()
        with self._lock:
            if self._making is not None and self._making.poll() is None:
                self._making.kill()
