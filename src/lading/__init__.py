"""Lading: continuous loads into lakehouse tables, each record once."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lading.errors import LadingError

if TYPE_CHECKING:
    from lading.connecting import RemoteHome, RemoteJob, connect
    from lading.jobs.record import JobRecord, JobState
    from lading.service.facade import Lading
    from lading.service.result import Result
    from lading.service.session import Session
    from lading.service.views.verify import Verdict
    from lading.tables.base import LakeTable

__version__ = "0.1.0"

__all__ = [
    "JobRecord",
    "JobState",
    "Lading",
    "LadingError",
    "LakeTable",
    "RemoteHome",
    "RemoteJob",
    "Result",
    "Session",
    "Verdict",
    "__version__",
    "connect",
]

_PLACES = {
    "connect": "lading.connecting",
    "RemoteHome": "lading.connecting",
    "RemoteJob": "lading.connecting",
    "Lading": "lading.service.facade",
    "Session": "lading.service.session",
    "Result": "lading.service.result",
    "Verdict": "lading.service.views.verify",
    "JobRecord": "lading.jobs.record",
    "JobState": "lading.jobs.record",
    "LakeTable": "lading.tables.base",
}


def __getattr__(name: str) -> Any:
    # Workers of Spark import this package for a reader or a writer: they must not pay for the service.
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
