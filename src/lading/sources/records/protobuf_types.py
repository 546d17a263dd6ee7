"""Message classes of Protobuf, made from what a schema registry hands out.

The registry is asked for descriptors (`format=serialized`): Python has no reader of `.proto` texts.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from importlib import import_module
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from lading.sources.records.errors import registry_refused
from lading.sources.records.schemas import Schemas

_BUILT_IN = re.compile(r"(?:google/(?:protobuf|type)|confluent(?:/types?)?)/[a-z_]+\.proto")


class ProtobufTypes:
    """Finds the class of a message by the number of its schema and its place in the file."""

    def __init__(self, client: SchemaRegistryClient, url: str) -> None:
        self._schemas = Schemas(client, url, kind="PROTOBUF", fmt="serialized")
        self._url = url
        self._files: dict[int, Any] = {}
        self._classes: dict[tuple[int, tuple[int, ...]], type[Message]] = {}

    def message_class(self, schema_id: int, indexes: tuple[int, ...]) -> type[Message]:
        key = (schema_id, indexes)
        if key not in self._classes:
            self._classes[key] = self._find(schema_id, indexes)
        return self._classes[key]

    def _find(self, schema_id: int, indexes: tuple[int, ...]) -> type[Message]:
        if schema_id not in self._files:
            self._files[schema_id] = self._load(schema_id)
        file = self._files[schema_id]
        # Messages by their order in the file, then by their order in each other.
        place: Any = None
        for index in indexes:
            siblings = list(file.message_types_by_name.values()) if place is None else place.nested_types
            if not 0 <= index < len(siblings):
                msg = f"the schema has no message at {list(indexes)}"
                raise ValueError(msg)
            place = siblings[index]
        found: type[Message] = GetMessageClass(place)
        return found

    def _load(self, schema_id: int) -> Any:
        pool, added = DescriptorPool(), set[str]()
        own_name = f"lading/{schema_id}.proto"
        for name, schema in self._schemas.fetch(schema_id):
            file = self._descriptor(schema)
            file.name = name or own_name
            added.add(file.name)
            for imported in file.dependency:
                _add_built_in(pool, imported, added)
            pool.Add(file)
        return pool.FindFileByName(own_name)

    def _descriptor(self, schema: Schema) -> Any:
        try:
            return FileDescriptorProto.FromString(b64decode(schema.schema_str or "", validate=True))
        except (binascii.Error, DecodeError) as error:
            why = "it hands out no descriptors of Protobuf (format=serialized)"
            raise registry_refused(self._url, why, "Use a registry that does, or another format.") from error


def _add_built_in(pool: DescriptorPool, name: str, added: set[str]) -> None:
    """What every reader of Protobuf has; no registry stores it."""
    if name in added or not _BUILT_IN.fullmatch(name):
        return
    added.add(name)
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    if module.startswith("confluent."):
        module = f"confluent_kafka.schema_registry.{module}"
    try:
        file = FileDescriptorProto.FromString(import_module(module).DESCRIPTOR.serialized_pb)
    except ModuleNotFoundError:
        return
    for imported in file.dependency:
        _add_built_in(pool, imported, added)
    pool.Add(file)
