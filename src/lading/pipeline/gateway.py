"""Starting Java for Spark, with an environment and a command line that hold no secret.

PySpark's own launcher hands the whole environment on, and writes every setting onto the command line, where each user
of the machine can read it. Here only what Java must know before it starts is written there. All other settings are set
through the connection to Java, which only this process has.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import java_import
from pyspark.find_spark_home import _find_spark_home

from lading.clock import SystemClock
from lading.errors import ConfigError, StageError
from lading.pipeline.child_output import log_lines

BEFORE_START = frozenset(
    (
        "spark.master",
        "spark.submit.deployMode",
        "spark.app.name",
        "spark.driver.memory",
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.extraLibraryPath",
        "spark.jars",
        "spark.jars.packages",
        "spark.jars.excludes",
        "spark.jars.ivy",
        "spark.jars.ivySettings",
        "spark.files",
        "spark.archives",
        "spark.submit.pyFiles",
        "spark.kerberos.keytab",
        "spark.kerberos.principal",
        "spark.yarn.queue",
    )
)
"""What the launcher itself acts on. Everybody on the machine can read it."""
_IMPORTS = (
    "org.apache.spark.SparkConf",
    "org.apache.spark.api.java.*",
    "org.apache.spark.api.python.*",
    "org.apache.spark.resource.*",
    "org.apache.spark.sql.Encoders",
    "org.apache.spark.sql.OnSuccessCall",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.*",
    "org.apache.spark.sql.api.python.*",
    "org.apache.spark.sql.hive.*",
    "scala.Tuple2",
)
"""Names that PySpark uses without their packages."""
_LOOK_S = 0.05
_SIGNALS = 128
"""Above it, a shell says by which signal its child was ended."""
JAVA_LOG = "lading.java"
"""The logger of what Java writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How Java is started."""

    options: Mapping[str, str]
    environment: Mapping[str, str]
    """All that Java and the processes it starts will know."""
    shares_group: bool = False
    """Java is in the process group of this process, and ends with it; else Ctrl-C at a terminal does not reach it."""
    stderr: int | None = None
    """Where Java writes what it has to say; None: to the log of this process, as `JAVA_LOG`."""
    most_s: float = 600.0
    """So long it may take to say that it is there: it may be fetching libraries first."""
    on_begin: Callable[[Popen[bytes]], None] = lambda process: None
    """Told of the process before Java says anything: so it can be ended."""


def launch_java(launch: Launch) -> Any:
    """Start Java and connect to it. Its process is `gateway.proc`; it ends when this process does."""
    folder = Path(tempfile.mkdtemp(prefix="lading-gateway-"))
    try:
        told = folder / "connection"
        command = [str(Path(_find_spark_home()) / "bin" / "spark-submit")]
        for name in sorted(BEFORE_START & launch.options.keys()):
            command += ["--conf", f"{name}={launch.options[name]}"]
        environment = {**launch.environment, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
        process = _start([*command, "pyspark-shell"], environment, launch)
        launch.on_begin(process)
        _wait_until_told(told, process, launch)
        with told.open("rb") as connection:
            port, token = _read_connection(connection)
    finally:
        shutil.rmtree(folder)
    gateway: Any = ClientServer(
        java_parameters=JavaParameters(port=port, auth_token=token, auto_convert=True),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    gateway.proc = process
    for name in _IMPORTS:
        java_import(gateway.jvm, name)
    return gateway


def _start(command: list[str], environment: Mapping[str, str], launch: Launch) -> Popen[bytes]:
    """Java's own lines may hold secrets: they are read through a pipe and logged, where they are redacted."""
    reading, writing = (None, launch.stderr) if launch.stderr is not None else os.pipe()
    try:
        process = Popen(  # noqa: S603 - Spark's own launcher
            command,
            stdin=PIPE,  # Java ends when this is closed, also because this process died.
            stdout=writing,
            stderr=writing,
            env=environment,
            process_group=None if launch.shares_group else 0,
        )
    except OSError:
        if reading is not None:
            os.close(reading)
        raise
    finally:
        if reading is not None:
            os.close(writing)
    if reading is not None:
        log_lines(reading, logging.getLogger(JAVA_LOG))
    return process


def _read_connection(connection: Any) -> tuple[int, str]:
    """The port and the token, as Spark writes them: numbers of four bytes, and text with its length before it."""
    port, length = struct.unpack("!ii", connection.read(8))
    return port, connection.read(length).decode()


def _wait_until_told(told: Path, process: Popen[bytes], launch: Launch) -> None:
    """Spark gives the file its name when it is whole."""
    waiting, now_s = threading.Event(), SystemClock().monotonic_s
    until_s = now_s() + launch.most_s
    while not told.is_file():
        if (status := process.poll()) is not None:
            if process.stdin is not None:
                process.stdin.close()
            raise _ended_early(status)
        if now_s() > until_s:
            _end(process, launch)
            msg = f"Java has not said for {launch.most_s:g} seconds that Spark can start, and was ended"
            todo = "It is tried again. Look whether libraries that it fetches (spark.jars.packages) can be reached."
            raise StageError(msg, left="Nothing was changed.", todo=todo)
        waiting.wait(_LOOK_S)


def _ended_early(status: int) -> Exception:
    """Settings that Java refuses are for people. When it was killed, for want of memory or by somebody, it is not so
    the next time."""
    msg, left = f"Java ended with status {status} before Spark had started", "Nothing was changed."
    if status < 0 or status > _SIGNALS:
        return StageError(msg, left=left, todo="It is tried again; see the log.")
    return ConfigError(msg, left=left, todo="See the log; `lading doctor` tries the same.")


def end_early(process: Popen[bytes]) -> None:
    """End a Java that was started in a group of its own and that nobody needs after all. It has done nothing yet."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end(process: Popen[bytes], launch: Launch) -> None:
    """With what the launcher has started, if that can be told from this process."""
    if launch.shares_group:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
