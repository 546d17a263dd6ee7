"""Protobuf records, written by Confluent's serialiser with a registry over HTTP, and read without generated classes."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.confluent.type import decimal_pb2
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.type import date_pb2, timeofday_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import SourceError, StageError
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from tests.sources.records.support import META, bad, block, good, parse, rows_of
from tests.support.examples import examples
from tests.support.registry import TestRegistry

CONTEXT = SerializationContext("clicks", MessageField.VALUE)
FIELD = descriptor_pb2.FieldDescriptorProto
DECIMAL = GetMessageClass(decimal_pb2.DESCRIPTOR.message_types_by_name["Decimal"])


def spec(url: str, *columns: str) -> RecordFormat:
    access = RegistryAccess(url=url, settings={"max.retries": "0"})
    return RecordFormat(kind=RecordKind.PROTOBUF, columns=columns, registry=access)


def file_of(name: str, *messages: descriptor_pb2.DescriptorProto, imports: tuple[Any, ...] = ()) -> Any:
    """A file of proto3 in a pool of its own."""
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", message_type=messages)
    pool = DescriptorPool()
    for imported in imports:
        pool.AddSerializedFile(imported.serialized_pb)
        file.dependency.append(imported.name)
    pool.Add(file)
    return pool.FindFileByName(name)


def message(name: str, *fields: Any, **more: Any) -> descriptor_pb2.DescriptorProto:
    return descriptor_pb2.DescriptorProto(name=name, field=fields, **more)


def field(number: int, name: str, kind: int, **more: Any) -> Any:
    return FIELD(name=name, number=number, type=kind, label=more.pop("label", FIELD.LABEL_OPTIONAL), **more)


def write(client: SchemaRegistryClient, file: Any, name: str, **values: Any) -> bytes:
    place = file.message_types_by_name[name.split(".")[0]]
    for part in name.split(".")[1:]:
        place = place.nested_types_by_name[part]
    kind = GetMessageClass(place)
    serializer = ProtobufSerializer(kind, client, {"subject.name.strategy.type": "TOPIC"})
    written = serializer(kind(**values), CONTEXT)
    assert isinstance(written, bytes)
    return written


def test_values_of_all_types_become_texts(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    color = descriptor_pb2.EnumDescriptorProto(name="Color")
    color.value.add(name="RED", number=0)
    color.value.add(name="BLUE", number=1)
    entry = message("MEntry", field(1, "key", FIELD.TYPE_STRING), field(2, "value", FIELD.TYPE_INT32))
    entry.options.map_entry = True
    part = message("Part", field(1, "n", FIELD.TYPE_INT64), field(2, "raw", FIELD.TYPE_BYTES))
    known = {
        "ts": (timestamp_pb2.Timestamp(seconds=1735787045, nanos=678_000_001), ".google.protobuf.Timestamp"),
        "dur": (duration_pb2.Duration(seconds=-1, nanos=-500_000_000), ".google.protobuf.Duration"),
        "wrap": (wrappers_pb2.Int64Value(value=7), ".google.protobuf.Int64Value"),
        "any": (struct_pb2.Struct(fields={"k": struct_pb2.Value(number_value=1.5)}), ".google.protobuf.Struct"),
        "day": (date_pb2.Date(year=2025, month=1, day=2), ".google.type.Date"),
        "at": (timeofday_pb2.TimeOfDay(hours=3, minutes=4, seconds=5, nanos=6), ".google.type.TimeOfDay"),
        "dec": (
            DECIMAL(value=(-1500).to_bytes(2, signed=True), precision=4, scale=3),
            ".confluent.type.Decimal",
        ),
    }
    plain = [
        (field(1, "i", FIELD.TYPE_INT32), 5),
        (field(2, "f", FIELD.TYPE_FLOAT), 0.1),
        (field(3, "d", FIELD.TYPE_DOUBLE), 0.1),
        (field(4, "o", FIELD.TYPE_BOOL), True),
        (field(5, "s", FIELD.TYPE_STRING), "é"),
        (field(6, "b", FIELD.TYPE_BYTES), b"\xff"),
        (field(7, "e", FIELD.TYPE_ENUM, type_name=".shop.Click.Color"), 1),
        (field(8, "l", FIELD.TYPE_INT32, label=FIELD.LABEL_REPEATED), [1, 2]),
        (field(9, "m", FIELD.TYPE_MESSAGE, type_name=".shop.Click.MEntry", label=FIELD.LABEL_REPEATED), {"k": 1}),
        (field(10, "p", FIELD.TYPE_MESSAGE, type_name=".shop.Click.Part"), {"n": 2**60, "raw": b"x"}),
        (field(11, "unset", FIELD.TYPE_INT32), None),
        (field(12, "maybe", FIELD.TYPE_INT32, proto3_optional=True, oneof_index=0), None),
        (field(13, "nopart", FIELD.TYPE_MESSAGE, type_name=".shop.Click.Part"), None),
        (field(14, "u", FIELD.TYPE_UINT64), 2**64 - 1),
    ]
    well_known = [
        field(20 + at, name, FIELD.TYPE_MESSAGE, type_name=type_name)
        for at, (name, (_, type_name)) in enumerate(known.items())
    ]
    click = message("Click", *(kind for kind, _ in plain), *well_known, nested_type=[entry, part], enum_type=[color])
    click.oneof_decl.add(name="_maybe")
    imports = tuple({item.DESCRIPTOR.file.name: item.DESCRIPTOR.file for item, _ in known.values()}.values())
    file = file_of("click.proto", click, imports=imports)
    kind = GetMessageClass(file.message_types_by_name["Click"])
    sample = kind(**{kind.name: item for kind, item in plain if item is not None})
    for name, (item, _) in known.items():
        getattr(sample, name).ParseFromString(item.SerializeToString())
    value = ProtobufSerializer(kind, client, {"subject.name.strategy.type": "TOPIC"})(sample, CONTEXT)
    assert value is not None
    columns = [*(kind.name for kind, _ in plain), *known, "absent"]
    (row,) = parse(spec(registry.url, *columns), [value])
    assert {name: row[name] for name in columns} == {
        "i": "5",
        "f": "0.1",
        "d": "0.1",
        "o": "true",
        "s": "é",
        "b": "/w==",
        "e": "BLUE",
        "l": "[1,2]",
        "m": '{"k":1}',
        "p": f'{{"n":{2**60},"raw":"x"}}',
        "unset": "0",
        "maybe": None,
        "nopart": None,
        "u": str(2**64 - 1),
        "ts": "2025-01-02T03:04:05.678000001Z",
        "dur": "-1.5",
        "wrap": "7",
        "any": '{"k":1.5}',
        "day": "2025-01-02",
        "at": "03:04:05.000000006",
        "dec": "-1.500",
        "absent": None,
    }


def test_records_of_old_and_new_schemas_may_follow_each_other(
    registry: TestRegistry, client: SchemaRegistryClient
) -> None:
    old = file_of("v1.proto", message("Click", field(1, "a", FIELD.TYPE_INT32), field(2, "gone", FIELD.TYPE_STRING)))
    new = file_of("v2.proto", message("Click", field(1, "a", FIELD.TYPE_INT64), field(3, "b", FIELD.TYPE_STRING)))
    values = [write(client, old, "Click", a=1, gone="x"), write(client, new, "Click", a=2**40, b="y")]
    values.append(write(client, old, "Click", a=3))
    assert len({value[:5] for value in values}) == 2
    rows = parse(spec(registry.url, "a", "b", "gone"), values)
    assert good(rows, "a", "b", "gone") == [("1", None, "x"), (str(2**40), "y", None), ("3", None, "")]


def test_the_message_may_be_any_in_the_file(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    inner = message("Inner", field(1, "a", FIELD.TYPE_STRING))
    file = file_of(
        "f.proto", message("First", field(1, "z", FIELD.TYPE_STRING)), message("Second", nested_type=[inner])
    )
    values = [write(client, file, "Second.Inner", a="in"), write(client, file, "First", z="out")]
    assert good(parse(spec(registry.url, "a", "z"), values), "a", "z") == [("in", None), (None, "out")]


def test_a_schema_may_import_another(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    part = file_of("part.proto", message("Part", field(1, "n", FIELD.TYPE_INT32)))
    holder = message("Holder", field(1, "p", FIELD.TYPE_MESSAGE, type_name=".shop.Part"))
    whole = file_of("whole.proto", holder, imports=(part,))
    value = write(client, whole, "Holder", p={"n": 4})
    assert good(parse(spec(registry.url, "p"), [value]), "p") == [('{"n":4}',)]


def test_what_does_not_decode_is_a_bad_row(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    file = file_of("f.proto", message("Click", field(1, "a", FIELD.TYPE_STRING)))
    value = write(client, file, "Click", a="long text")
    values = [
        value,
        value[:-3],
        value[:5] + b"\x02\x08" + value[6:],
        value[:5] + b"\xff",
        b"\x00\x00\x00\x00\x63\x00ab",
        b"x",
    ]
    rows = parse(spec(registry.url, "a"), values)
    assert good(rows, "a", "__row") == [("long text", 100)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(101 + at, raw) for at, raw in enumerate(values[1:])]


def test_a_decimal_of_a_billion_zeros_is_a_bad_row(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    amount = field(1, "a", FIELD.TYPE_MESSAGE, type_name=".confluent.type.Decimal")
    file = file_of("f.proto", message("Click", amount), imports=(DECIMAL.DESCRIPTOR.file,))
    values = [write(client, file, "Click", a={"value": b"\x01", "scale": scale}) for scale in (-(2**31), 2**31 - 1, -3)]
    rows = parse(spec(registry.url, "a"), values)
    assert [number for number, _, _ in bad(rows)] == [100, 101]
    assert good(rows, "a") == [("1000",)]


def test_a_registry_that_does_not_answer_is_no_bad_row(registry: TestRegistry) -> None:
    registry.failing = (500, {"error_code": 50001, "message": "broken"})
    with pytest.raises(StageError, match="broken"):
        parse(spec(registry.url, "a"), [b"\x00\x00\x00\x00\x01\x00ab"])


def test_a_registry_without_descriptors_is_no_bad_row(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    file = file_of("f.proto", message("Click", field(1, "a", FIELD.TYPE_STRING)))
    value = write(client, file, "Click", a="x")
    registry.serializes = False
    with pytest.raises(SourceError, match="format=serialized"):
        parse(spec(registry.url, "a"), [value])


def test_no_bytes_stop_the_load(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    kinds = [FIELD.TYPE_STRING, FIELD.TYPE_FLOAT, FIELD.TYPE_BYTES, FIELD.TYPE_SINT64, FIELD.TYPE_BOOL]
    fields = [field(at, f"f{at}", kind) for at, kind in enumerate(kinds, 1)]
    time_field = field(9, "t", FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    file = file_of("f.proto", message("Click", *fields, time_field), imports=(timestamp_pb2.DESCRIPTOR,))
    head = write(client, file, "Click")[:5]
    parser = RecordParser(spec(registry.url, "f1", "f2", "f3", "f4", "f5", "t"), META)

    @settings(max_examples=examples(200), deadline=None)
    @given(st.binary(min_size=1, max_size=30))
    def check(payload: bytes) -> None:
        assert len(rows_of(parser, block([head + payload, head + b"\x00" + payload]))) == 2

    check()
