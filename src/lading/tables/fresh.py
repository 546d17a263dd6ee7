"""Keys that end, on their way to executors: what is pickled for a batch has those that are good at that moment.

A catalog that lends keys for the files of a table lends them for an hour or so, and a job runs for months. Parts of a
job that reach its table are made once, when it is opened, and sealed and sent for each batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore, open_store
from lading.tables.base import WriterSpec

T = TypeVar("T")


class Fresh(Generic[T]):
    """A function with the access of now. In another process it is the function with the access of when it was sent."""

    def __init__(self, make: Callable[[S3Access], Callable[..., T]], renew: Callable[[], S3Access]) -> None:
        self._make = make
        self._renew = renew

    def __call__(self, *args: object) -> T:
        return self._make(self._renew())(*args)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return partial, (self._make(self._renew()),)


def fresh_store(spec: WriterSpec, renew: Callable[[], S3Access] | None) -> Callable[[], ObjectStore]:
    """The place of a table, opened when it is called."""
    if renew is None:
        return partial(open_store, spec.location, spec.options)
    return Fresh(lambda access: partial(open_store, spec.location, access), renew)


def fresh_writer(
    open_writer: Callable[[WriterSpec, str], T], spec: WriterSpec, renew: Callable[[], S3Access] | None
) -> Callable[[str], T]:
    """A writer for an attempt."""
    if renew is None:
        return partial(open_writer, spec)
    return Fresh(lambda access: partial(open_writer, replace(spec, options=access)), renew)
