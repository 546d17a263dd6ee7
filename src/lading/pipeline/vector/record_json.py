"""A row as JSON, as Spark writes it: for rows that go to quarantine."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from lading.pipeline.vector.arrays import UnsureError, check_utf8, full, texts
from lading.pipeline.vector.decimals import arrow_of
from lading.pipeline.vector.text import text_of
from lading.sql.expressions.vector_nodes import Node, VectorType

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "boolean")


def to_json(node: Node, args: list[Any], kinds: list[VectorType]) -> pa.Array:
    """A record without the fields that are NULL."""
    rows = max(len(each) for each in args if not isinstance(each, pa.Scalar))
    given = [full(each, rows) if isinstance(each, pa.Scalar) else each for each in args]
    fields = [_fields(value, kind) for value, kind in zip(given, kinds, strict=True)]
    names = [f"{_quoted(name)}:" for name in node.value]
    lines = []
    for row in range(rows):
        parts = [f"{name}{field[row]}" for name, field in zip(names, fields, strict=True) if field[row] is not None]
        lines.append(f"{{{','.join(parts)}}}".encode())
    return texts(lines, pa.string())


def _fields(value: Any, kind: VectorType) -> list[str | None]:
    if kind.is_decimal:
        return [None if each is None else str(each) for each in arrow_of(value, kind).to_pylist()]
    if kind.name == "string":
        check_utf8(value)
        return [None if each is None else _quoted(each) for each in value.to_pylist()]
    if kind.name == "binary":
        return [None if each is None else f'"{base64.b64encode(each).decode()}"' for each in value.to_pylist()]
    if kind.name in _NUMBERS:
        return list(value.cast(pa.string()).to_pylist())
    if kind.name == "date":
        return [None if each is None else f'"{each}"' for each in text_of(value, kind, plain=True).to_pylist()]
    if kind.name in ("timestamp", "timestamp_ntz"):
        return [None if each is None else _moment(each, kind) for each in text_of(value, kind, plain=True).to_pylist()]
    if value.null_count < len(value):
        msg = f"a {kind.spark_name} as JSON"
        raise UnsureError(msg)
    return [None] * len(value)


def _moment(written: str, kind: VectorType) -> str:
    seconds, _, fraction = written.partition(".")
    if len(fraction) > 3 and fraction[3:].strip("0"):
        msg = "a time with microseconds as JSON"
        raise UnsureError(msg)
    zone = "Z" if kind.name == "timestamp" else ""
    return f'"{seconds.replace(" ", "T")}.{fraction[:3]:0<3}{zone}"'


def _quoted(text: str) -> str:
    made = json.dumps(text, ensure_ascii=False)
    if any(letter < " " for letter in text):
        # Jackson writes the codes of control characters in capital letters.
        made = "".join(_escaped(letter) for letter in text)
        return f'"{made}"'
    return made


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    return f"\\u{ord(letter):04X}" if letter < " " else letter
