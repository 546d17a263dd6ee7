"""One query on Spark: from a request on a socket to an answer on it. Runs in the query process.

What reads the socket at the other end is the service. When it closes its half, nobody wants the answer any more.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructField, StructType
from pyspark.util import _local_iterator_from_socket

from lading.errors import ConfigError, LadingError
from lading.model.field_ids import field_id
from lading.pipeline.checked import checked_query
from lading.pipeline.environment import without_identity
from lading.pipeline.remote import RemoteFiles, empty_frame, remote_frame
from lading.pipeline.sealing import new_key, with_key
from lading.pipeline.session import is_local
from lading.service.spark_queries.wire import (
    BATCH,
    DONE,
    ERROR,
    HEAD,
    MOST_BYTES,
    PeerGoneError,
    QueryFailure,
    QueryRequest,
    View,
    read_frame,
    send_frame,
)
from lading.storage.store import StoragePlace

KEPT = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
CLOSED = {
    # A column that was renamed has its old name in old files.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # Without this, text.`/path` is a table.
    "spark.sql.runSQLOnFiles": "false",
    # Without this, '${env:NAME}' is the value of a variable of the process.
    "spark.sql.variable.substitute": "false",
}
"""What the check of a query refuses already; Spark must not know it either."""
QUERY = "mdc.lading_query"
"""Which query a task is for. Spark writes it beside what the task logs; see `worker`."""
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", QUERY)
_ROWS_AT_ONCE = 256
"""Spark counts the rows of a batch and not their bytes."""
_AGAIN_S = 0.2
_LONGEST_REQUEST = 1024 * 1024 * 1024

OnFailure = Callable[[str, Exception], QueryFailure]
"""What to say of an error of Spark, given the name of the query."""


def answer(spark: SparkSession, peer: socket.socket, name: str, on_failure: OnFailure) -> None:
    """Answer the query that is asked on a socket. It is closed when all tasks of the query have ended."""
    with peer:
        try:
            _, raw = read_frame(peer, most=_LONGEST_REQUEST)
            with _watched(spark.sparkContext, peer, name):
                failure = _try(spark, peer, QueryRequest.decoded(raw), lambda error: on_failure(name, error))
            send_frame(peer, *((DONE,) if failure is None else (ERROR, failure.encoded())))
        except OSError:
            pass  # The service does not want the answer any more, or is gone.
        with suppress(Py4JError, OSError):  # Spark itself was ended.
            _wait_until_let_go(spark.sparkContext, name)


def _try(
    spark: SparkSession, peer: socket.socket, request: QueryRequest, on_failure: Callable[[Exception], QueryFailure]
) -> QueryFailure | None:
    try:
        _run(spark, peer, request)
    except PeerGoneError:
        raise
    except LadingError as error:
        return QueryFailure(kind=error.code, text=error.what)
    except Exception as error:  # noqa: BLE001 - told to the service; what py4j raises for a Java that died has no common class
        return on_failure(error)
    return None


def reading_session(spark: SparkSession) -> SparkSession:
    """A session for one query, which sees nothing of the others."""
    reading = spark.newSession()
    for name in KEPT:
        reading.conf.set(name, spark.conf.get(name) or "")
    for name, value in CLOSED.items():
        reading.conf.set(name, value)
    return reading


def _run(spark: SparkSession, peer: socket.socket, request: QueryRequest) -> None:
    reading, key = reading_session(spark), new_key()
    try:
        with with_key(reading, key):
            for view in request.views:
                _frame(reading, view, request, key).createOrReplaceTempView(view.name)
            found = checked_query(reading, request.text, [view.name for view in request.views])
            head = {b"names": b"\0".join(name.encode() for name in found.columns)}
            numbered = _numbered(found)
            shape = to_arrow_schema(numbered.schema, timezone="UTC", error_on_duplicated_field_names_in_struct=False)
            _send(peer, HEAD, shape.with_metadata(head).serialize().to_pybytes())
            for batch in _batches(reading, numbered):
                for part in _parts(batch, shape):
                    _send(peer, BATCH, part)
    finally:
        with suppress(Py4JError, OSError):  # Spark itself was ended.
            for view in request.views:
                reading.catalog.dropTempView(view.name)


def _send(peer: socket.socket, kind: bytes, content: bytes) -> None:
    """Errors of this socket are not those of the ones to Java."""
    try:
        send_frame(peer, kind, content)
    except OSError as error:
        raise PeerGoneError from error


def _frame(spark: SparkSession, view: View, request: QueryRequest, key: str) -> DataFrame:
    """The rows of a snapshot, for jobs that are run with the key."""
    if not view.files:
        return empty_frame(spark, view.schema)
    if view.storage is not None or not view.is_plain:
        place = StoragePlace(uri=view.root, access=view.storage)
        lent = request.identity if is_local(spark) and view.storage is not None else {}
        if view.storage is not None and view.storage.access_key:
            lent = without_identity(lent)
        remote = RemoteFiles(place=place, files=view.files, schema=view.schema, constants=view.constants, identity=lent)
        return remote_frame(spark, remote, key)
    reader = spark.read.schema(_java_schema(view.schema))
    if view.constants is not None:
        reader = reader.option("basePath", view.root)
    return reader.parquet(*(f"{view.root}/{path}" for path in view.files))


def _java_schema(schema: pa.Schema) -> StructType:
    """Spark reads columns by the numbers that files know them by, where there are any."""
    fields = []
    for field, shown in zip(schema, from_arrow_schema(schema), strict=True):
        number = field_id(field)
        metadata = {} if number is None else {"parquet.field.id": number}
        fields.append(StructField(shown.name, shown.dataType, shown.nullable, metadata))
    return StructType(fields)


def _numbered(found: DataFrame) -> DataFrame:
    """Columns by number, because their names may be the same; types that Arrow does not have become text."""
    numbered = found.toDF(*(f"c{number}" for number in range(len(found.columns))))
    odd = [field.name for field in numbered.schema if not _is_known(field.dataType)]
    return numbered.withColumns({name: numbered[name].cast("string") for name in odd}) if odd else numbered


def _is_known(kind: DataType) -> bool:
    try:
        to_arrow_type(kind, timezone="UTC", error_on_duplicated_field_names_in_struct=False)
    except PySparkException:
        return False
    return True


def _batches(spark: SparkSession, found: DataFrame) -> Iterator[bytes]:
    """Part after part, in their order: an answer may have more rows than any process has memory.

    The rows stay in Java and in Arrow's form; Python hands them on. Tasks are told the settings of the session here,
    which Spark does by itself for its own actions only.
    """
    context: Any = spark.sparkContext
    for name, value in spark.conf.getAll.items():
        if name.startswith("spark.sql."):
            context.setLocalProperty(name, value)
    rows = found._jdf.toArrowBatchRdd(_ROWS_AT_ONCE, "UTC", False, False)  # noqa: SLF001 - no public way to a stream
    served = context._jvm.PythonRDD.toLocalIteratorAndServe(rows, True)  # noqa: SLF001
    yield from _local_iterator_from_socket(served, NoOpSerializer())


def _parts(batch: bytes, shape: pa.Schema) -> Iterator[bytes]:
    """A batch, in parts that one frame can hold. A row that it cannot hold is refused where it is read."""
    if len(batch) <= MOST_BYTES:
        yield batch
        return
    whole = pa.ipc.read_record_batch(pa.py_buffer(batch), shape)
    half = whole.num_rows // 2
    if not half:
        msg = f"A row of the answer takes {len(batch)} bytes; the longest that can be sent has {MOST_BYTES}"
        raise ConfigError(msg, code="QueryLimit", left="Nothing was changed.", todo="Ask for shorter values.")
    for part in (whole.slice(0, half), whole.slice(half)):
        yield from _parts(part.serialize().to_pybytes(), shape)


@contextmanager
def _watched(context: SparkContext, peer: socket.socket, name: str) -> Iterator[None]:
    """Within this, jobs that this thread starts end soon after the service has closed its half of the socket.

    Spark forgets that a group was cancelled as soon as it has done so, and a query may start its next job after that:
    it is told again until the query has ended.
    """
    before = {each: context.getLocalProperty(each) for each in _GROUP}
    is_done = threading.Event()

    def cancel() -> None:
        with suppress(Py4JError, OSError):  # Spark itself was ended, or the query.
            peer.recv(1)
            while not is_done.is_set():
                context.cancelJobGroup(name)
                is_done.wait(_AGAIN_S)

    context.setJobGroup(name, "query", interruptOnCancel=True)
    context.setLocalProperty(QUERY, name)
    threading.Thread(target=cancel, name=f"{name}-watch", daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
        with suppress(Py4JError, OSError):
            for each, value in before.items():
                # Threads are used again, also for what nobody may cancel.
                context.setLocalProperty(each, value)  # type: ignore[arg-type]  # None: it is not set


def _wait_until_let_go(context: Any, group: str) -> None:
    """Until no task of a query runs any more. A task that was told to end does so when it looks, and may never look.

    Java names its threads after the tasks they run, which is exact; what Spark's own status says is seconds old. On a
    cluster tasks run elsewhere, and Spark replaces executors that do not let go (`spark.task.reaper`).
    """
    if not str(context.master).startswith("local"):
        return
    tracker = context.statusTracker()
    infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = tuple(f" in stage {stage}." for info in infos if info is not None for stage in info.stageIds)
    waiting = threading.Event()
    while any(stage in thread for thread in _threads(context) for stage in stages):
        waiting.wait(_AGAIN_S)


def _threads(context: Any) -> list[str]:
    found = context._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()  # noqa: SLF001
    return [str(thread.getName()) for thread in found]
