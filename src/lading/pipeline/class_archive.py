"""The classes of Spark, as Java has them once it has read and checked them: a start that finds them so has half the
work.

The first Spark of a service notes which classes it loads. Later another Java makes an archive of them, with the lowest
priority; from then on Sparks of the same home use it, those of queries too. Java itself ignores an archive that does
not fit it or its libraries. Nothing waits for one, and nothing fails without.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lading.pipeline.java import Java

OPTION = "spark.driver.defaultJavaOptions"
SETTING = "spark.lading.classes"
"""`no`: no archive is made or used."""
_PREFIX = "classes-"
_MOST_S = 600.0
_LOWEST = 19
_log = logging.getLogger("lading.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    """The archive of a home for a Java and the libraries of Spark."""

    path: Path

    @property
    def noted(self) -> Path:
        """The names of what is to be in it."""
        return self.path.with_suffix(".list")

    @property
    def draft(self) -> Path:
        """What is being made."""
        return self.path.with_suffix(f".{os.getpid()}.draft")

    @property
    def refused(self) -> Path:
        """Is there when Java could make none."""
        return self.path.with_suffix(".none")

    def options(self, *, notes: bool) -> str:
        """For the command line of Java: to use the archive; else, when somebody will make one, to note the classes."""
        if self.path.is_file():
            return f'"-XX:SharedArchiveFile={self.path}" -Xshare:auto -XX:+VerifySharedSpaces -Xlog:cds=off'
        if notes and not self.refused.exists():
            return f'"-XX:DumpLoadedClassList={self.noted}" -Xlog:cds=off'
        return ""

    def make(self, java: Java, spark_pid: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        """Begin to make it from what a running Spark has noted; None: it is there, or cannot be made here."""
        path = _class_path(spark_pid)
        if self.path.exists() or self.refused.exists() or not path or not self.noted.is_file():
            return None
        for old in self.path.parent.glob(f"{_PREFIX}*"):
            if old != self.noted:
                old.unlink(missing_ok=True)
        command = [f"{java.home}/bin/java", "-Xshare:dump", f"-XX:SharedClassListFile={self.noted}"]
        process = subprocess.Popen(  # noqa: S603 - the Java that Spark runs on
            [*command, f"-XX:SharedArchiveFile={self.draft}", "-Xlog:disable", "-cp", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST)
        return process

    def take(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the one that makes it, and give it its name. Dies before: the next service makes another."""
        try:
            status = process.wait(_MOST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        if status == 0 and self.draft.is_file():
            self.draft.chmod(0o600)
            with self.draft.open("rb") as made:
                os.fsync(made.fileno())  # Java checks sums, too.
            self.draft.replace(self.path)
        else:
            self.draft.unlink(missing_ok=True)
            if status > 0:
                _log.debug("Java made no archive of classes: it ended with status %d", status)
                self.refused.touch()
        self.noted.unlink(missing_ok=True)


def is_wanted(given: Mapping[str, str]) -> bool:
    """Whether settings of Spark leave room for an archive. Who gives Java options of their own gets those."""
    return OPTION not in given and given.get(SETTING, "yes") != "no"


def with_archive(given: Mapping[str, str], folder: Path, java: Java, *, notes: bool = False) -> Mapping[str, str]:
    """Settings of Spark with what its Java needs to use the archive, or with `notes` to note what one has to have."""
    options = archive_of(folder, java).options(notes=notes) if is_wanted(given) else ""
    return {**given, OPTION: options} if options else given


def archive_of(folder: Path, java: Java) -> ClassArchive:
    """Named after everything that it is made of: another Java or another Spark has another one."""
    from pyspark.find_spark_home import _find_spark_home

    made_of = hashlib.sha256(f"{java.home} {java.version} {java.origin}".encode())
    with suppress(OSError):
        made_of.update((Path(java.home) / "release").read_bytes())
    for jar in sorted((Path(_find_spark_home()) / "jars").glob("*.jar")):
        told = jar.stat()
        made_of.update(f"{jar} {told.st_size} {told.st_mtime_ns}".encode())
    return ClassArchive(path=folder / f"{_PREFIX}{made_of.hexdigest()[:16]}.jsa")


def _class_path(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.fsdecode(words[words.index(b"-cp") + 1])
    except (OSError, ValueError, IndexError):
        return ""
