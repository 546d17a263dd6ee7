"""`lading package`: one archive with Lading and all that its tasks import, for executors that have Python and Spark.

Spark sends the archive to every executor and unpacks it beside the executor's other files (`spark.archives`); Python
finds it by PYTHONPATH. Libraries are those of this machine: executors have the same system and the same Python, 3.11
for 3.11. The same libraries make the same archive, byte for byte.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import re
import secrets
import sys
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import lading
from lading.errors import ConfigError
from lading.pipeline.executor_needs import LIBRARIES, digest, fingerprint, version_of
from lading.pipeline.guard import NOT_ON_EXECUTORS

MANIFEST = "lading-package.json"
_LEVEL = 1
"""Twice as quick as the usual one, and a tenth larger."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[([^]]*)])?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_EXTRAS = {"confluent-kafka": {"avro", "protobuf"}}
_NOT_PACKED = {"pyspark", "py4j", "lading"}
"""Spark brings its own Python; Lading is packed as it is imported here."""
_USELESS = re.compile(
    r"(?:.*/)?__pycache__/.*|.*\.(?:pyi|pyx|pxd|pyc|a|h|hpp)|(?:numpy|pandas|pyarrow)/(?:.*/)?tests/.*|pyarrow/(?:include|src)/.*"
    r"|pyarrow/(?:lib)?(?:_flight|arrow_flight)\W.*"
)
_CLOUD = re.compile(r"botocore/data/([^/]+)/.*")
_CLOUD_SERVICES = {"s3", "kinesis", "sts", "sso", "sso-oidc", "signin"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What was built."""

    path: Path
    size_bytes: int
    libraries: dict[str, str]
    """Name and version of all that is in it, beside Lading."""


def build_archive(output: Path, libraries: Iterable[str] = LIBRARIES) -> Archive:
    """Write the archive. Killed at any moment, it leaves no file of that name or a whole one. Raises ConfigError."""
    found = _with_dependencies(libraries)
    manifest = {
        "lading": lading.__version__,
        "fingerprint": fingerprint(),
        "python": ".".join(map(str, sys.version_info[:2])),
        "system": f"{platform.system()} {platform.machine()}".lower(),
        "libraries": {name: dist.version for name, dist in sorted(found.items())},
    }
    draft = output.with_name(f".{output.name}.{secrets.token_hex(4)}")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with (
            draft.open("wb") as raw,
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add(tar, MANIFEST, json.dumps(manifest, indent=1).encode(), executable=False)
            for name, path in sorted(_files(found)):
                _add(tar, name, path.read_bytes(), executable=os.access(path, os.X_OK))
        # Killed here: a draft is left, whose name nobody reads.
        draft.replace(output)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        msg = f"The archive {output} cannot be written: {error.strerror or error}"
        raise ConfigError(msg, left="There is no new archive.", todo="Name another place with --output.") from error
    libraries_in = {name: dist.version for name, dist in sorted(found.items())}
    return Archive(path=output, size_bytes=output.stat().st_size, libraries=libraries_in)


def archive_name() -> str:
    """What the archive of this Lading and these libraries is called, so that another one has another name."""
    versions = [f"{name} {dist.version}" for name, dist in sorted(_with_dependencies(LIBRARIES).items())]
    return f"lading-{lading.__version__}-{digest(fingerprint(), sys.version, *versions)}.tar.gz"


def _add(tar: tarfile.TarFile, name: str, content: bytes, *, executable: bool) -> None:
    told = tarfile.TarInfo(name)
    told.size, told.mode = len(content), 0o755 if executable else 0o644
    tar.addfile(told, io.BytesIO(content))


def _with_dependencies(libraries: Iterable[str]) -> dict[str, metadata.Distribution]:
    """Distributions by name. One that is not installed here is asked for by another system or another Python."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(name, frozenset(_EXTRAS.get(name, ()))) for name in libraries]
    for name, _ in waiting:
        version_of(name)
    seen = set[tuple[str, frozenset[str]]]()
    while waiting:
        name, extras = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extras) in seen or key in _NOT_PACKED:
            continue
        seen.add((key, extras))
        with suppress(metadata.PackageNotFoundError):
            found[key] = metadata.distribution(name)
            waiting += _asked_by(found[key], extras)
    return found


def _asked_by(dist: metadata.Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for text in dist.requires or ():
        asked, _, condition = text.partition(";")
        named = _REQUIREMENT.match(asked.strip())
        extra = _EXTRA.search(condition)
        if named and (extra is None or extra[1] in extras):
            yield named[1], frozenset(filter(None, re.split(r"[\s,]+", named[2] or "")))


def _files(found: dict[str, metadata.Distribution]) -> Iterator[tuple[str, Path]]:
    """Names in the archive, and where each file is. Programs of the packages are left out: executors run none."""
    for dist in found.values():
        for file in dist.files or ():
            name = str(file)
            service = _CLOUD.fullmatch(name)
            if name.startswith("..") or _USELESS.fullmatch(name) or (service and service[1] not in _CLOUD_SERVICES):
                continue
            yield name, Path(str(dist.locate_file(file)))
    root = Path(lading.__file__).parent
    for path in root.rglob("*.py"):
        inside = path.relative_to(root)
        if inside.parts[0] != NOT_ON_EXECUTORS:
            yield f"lading/{inside}", path
