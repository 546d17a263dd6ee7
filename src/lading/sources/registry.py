"""The kinds of sources that statements can name. A new one is a folder and a line here."""

from __future__ import annotations

from lading.errors import NotSupportedError
from lading.sources.files.kind import FilesKind
from lading.sources.kafka.kind import KafkaKind
from lading.sources.kind import SourceKind, StreamKind
from lading.sources.kinesis.kind import KinesisKind

FILES: dict[str, SourceKind] = {"S3": FilesKind(name="S3"), "FILE": FilesKind(name="FILE")}
STREAMS: dict[str, StreamKind] = {"KAFKA": KafkaKind(), "KINESIS": KinesisKind()}
KINDS: dict[str, SourceKind] = {**FILES, **STREAMS}


def kind_of(name: str) -> SourceKind:
    """The kind of a source by the name that a statement gives it."""
    return KINDS[name] if name in KINDS else _unknown(name)


def stream_kind(name: str) -> StreamKind:
    """The same for the source of a routine load."""
    return STREAMS[name] if name in STREAMS else _unknown(name)


def _unknown(name: str) -> StreamKind:
    msg = f"{name} cannot be the source of this job"
    raise NotSupportedError(msg, todo=f"Known are: {', '.join(KINDS)}.")
