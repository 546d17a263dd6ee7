"""The manifest of a job's state, on the driver's side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress

from lading.clock import SystemClock
from lading.errors import LadingError, SourceError
from lading.model.batch import StateFile
from lading.model.manifests import parse_manifest, render_manifest
from lading.model.state import StateManifest, StateRef, stamp_of
from lading.pipeline.state.files import StatePlace

SUFFIX = ".manifest.json"


def read_manifest(place: StatePlace, state: StateRef | None, shape: str) -> StateManifest:
    """What a bill says that the job keeps. Raises SourceError, also when it is not what the job keeps now."""
    if state is None:
        return StateManifest(shape=shape)
    content = place.open().get(state.manifest)
    if content is None or hashlib.sha256(content).hexdigest() != state.digest:
        what = "is gone" if content is None else "is not what was written"
        msg = f"The state of the job cannot be read: its manifest {state.manifest} {what}"
        todo = (
            "Restore it from a copy of the table's _lading folder, or move the job with ALTER: to a commit whose state "
            'is there, or with "state" = "RESET".'
        )
        raise SourceError(msg, left="Nothing was committed; the position is unchanged.", todo=todo)
    manifest = parse_manifest(content, where=state.manifest)
    if manifest.shape != shape:
        msg = f"The state of the job is of another form than it keeps now: it has {manifest.shape}, not {shape}"
        todo = 'ALTER the job back, or with PROPERTIES ("state" = "RESET"), then RESUME it.'
        raise SourceError(msg, left="Nothing was committed; the position is unchanged.", todo=todo)
    return manifest


def write_manifest(place: StatePlace, name: str, manifest: StateManifest, next_us: int | None) -> StateRef:
    """Put a manifest. Dies after it: no bill names it, and nobody reads it."""
    content = render_manifest(manifest)
    path = f"{place.folder}/{stamp_of(SystemClock().now())}-{name}{SUFFIX}"
    place.open().put_if_absent(path, content)
    return StateRef(
        manifest=path,
        digest=hashlib.sha256(content).hexdigest(),
        files=len(manifest.files),
        rows=sum(file.rows for file in manifest.files),
        size_bytes=sum(file.size_bytes for file in manifest.files),
        next_us=next_us,
    )


def drop_files(place: StatePlace, files: Iterable[StateFile]) -> None:
    """The spool of a batch is not needed any more: if its commit fails, the batch is read again."""
    with suppress(LadingError):  # What is left over is removed by the care for the table.
        place.open().delete([file.path for file in files])
