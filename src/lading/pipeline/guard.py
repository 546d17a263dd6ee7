"""What runs first in every task on another machine: is this the Lading that the job was planned with?

This module is sent to executors with each job, by value: an executor that has another Lading, or none, could not be
asked by code of its own. So it uses nothing but Python's library, in the forms that old versions have, too. The task
itself is unpacked only after the executor was found fit: an older one might read it as something else.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import sys
from typing import Any

UNFIT = "UnfitExecutorError"
"""How the driver knows this failure among others."""

NOT_ON_EXECUTORS = "testing"
"""What only commands on the machine of the service use."""


def guarded(needs: dict[str, Any], packed: bytes, batches: Any) -> Any:
    """Run a task on an executor that is fit for it. Raises RuntimeError, whose text begins with UNFIT."""
    missing = unfitness(needs)
    if missing:
        message = UNFIT + ": " + where() + " " + "; ".join(missing)
        raise RuntimeError(message)
    return pickle.loads(packed)(batches)  # noqa: S301 - packed by the driver of this job


def unfitness(needs: dict[str, Any]) -> list[str]:
    """What is wrong with this executor, in words; empty when it is fit."""
    found = []
    python = list(sys.version_info[:2])
    if python != needs["python"]:
        found.append("runs Python " + _dotted(python) + ", and the service " + _dotted(needs["python"]))
    found += _lading_unfitness(needs)
    import pyspark

    if pyspark.__version__ != needs["spark"]:
        found.append("has Spark " + pyspark.__version__ + ", and the service " + needs["spark"])
    from importlib import metadata

    for name, wanted in sorted(needs["libraries"].items()):
        try:
            there = metadata.version(name)
        except metadata.PackageNotFoundError:
            found.append("lacks " + name + ", of which the service has " + wanted)
            continue
        if _major(there) != _major(wanted):
            found.append("has " + name + " " + there + ", and the service " + wanted)
    return found


def _lading_unfitness(needs: dict[str, Any]) -> list[str]:
    try:
        import lading
    except ImportError:
        return ["has no Lading, and the service " + needs["lading"]]
    version = getattr(lading, "__version__", "of an unknown version")
    if version != needs["lading"]:
        return ["has Lading " + version + ", and the service " + needs["lading"]]
    known = getattr(lading, "_fingerprint", None) or fingerprint_of(os.path.dirname(lading.__file__))
    lading._fingerprint = known  # noqa: SLF001 - workers are used again
    if known != needs["fingerprint"]:
        return [
            "has another build of Lading "
            + version
            + " ("
            + known
            + ") than the service ("
            + needs["fingerprint"]
            + ")"
        ]
    return []


def fingerprint_of(folder: str) -> str:
    """The content of all Python files in a folder, in sixteen letters."""
    told = hashlib.sha256()
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != NOT_ON_EXECUTORS)
        for name in sorted(names):
            if name.endswith(".py"):
                file = os.path.join(path, name)
                told.update(os.path.relpath(file, folder).encode() + b"\0")
                with open(file, "rb") as content:
                    told.update(hashlib.sha256(content.read()).digest())
    return told.hexdigest()[:16]


def where() -> str:
    """Which executor this is."""
    return "The executor on " + socket.gethostname() + " (Python " + sys.executable + ")"


def _major(version: str) -> list[str]:
    """What must be the same: the first number that is not 0."""
    parts = version.split(".")
    return parts[:2] if parts[0] == "0" else parts[:1]


def _dotted(numbers: list[int]) -> str:
    return ".".join(str(number) for number in numbers)
