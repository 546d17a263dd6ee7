"""Records of Avro, through Confluent's own deserialiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from lading.sources.records.schemas import Schemas


class AvroValues:
    """Reads each record with the schema it was written with."""

    def __init__(self, client: SchemaRegistryClient, url: str) -> None:
        self._schemas = Schemas(client, url, kind="AVRO")
        self._read = AvroDeserializer(client)

    def fields(self, schema_id: int, value: bytes) -> Mapping[str, Any]:
        # The deserialiser finds in the client what was fetched with it.
        self._schemas.fetch(schema_id)
        found = self._read(value)
        if not isinstance(found, dict):
            msg = "the value is no record with fields"
            raise ValueError(msg)
        return found
