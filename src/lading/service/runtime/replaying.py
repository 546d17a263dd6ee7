"""Since when a replay writes files that nothing names yet. A batch tells that by its task, and a replay has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from lading.errors import LadingError
from lading.ids import JobId
from lading.store.protocols import MetadataStore

_PREFIX = "replay/"
"""Settings of the store that have it, by the job."""


@contextmanager
def replaying(store: MetadataStore, job_id: JobId, at: datetime) -> Iterator[None]:
    """Within this nobody takes the files of a replay for orphans. Dies in it: files that were written since stay until
    the job is resumed, or another replay has ended."""
    store.write_setting(_PREFIX + job_id, at.isoformat())
    try:
        yield
    finally:
        with suppress(LadingError):
            store.drop_setting(_PREFIX + job_id)


def replays_since(store: MetadataStore) -> dict[JobId, datetime]:
    """The jobs whose bad rows are taken up now, or were when a process died."""
    told = store.list_settings().items()
    return {JobId(key.removeprefix(_PREFIX)): datetime.fromisoformat(at) for key, at in told if key.startswith(_PREFIX)}
