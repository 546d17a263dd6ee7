"""JSON texts as values of nested types: what fills the ARRAY, MAP and STRUCT columns of a table.

On its way through a mapping a nested value is the text of its JSON. Only the task that writes makes it what the column
wants: there numbers still have the letters they were written with. What stands inside is read as Spark reads the text
of a plain column; what it cannot read is NULL, and told with its path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.model.json_text import Digits, render_json
from lading.pipeline.vector import cast_reference
from lading.pipeline.vector.arrays import UnsureError, bitmap, conditions, merged, texts, truths
from lading.pipeline.vector.casts import cast_text
from lading.pipeline.vector.decimals import arrow_of
from lading.sql.expressions.vector_nodes import VectorType

_SHOWN = 100
_MOST_DEEP = 100
"""What is nested deeper is not read: each level costs Python calls inside of calls."""
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_USUAL_NUMBER = "^[+-]?[0-9]{1,30}([.][0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$"
_STEP, _EXACT = Decimal("1e-18"), Context(prec=200, rounding=ROUND_HALF_UP)
_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
_Where = Callable[[int], str]
"""From the number of a value to its path in the row, for people."""


def nested_values(
    column: str, kind: pa.DataType, values: pa.Array, *, nullable: bool
) -> tuple[pa.Array, dict[int, str]]:
    """Values of a nested type from texts of JSON, and by row the first reason why one does not fit."""
    found = _Column(column)
    parsed = [None if text is None else found.parsed(text, row) for row, text in enumerate(values.to_pylist())]
    if not nullable:
        for row, value in enumerate(parsed):
            if value is None:
                found.bad.setdefault(row, f"column {column}: NULL in a column that is NOT NULL")
    made = found.made(kind, parsed, range(len(parsed)), lambda number: column)
    return made, found.bad


def without_rows(batch: pa.RecordBatch, rows: Collection[int]) -> pa.RecordBatch:
    """The other rows of a batch."""
    is_kept = np.ones(batch.num_rows, np.bool_)
    is_kept[list(rows)] = False
    return batch.filter(conditions(is_kept))


class _Column:
    """One column of some rows."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.bad: dict[int, str] = {}
        self._decoder = json.JSONDecoder(parse_float=Digits, parse_int=Digits, parse_constant=_refuse)

    def parsed(self, text: str, row: int) -> Any:
        try:
            value = self._decoder.decode(text)
            if text.count("[") + text.count("{") > _MOST_DEEP:
                _check_depth(value, _MOST_DEEP)
            if "\\u" in text:
                render_json(value).encode()
        except (ValueError, RecursionError):
            self.bad[row] = f"column {self._name}: cannot read '{text[:_SHOWN]}' as JSON"
            return None
        return value

    def made(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], where: _Where) -> pa.Array:
        """An array of values that are of these rows."""
        if pa.types.is_struct(kind):
            return self._structs(kind, values, rows, where)
        if pa.types.is_map(kind):
            return self._maps(kind, values, rows, where)
        if pa.types.is_list(kind):
            return self._lists(kind, values, rows, where)
        return self._leaves(kind, values, rows, where)

    def _tell(self, row: int, path: str, value: Any, kind: str) -> None:
        shown = (value if isinstance(value, str) else render_json(value))[:_SHOWN]
        self.bad.setdefault(row, f"column {path}: cannot read '{shown}' as {kind}")

    def _shaped(
        self, form: type, values: Sequence[Any], rows: Sequence[int], where: _Where, kind: str
    ) -> tuple[list[Any], pa.Buffer | None]:
        """The values that have a form, None for others, and where they are."""
        kept = list[Any]()
        for number, value in enumerate(values):
            if value is not None and not isinstance(value, form):
                self._tell(rows[number], where(number), value, kind)
            kept.append(value if isinstance(value, form) else None)
        return kept, bitmap(np.fromiter((value is not None for value in kept), np.bool_, len(kept)))

    def _structs(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], where: _Where) -> pa.Array:
        kept, valid = self._shaped(dict, values, rows, where, "struct")
        parts = []
        for field in kind:
            inner = [None if value is None else value.get(field.name) for value in kept]
            parts.append(self.made(field.type, inner, rows, _field_path(where, field.name)))
        return pa.Array.from_buffers(kind, len(kept), [valid], children=parts)

    def _lists(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], where: _Where) -> pa.Array:
        kept, valid = self._shaped(list, values, rows, where, "array")
        owners = [number for number, value in enumerate(kept) for _ in value or ()]
        places = [place for value in kept for place in range(1, len(value or ()) + 1)]
        inner = [item for value in kept for item in value or ()]
        part = self.made(
            kind.value_type, inner, [rows[owner] for owner in owners], lambda n: f"{where(owners[n])}[{places[n]}]"
        )
        return pa.Array.from_buffers(kind, len(kept), [valid, _offsets(kept)], children=[part])

    def _maps(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], where: _Where) -> pa.Array:
        kept, _ = self._shaped(dict, values, rows, where, "map")
        kept = self._keyed(kind.key_type, kept, rows, where)
        owners = [number for number, value in enumerate(kept) for _ in value or ()]
        names = [name for value in kept for name in value or ()]
        inner_rows = [rows[owner] for owner in owners]

        def path(number: int) -> str:
            return f"{where(owners[number])}['{names[number][:_SHOWN]}']"

        keys = self.made(kind.key_type, names, inner_rows, path)
        items = [item for value in kept for item in (value or {}).values()]
        parts = [keys, self.made(kind.item_type, items, inner_rows, path)]
        entries = pa.Array.from_buffers(kind.field(0).type, len(names), [None], children=parts)
        valid = bitmap(np.fromiter((value is not None for value in kept), np.bool_, len(kept)))
        return pa.Array.from_buffers(kind, len(kept), [valid, _offsets(kept)], children=[entries])

    def _keyed(self, kind: pa.DataType, values: list[Any], rows: Sequence[int], where: _Where) -> list[Any]:
        """Maps whose keys all can be read and differ; others are None, whole: a map cannot lack one of its keys."""
        if pa.types.is_string(kind):
            return values
        names = [name for value in values for name in value or ()]
        read = _read_texts(kind, names)
        if pa.types.is_temporal(kind):
            # As numbers: Python has no years above 9999.
            read = read.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
        found = iter(read.to_pylist())
        kept = list[Any]()
        for number, value in enumerate(values):
            keys = [next(found) for _ in value or ()]
            is_good = None not in keys and len(set(keys)) == len(keys)
            if not is_good:
                self._tell(rows[number], where(number), value, f"map with keys of type {_name(kind)}")
            kept.append(value if is_good else None)
        return kept

    def _leaves(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], where: _Where) -> pa.Array:
        letters = [
            None if value is None else value if isinstance(value, str) else render_json(value) for value in values
        ]
        made = _read_texts(kind, letters)
        if made.null_count > letters.count(None):
            for number in pc.indices_nonzero(pc.is_null(made)).to_pylist():
                text = letters[number]
                if text is not None:
                    self._tell(rows[number], where(number), text, _name(kind))
        return made


