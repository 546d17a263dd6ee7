"""The process that stages batches of the vector path on this machine, without Spark: it forks a child for each task.

It has everything imported that tasks need, and keeps nothing of them: a child gets one task over a socket of its own,
answers, and ends. A child whose socket is closed from the other side ends at once, whatever it does: its batch was cut
off, or the service has died. Files that it wrote until then are orphans, as those of any attempt that nobody accepted.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lading.pipeline.freed_memory import keep_freed_memory
from lading.pipeline.private_memory import hide_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

MODULE = "lading.pipeline.local_worker"
MOST_ORDER = 4096
"""Bytes of an order: modules to import, with a socket for a child or without one."""
LENGTH = struct.Struct("!Q")
"""Before each message its length in bytes."""
_NEEDED = (
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.json",
    "pyarrow.parquet",
    "lading.settings",
    "lading.pipeline.vector.task",
    "lading.pipeline.quarantine",
    "lading.sources.files.reader",
    "lading.tables.parquet",
    "lading.tables.registry",
)
"""By name, as in `daemon`: the pipeline knows neither sources nor tables."""


def main() -> None:
    """Fork until the service closes the socket that is standard input here."""
    hide_memory()
    keep_freed_memory()
    orders = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # What a library prints is for the log.
    _import(_NEEDED)
    _leave_out_pandas()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The system forgets children that ended.
    while True:
        order, given, _, _ = socket.recv_fds(orders, MOST_ORDER, 1)
        if not order:
            return
        _import(order.decode().split())
        for task in given:
            if os.fork() == 0:
                orders.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(socket.socket(fileno=task))
            os.close(task)


def _import(names: Iterable[str]) -> None:
    """Once, so that no child has to."""
    is_new = False
    for name in names:
        if name not in sys.modules:
            with suppress(Exception):  # The task says what is missing.
                importlib.import_module(name)
                is_new = True
    if is_new:
        gc.collect()
        gc.freeze()  # Children that look for garbage would copy every page of it.


def _leave_out_pandas() -> None:
    from lading.pipeline.without_pandas import leave_out_pandas

    leave_out_pandas()


def _answer(caller: socket.socket) -> None:
    """One task in a process of its own, which ends with it."""
    try:
        send(caller, b"ready")
        packed = receive(caller)
        threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
        send(caller, pickle.dumps(_outcome(packed)))
    finally:
        sys.stderr.flush()
        os._exit(0)


def _end_with(caller: socket.socket) -> None:
    """Nothing more comes from the other side but its end."""
    with suppress(OSError):
        caller.recv(1)
    os._exit(1)


def _outcome(packed: bytes) -> tuple[list[str], str]:
    """Reports, or what went wrong, as Python tells it."""
    try:
        return list(_reports(pickle.loads(packed))), ""  # noqa: S301 - from the service, through a socket that it made
    except BaseException:  # noqa: BLE001 - told to the service
        return [], traceback.format_exc()


def _reports(task: Any) -> Iterator[str]:
    import pyarrow as pa

    from lading.pipeline.vector.task import vector_task
    from lading.settings import lent_variables

    tools, plan, schema, attempt, numbers = task
    splits: pa.RecordBatch = pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int64())})
    with lent_variables(tools.identity):
        for batch in vector_task(tools, plan, schema, attempt, iter([splits])):
            yield from batch.column(0).to_pylist()


def send(to: socket.socket, message: bytes) -> None:
    """A message with its length."""
    to.sendall(LENGTH.pack(len(message)) + message)


def receive(of: socket.socket) -> bytes:
    """A whole message. Raises EOFError when the other side ended before."""
    return _exactly(of, LENGTH.unpack(_exactly(of, LENGTH.size))[0])


def _exactly(of: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = of.recv(min(count - len(found), 1 << 20))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


if __name__ == "__main__":
    main()
