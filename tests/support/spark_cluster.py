"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own that can be killed.

From the pip package of Spark, with a secret. The workers' Python is one that has neither Lading nor its libraries: what
tasks import comes with the job, in the archive of `lading package`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, Popen

from pyspark.find_spark_home import _find_spark_home

from lading.pipeline.java import find_java

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "sun.nio.ch",
    "sun.security.action",
)
EXECUTOR = "CoarseGrainedExecutorBackend"
_START_S = 60.0
_LOOK_S = 0.05


@dataclass
class SparkCluster:
    """Processes by their names: `master`, `worker-0`, `worker-1` and so on."""

    folder: Path
    cores: tuple[int, ...] = (2, 1)
    """Of each worker: together another number than most machines have, so that nobody takes the one for the other."""
    python: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    """More settings of master and workers."""
    processes: dict[str, Popen[bytes]] = field(default_factory=dict)
    port: int = 0
    killed: set[int] = field(default_factory=set)
    """They may be seen for a moment longer: nobody is killed twice."""

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def secret_file(self) -> Path:
        return self.folder / "secret"

    @property
    def settings(self) -> dict[str, str]:
        """What a driver needs to use it, as docs/cluster.md says; the rest keeps the tests small."""
        return {
            "spark.master": self.master,
            "spark.authenticate.secret.file": str(self.secret_file),
            "spark.pyspark.python": self.python,
            "spark.executor.memory": "512m",
            # What runs is told at once, so that a test sees short tasks, too.
            "spark.ui.liveUpdate.period": "0",
        }

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.python = self.python or bare_python(self.folder / "bare")
        self.secret_file.write_text(secrets.token_hex(16))
        self.secret_file.chmod(0o600)
        self.start_master()
        for number in range(len(self.cores)):
            self.start_worker(number)
        self.wait_until(lambda: self.log("master").count("Registering worker") >= len(self.cores), "workers")

    def start_master(self) -> None:
        """Start it, or start it again where it was."""
        self._start(
            "master",
            [
                MASTER,
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--webui-port",
                "0",
                "--properties-file",
                str(self.folder / "conf" / "spark-defaults.conf"),
            ],
        )
        begun = re.compile(r"Starting Spark master at spark://127\.0\.0\.1:(\d+)")
        self.wait_until(lambda: begun.search(self.log("master")) is not None, "a master")
        found = begun.search(self.log("master"))
        assert found is not None
        self.port = int(found[1])

    def start_worker(self, number: int) -> None:
        """Each has an address of its own: Spark runs no second attempt of a task on the host that has the first."""
        work, host = self.folder / f"work-{number}", f"127.0.0.{number + 1}"
        command = [
            WORKER,
            "--host",
            host,
            "--cores",
            str(self.cores[number]),
            "--memory",
            "600m",
            "--webui-port",
            "0",
            "--properties-file",
            str(self.folder / "conf" / "spark-defaults.conf"),
        ]
        self._start(f"worker-{number}", [*command, "--work-dir", str(work), self.master], host)

    def kill(self, name: str) -> int:
        """SIGKILL, and no waiting for anything but its end. How many were killed: it has to be alive."""
        process = self.processes[name]
        assert process.poll() is None, f"{name} was dead already"
        process.kill()
        process.wait(20)
        return 1

    def kill_worker(self, number: int) -> int:
        """With its executors, once it has some: a machine that is gone."""
        name = f"worker-{number}"
        self.wait_until(lambda: self.executors(name), f"executor of {name}")
        executors = self.executors(name)
        killed = self.kill(name)
        kill_all(executors)
        return killed

    def executors(self, only: str = "worker") -> list[int]:
        """The processes of executors, by their workers."""
        found = []
        for name, process in self.processes.items():
            if name.startswith(only) and process.poll() is None:
                found += [pid for pid in descendants(process.pid) if EXECUTOR in command_of(pid)]
        return found

    def python_workers(self, only: str = "worker") -> list[int]:
        """The Python processes below executors that run tasks: those that a daemon has forked."""
        daemons = [pid for java in self.executors(only) for pid in children(java) if "daemon" in command_of(pid)]
        return [pid for daemon in daemons for pid in children(daemon)]

    def kill_python_workers(self) -> int:
        """Kill all that there are, if need be as soon as there are any: an executor that has just started has none."""
        return self._kill_alive(self.python_workers, 999, "Python workers")

    def stop_python_workers(self, only: str) -> list[int]:
        """SIGSTOP: they hang, as on a machine that is very slow. Who they are, for `go_on`."""
        self.wait_until(lambda: self.python_workers(only), "Python workers")
        found = self.python_workers(only)
        kill_all(found, signal.SIGSTOP)
        return found

    def kill_executors(self, most: int) -> int:
        """Kill some, if need be as soon as there are any."""
        return self._kill_alive(self.executors, most, "executors")

    def _kill_alive(self, look: Callable[[], list[int]], most: int, what: str) -> int:
        """How many were killed of those that the same look found, and never none."""
        found = list[int]()

        def is_there() -> bool:
            found[:] = [pid for pid in look() if pid not in self.killed][:most]
            return bool(found)

        self.wait_until(is_there, what)
        kill_all(found)
        self.killed.update(found)
        return len(found)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_until(self, is_so: Callable[[], object], what: str, timeout_s: float = _START_S) -> None:
        waiting = threading.Event()
        for _ in range(int(timeout_s / _LOOK_S)):
            if is_so():
                return
            waiting.wait(_LOOK_S)
        logs = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self.processes)
        msg = f"the cluster has no {what}\n{logs}"
        raise AssertionError(msg)

    def stop(self) -> None:
        executors = [*self.executors(), *self.python_workers()]
        for process in self.processes.values():
            process.kill()
            process.wait(20)
        kill_all(executors)  # They end by themselves when their worker is gone, but not before the next test.
        for folder in (path for path in self.folder.iterdir() if path.is_dir()):
            shutil.rmtree(folder, ignore_errors=True)  # What executors unpack is large.

    def _start(self, name: str, words: list[str], host: str = "127.0.0.1") -> None:
        """Dies with the test: each process ends when its parent does."""
        home = _find_spark_home()
        conf = self.folder / "conf"
        conf.mkdir(exist_ok=True)
        settings = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self.secret_file.read_text(),
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.master.rest.enabled": "false",
            "spark.worker.cleanup.enabled": "false",
            **self.more,
        }
        defaults = conf / "spark-defaults.conf"
        defaults.touch(mode=0o600)
        defaults.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        (conf / "log4j2.properties").write_text(_LOGS)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SPARK_HOME": home,
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "JAVA_TOOL_OPTIONS": os.environ.get("JAVA_TOOL_OPTIONS", ""),
        }
        if "JAVA_HOME" in os.environ:
            environment["JAVA_HOME"] = os.environ["JAVA_HOME"]
        java = Path(find_java(os.environ, self.folder).home) / "bin" / "java"
        # What `spark-class` runs, without the Java that it starts to find that out.
        options = ["-Xmx256m", *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED)]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = Popen(
                [str(java), "-cp", f"{conf}:{home}/jars/*", *options, *words],
                stdin=DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self.folder,
                preexec_fn=_die_with_parent,
            )


@contextmanager
def serve_cluster(folder: Path, **words: object) -> Iterator[SparkCluster]:
    """A cluster, until the block ends."""
    cluster = SparkCluster(folder, **words)  # type: ignore[arg-type]
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def kill_all(pids: list[int], how: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, how)


def go_on(pids: list[int]) -> None:
    """After `stop_python_workers`."""
    kill_all(pids, signal.SIGCONT)


def bare_python(folder: Path) -> str:
    """A Python of this version without any package."""
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # It ended meanwhile.
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


_LOGS = """rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""
