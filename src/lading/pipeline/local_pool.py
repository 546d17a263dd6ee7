"""The worker process of this machine, as the service has it: started when it is needed, and again when it died."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from lading.pipeline.child_output import log_lines
from lading.pipeline.environment import spark_environment
from lading.pipeline.local_worker import MODULE, receive, send

_LOOK_S = 0.2
LOG = "lading.worker"
"""The logger of what workers write."""
LOST = "Python worker exited unexpectedly: it was killed, or a library ended it"
"""As Spark says it; see `errors`."""
CUT_OFF = "The batch was cut off"
NOT_STARTED = "The process that reads and writes did not start, or was cut off before it had begun; see the log"
"""Nothing was read yet: what the batch has to read did not end it."""


def is_possible(variables: Mapping[str, str]) -> bool:
    """Whether tasks can do without Spark: on a system whose processes can be forked and hidden from each other, and
    where Spark has no settings that Lading did not give it."""
    if not sys.platform.startswith("linux"):
        return False
    found = find_spec("pyspark")
    own = str(Path(found.origin).parent) if found is not None and found.origin is not None else ""
    folder = variables.get("SPARK_CONF_DIR") or f"{variables.get('SPARK_HOME') or own}/conf"
    return not any((Path(folder) / name).exists() for name in ("spark-defaults.conf", "spark-env.sh"))


class TaskFailedError(Exception):
    """What a task raised, as text: as Spark tells it."""


class LocalPool:
    """As many tasks at once as the machine is to do, of all jobs together, in the order in which they came. A batch
    asks for no more at once than run at once, so jobs take turns. Safe to use from many threads."""

    def __init__(self, variables: Mapping[str, str], slots: int) -> None:
        """`variables` is the environment of the service, of which workers are given what Spark's are."""
        # Spark's workers have one thread for Arrow, too: there are as many tasks as cores.
        self._environment = {"OMP_NUM_THREADS": "1", **spark_environment(variables)}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._modules = ""
        self._busy = 0
        self._waiting = deque[threading.Event]()
        self.slots = slots

    def start(self, modules: Iterable[str]) -> None:
        """Begin to start the process, if it does not run: it imports while others go on. These modules, too."""
        with self._lock:
            self._modules = " ".join(sorted({*self._modules.split(), *modules}))
            self._order([])

    @contextmanager
    def worker(self) -> Iterator[socket.socket]:
        """A socket to a child that waits for its task; the child ends when it is closed."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                self._order([theirs.fileno()])
            yield ours

    @contextmanager
    def slot(self, is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """The right to have a task done. Raises TaskFailedError when nobody wants it any more."""
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._give_turns()
        try:
            while not turn.wait(_LOOK_S):
                if is_over():
                    raise TaskFailedError(CUT_OFF)
            yield
        finally:
            with self._lock:
                if turn.is_set():
                    self._busy -= 1
                else:
                    self._waiting.remove(turn)
                self._give_turns()

    def _give_turns(self) -> None:
        while self._waiting and self._busy < self.slots:
            self._busy += 1
            self._waiting.popleft().set()

    def rest(self) -> None:
        """End the process, unless somebody has a task done: one may be on its way to it."""
        with self._lock:
            if not self._busy:
                self._forget()

    def close(self) -> None:
        """End the process. Children end with the sockets of those who wait for them."""
        with self._lock:
            self._forget()

    def _order(self, sockets: list[int]) -> None:
        order = b" " + self._modules.encode()
        try:
            socket.send_fds(self._started(), [order], sockets)
        except OSError:
            # It has died since it was looked at, and with it nothing but the wish for a task.
            self._forget()
            socket.send_fds(self._started(), [order], sockets)

    def _started(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._forget()
        if self._process is None or self._orders is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            reading, writing = os.pipe()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this very Python
                    [sys.executable, "-m", MODULE],
                    stdin=theirs.fileno(),
                    stdout=writing,
                    stderr=writing,
                    env=self._environment,
                    process_group=0,  # Ctrl-C at a terminal is for the service, which lets the batch end.
                )
            except BaseException:
                ours.close()
                os.close(reading)
                raise
            finally:
                theirs.close()
                os.close(writing)
            log_lines(reading, logging.getLogger(LOG))
            self._orders = ours
        return self._orders

    def _forget(self) -> None:
        if self._orders is not None:
            self._orders.close()
        if self._process is not None:
            self._process.kill()  # It keeps nothing.
            self._process.wait()
        self._process = self._orders = None


def ask(worker: socket.socket, task: bytes) -> list[str]:
    """Have a task done. Raises TaskFailedError."""
    try:
        receive(worker)
    except (EOFError, OSError) as error:
        raise TaskFailedError(NOT_STARTED) from error
    reports: list[str]
    try:
        send(worker, task)
        reports, failure = pickle.loads(receive(worker))  # noqa: S301 - from a child of this process
    except (EOFError, OSError) as error:
        raise TaskFailedError(LOST) from error
    if failure:
        raise TaskFailedError(failure)
    return reports


def cut_off(worker: socket.socket) -> None:
    """End a child, whatever it does. Who waits for it hears that it is gone."""
    with suppress(OSError):
        worker.shutdown(socket.SHUT_RDWR)
