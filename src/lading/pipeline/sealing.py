"""What a task is given, sealed: Spark keeps what it sends to tasks for as long as it likes, also on disks.

Spark serializes the functions of a job and sends them to every executor as a block, which stays there until Java tidies
up. So the keys of sources and tables are not in them: they are sealed with a key that is made for one batch or one
query, and that travels with its jobs as a property. Spark's logs redact it by its name; it is gone when the job is.
"""

from __future__ import annotations

import pickle
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lading.errors import StageError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

PROPERTY = "spark.lading.task.secret"
TO_READ, TO_WRITE = "spark.lading.task.read.secret", "spark.lading.task.write.secret"
"""What the tasks of one job are given, beside their functions: those stay the same from batch to batch."""
_PROPERTIES = (PROPERTY, TO_READ, TO_WRITE)
SETTING = dict.fromkeys(_PROPERTIES, "is set for each job")
"""Spark redacts a property of a job in its logs when it is a setting of the application, too."""
_NONCE_BYTES = 12


def new_key() -> str:
    """A key for the jobs of one batch or one query."""
    return AESGCM.generate_key(bit_length=256).hex()


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value that only tasks of the job that has its key can read."""

    closed: bytes

    @classmethod
    def of(cls, value: object, key: str) -> Self:
        """Seal a value."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return cls(nonce + AESGCM(bytes.fromhex(key)).encrypt(nonce, _pickled(value), None))

    def open(self) -> Any:
        """The value, within a task."""
        key = _property(PROPERTY)
        opened = AESGCM(bytes.fromhex(key)).decrypt(self.closed[:_NONCE_BYTES], self.closed[_NONCE_BYTES:], None)
        return pickle.loads(opened)  # noqa: S301 - sealed by the driver of this job


@dataclass(frozen=True, slots=True)
class Beside:
    """Stands for a sealed value that travels with the jobs, and not in their functions."""

    name: str
    """One of TO_READ and TO_WRITE."""

    def open(self) -> Any:
        """The value, within a task."""
        return Sealed(b64decode(_property(self.name))).open()


def _property(name: str) -> str:
    from pyspark.taskcontext import TaskContext

    context = TaskContext.get()
    found = context.getLocalProperty(name) if context else None
    if not found:
        msg = "A task came without the key of its job, or without what it is to do"
        raise StageError(msg, left="Nothing was committed.", todo="It is tried again.")
    return found


def _pickled(value: object) -> bytes:
    from pyspark.serializers import CloudPickleSerializer

    found: bytes = CloudPickleSerializer().dumps(value)  # type: ignore[no-untyped-call]  # PySpark has no types here
    return found


@contextmanager
def with_key(session: SparkSession, key: str, beside: Mapping[str, Sealed] = MappingProxyType({})) -> Iterator[None]:
    """Within this, jobs that this thread starts with the session can open what was sealed with the key."""
    context = session.sparkContext
    given = {PROPERTY: key, **{name: b64encode(sealed.closed).decode() for name, sealed in beside.items()}}
    try:
        for name, value in given.items():
            session.conf.unset(name)  # Spark gives settings of a session to its jobs, over their own properties.
            context.setLocalProperty(name, value)
        yield
    finally:
        _forget(context, given)


def _forget(context: SparkContext, names: Iterable[str]) -> None:
    from py4j.protocol import Py4JError

    try:
        for name in names:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # None: it is not set
    except (Py4JError, OSError):
        return  # Spark has ended, and the key with it.
