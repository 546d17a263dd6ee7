"""The executors' door to all formats: a writer by its spec. Imports a format only when it is used."""

from __future__ import annotations

from lading.tables.base import Writer, WriterSpec


def open_writer(spec: WriterSpec, attempt: str) -> Writer:
    """A writer for one attempt."""
    if spec.format == "delta":
        from lading.tables.delta.writer import DeltaWriter

        return DeltaWriter(spec, attempt)
    from lading.tables.iceberg.writer import IcebergWriter

    return IcebergWriter(spec, attempt)
