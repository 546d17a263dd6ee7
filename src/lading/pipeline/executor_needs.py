"""What an executor must have to run a task: this Lading, its libraries, this Python and this Spark."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import lading
from lading.errors import ConfigError
from lading.pipeline.guard import fingerprint_of

LIBRARIES = (
    "boto3",
    "confluent-kafka",
    "cryptography",
    "fastavro",
    "numpy",
    "orjson",
    "pandas",
    "protobuf",
    "pyarrow",
    "pyiceberg",
    "sqlglot",
)
"""What tasks import beside Spark itself. Those of the service alone (web, store, delta-rs) are not among them."""
ALWAYS = ("cryptography", "numpy", "orjson", "pandas", "pyarrow")
"""What every task imports, whatever it reads and writes."""


@functools.cache
def fingerprint() -> str:
    """The content of the package, in a few letters: two Ladings of one version may differ while one is developed."""
    return fingerprint_of(str(Path(lading.__file__).parent))


def needs_of(libraries: Iterable[str] = ()) -> dict[str, object]:
    """What an executor is asked for, in a form that every version of Lading can read. See `guard`."""
    names = sorted({*ALWAYS, *libraries})
    return {
        "lading": lading.__version__,
        "fingerprint": fingerprint(),
        "python": list(sys.version_info[:2]),
        "spark": metadata.version("pyspark"),
        "libraries": {name: version_of(name) for name in names},
    }


def version_of(library: str) -> str:
    """The version that is installed here. Raises ConfigError."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError as error:
        msg = f"{library} is not installed here"
        raise ConfigError(msg, left="Nothing was started.", todo=f"Install it: pip install {library}.") from error


def digest(*texts: str) -> str:
    """A few letters for many."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
