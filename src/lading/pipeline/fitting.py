"""Tasks that run on other machines ask first whether those are fit for them. See `guard`, which goes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from lading.pipeline import guard
from lading.pipeline.executor_needs import needs_of
from lading.pipeline.session import is_local

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def fit(session: SparkSession, task: Task, libraries: Iterable[str] = ()) -> Task:
    """The task, with the check before it. On this machine there is nothing to check: it is this very Lading."""
    if is_local(session):
        return task
    cloudpickle.register_pickle_by_value(guard)  # type: ignore[no-untyped-call]  # nor here
    packed: bytes = CloudPickleSerializer().dumps(task)  # type: ignore[no-untyped-call]  # PySpark has no types here
    return partial(guard.guarded, needs_of(libraries), packed)