def _field_path(where: _Where, name: str) -> _Where:
    return lambda number: f"{where(number)}.{name}"


def _offsets(values: Sequence[Any]) -> pa.Buffer:
    sizes = np.fromiter((len(value or ()) for value in values), np.int32, len(values))
    return pa.py_buffer(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))


def _read_texts(kind: pa.DataType, values: Sequence[str | None]) -> pa.Array:
    """Texts as Spark's TRY_CAST reads them; NULL for those that it does not, or that nobody can be sure of."""
    array = texts([None if value is None else value.encode() for value in values], pa.string())
    if pa.types.is_string(kind):
        return array
    if pa.types.is_decimal(kind):
        return _cast(array, VectorType("decimal", kind.precision, kind.scale))
    name = _NAMES[kind]
    if name == "float":
        return _floats(array)
    if name == "timestamp_ntz":
        return _cast(array, VectorType("timestamp")).cast(kind)  # A zone in the text counts, as in a plain column.
    found = _cast(array, VectorType(name))
    return _whole_numbers(array, found, _BITS[name]) if name in _BITS else found


def _cast(array: pa.Array, kind: VectorType) -> pa.Array:
    try:
        return arrow_of(cast_text(array, kind), kind)
    except UnsureError:
        if len(array) == 1:
            return arrow_of(cast_text(pa.nulls(1, pa.string()), kind), kind)
    middle = len(array) // 2
    return pa.concat_arrays([_cast(array.slice(0, middle), kind), _cast(array.slice(middle), kind)])


def _floats(array: pa.Array) -> pa.Array:
    """Singles are read from their texts: by way of a double some would be rounded twice."""
    others = _cast(array, VectorType("double")).cast(pa.float32())
    is_usual = truths(pc.fill_null(pc.match_substring_regex(array, _USUAL_NUMBER), False))
    if not is_usual.any():
        return others
    return merged(is_usual, array.filter(conditions(is_usual)).cast(pa.float32()), others.filter(conditions(~is_usual)))


def _whole_numbers(array: pa.Array, found: pa.Array, bits: int) -> pa.Array:
    """A whole number may be written as `5.0` or `1e2`, as for a plain column."""
    if found.null_count == array.null_count:
        return found
    values, valid = np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)
    for at, (text, number) in enumerate(zip(array.to_pylist(), found.to_pylist(), strict=True)):
        whole = number if number is not None or text is None else _whole(text.encode(), bits)
        if whole is not None:
            values[at], valid[at] = whole, True
    return pa.Array.from_buffers(pa.int64(), len(array), [bitmap(valid), pa.py_buffer(values)]).cast(found.type)


def _whole(text: bytes, bits: int) -> int | None:
    try:
        number = cast_reference.decimal(text)
    except UnsureError:
        return None
    if number is None or abs(number) >= 10**20:
        return None
    rounded = number.quantize(_STEP, context=_EXACT)
    is_fit = rounded == int(rounded) and -(2 ** (bits - 1)) <= int(rounded) < 2 ** (bits - 1)
    return int(rounded) if is_fit else None


def _name(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else _NAMES[kind]


def _check_depth(value: Any, left: int) -> None:
    if not left:
        msg = "nested too deeply"
        raise ValueError(msg)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, left - 1)


def _refuse(constant: str) -> Any:
    msg = f"{constant} is no value of JSON"
    raise ValueError(msg)
