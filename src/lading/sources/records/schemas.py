"""Schemas from a registry, with all that they refer to.

Schemas are fetched before anything is decoded, so that trouble with the registry is never taken for a bad record.
"""

from __future__ import annotations

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from lading.sources.records.errors import asking

Files = list[tuple[str, Schema]]


class Schemas:
    """Asks for each schema once."""

    def __init__(self, client: SchemaRegistryClient, url: str, *, kind: str, fmt: str | None = None) -> None:
        self._client = client
        self._url = url
        self._kind = kind
        self._format = fmt
        self._fetched: dict[int, Files] = {}

    def fetch(self, schema_id: int) -> Files:
        """Names and schemas, each behind those it refers to; the wanted one is the last and has no name.

        Raises SourceError, and ValueError for a schema of another kind.
        """
        if schema_id not in self._fetched:
            with asking(self._url):
                schema = self._client.get_schema(schema_id, fmt=self._format)
            files: dict[str, Schema] = {}
            self._fetch_references(schema, files)
            self._fetched[schema_id] = [*files.items(), ("", schema)]
        found = self._fetched[schema_id]
        if found[-1][1].schema_type != self._kind:
            msg = f"the schema is one of {found[-1][1].schema_type}, not of {self._kind}"
            raise ValueError(msg)
        return found

    def _fetch_references(self, schema: Schema, files: dict[str, Schema]) -> None:
        for reference in schema.references or ():
            if reference.name is None or reference.name in files:
                continue
            with asking(self._url):
                # Deleted versions too: records that were written with them are still there.
                found = self._client.get_version(
                    str(reference.subject), reference.version or "latest", deleted=True, fmt=self._format
                )
            self._fetch_references(found.schema, files)
            files[reference.name] = found.schema
