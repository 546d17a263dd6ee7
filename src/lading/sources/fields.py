"""Fields that the table of a job has no column for: how readers put them beside a row, and tell of them.

A reader that watches gives each row one more column, `__rest`: a JSON object of the fields that the job does not know,
or null. At the end of a split it tells which columns the table lacks for them, by name and type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.field_types import MAX_BIGINT, WHOLE, family_of, joined_type, text_type_for, wider_type
from lading.model.json_text import Digits, render_json
from lading.model.rows import REST
from lading.sources.files.arrays import strings

_NAME = re.compile(r"[^\W\d][\w$@#-]{0,126}")
_RESERVED = re.compile(r"__\w+")
_TOO_MANY = 20_000
"""So many names are told at most. Nobody wants that many columns; it is the sign of keys that are data."""
_NARROW = {"tinyint": 3, "smallint": 5, "int": 10, "float": 3}
"""How long the text of a number is at least that does not fit."""
_LONG = 40
"""Letters of a whole number that is read as one."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWatch:
    """What a reader does about fields that the job does not know. Small, and can be pickled."""

    known: Mapping[str, str]
    """Columns of the table, with their Spark types."""
    rescued_column: str = ""
    adds: bool = False
    widens: frozenset[str] = frozenset()
    """The kinds of widening that the table can do: `whole`, `real`, `decimal`."""
    reserved: frozenset[str] = frozenset()
    """Names that no column of the table can have, in small letters."""

    @property
    def rescues(self) -> bool:
        return bool(self.rescued_column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row may fill."""
        return tuple(name for name in self.known if name != self.rescued_column)

    def can_add(self, name: str) -> bool:
        """Whether a column of this name can be in every table: none that differs by case alone is there."""
        is_name = _NAME.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None
        return is_name and name.lower() not in {each.lower() for each in self.known} | self.reserved


@dataclass(slots=True)
class FieldNotes:
    """What one reader has seen since the end of the last split."""

    watch: FieldWatch
    _seen: dict[str, str] = field(default_factory=dict)
    _judged: dict[str, bool] = field(default_factory=dict)

    def see(self, name: str, kind: str) -> None:
        """A value of a field that the table has no column for. A type `` tells that it cannot have one."""
        if not self.watch.adds or name in self.watch.known or len(self._seen) >= _TOO_MANY:
            return
        if name not in self._judged:
            self._judged[name] = self.watch.can_add(name)
        if self._judged[name]:
            self._seen[name] = joined_type(self._seen.get(name), kind)
        elif not self.watch.rescues:
            self._seen[name] = ""

    def see_wider(self, name: str, kind: str) -> None:
        """A column whose values need a wider type than it has."""
        if name in self.watch.known and family_of(self.watch.known[name]) in self.watch.widens:
            known = self._seen.get(name) or self.watch.known[name]
            wider = wider_type(known, kind)
            if wider is not None and wider != self.watch.known[name]:
                self._seen[name] = wider

    def see_batch(self, batch: pa.RecordBatch) -> None:
        """Rows as texts, with their `__rest`."""
        self.see_rest(batch.column(REST))
        self.see_texts(batch)

    def see_rest(self, rest: pa.Array) -> None:
        """What stands in `__rest`, as JSON."""
        if not self.watch.adds or rest.null_count == len(rest):
            return
        for text in rest.drop_null().to_pylist():
            for name, value in _DECODER.decode(text).items():
                if (kind := _json_type(value)) is not None:
                    self.see(name, kind)

    def see_texts(self, batch: pa.RecordBatch) -> None:
        """Numbers as texts that are too large for their columns."""
        if not self.watch.widens:
            return
        for name, kind in self.watch.known.items():
            place = batch.schema.get_field_index(name)
            least = _least_length(kind)
            if place < 0 or least is None or not pa.types.is_string(batch.schema.field(place).type):
                continue
            column = batch.column(place)
            long = column.filter(pc.fill_null(pc.greater_equal(pc.binary_length(column), least), False))
            for text in long.to_pylist() if len(long) else ():
                if (needed := text_type_for(text, kind)) is not None:
                    self.see_wider(name, needed)

    def drain(self) -> dict[str, str]:
        """What was seen; from here on a new split is read."""
        seen = dict(self._seen)
        self._seen.clear()
        return seen


_DECODER = json.JSONDecoder(parse_float=Digits, parse_int=Digits)


def rest_fields(text: str | None) -> dict[str, Any]:
    """What `__rest` has of a row, for people: numbers as numbers, what is nested as JSON."""
    found = _DECODER.decode(text) if text else {}
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Digits):
        if value.lstrip("-").isdigit():
            return int(value) if len(value) <= _LONG else str(value)
        return float(value) if _is_double(value) else str(value)
    return render_json(value) if isinstance(value, dict | list) else value


def _least_length(kind: str) -> int | None:
    if (found := _DECIMAL.fullmatch(kind)) is not None:
        return int(found[1]) - int(found[2])
    return _NARROW.get(kind)


def _json_type(value: Any) -> str | None:
    """The type of a column for a value of JSON. None: a null says nothing."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Digits):
        if value.lstrip("-").isdigit():
            # Python takes no number of thousands of digits, and no column does.
            size = abs(int(value)) if len(value) <= _LONG else MAX_BIGINT + 1
            return WHOLE if size <= 2**53 else "bigint" if size <= MAX_BIGINT else "string"
        return "double" if _is_double(value) else "string"
    return "string"


def _is_double(digits: str) -> bool:
    """Whether a double has all the digits that are written."""
    number = float(digits)
    try:
        return isfinite(number) and Decimal(repr(number)) == Decimal(digits)
    except InvalidOperation:
        return False  # The exponent alone is beyond all numbers.


def spark_name(kind: pa.DataType) -> str:
    """The type of a column for values of an Arrow type. What is nested becomes JSON, in a text."""
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    plain = {pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int"}
    plain |= {pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.date32(): "date"}
    return {**plain, pa.binary(): "binary"}.get(kind, "string")


def carrier(kind: str) -> pa.DataType:
    """The type in which typed files hand on values for a column: the widest of its kind, so that a value that does not
    fit the column is told as that, row by row."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return pa.int64()
    if (found := _DECIMAL.fullmatch(kind)) is not None:
        return pa.decimal128(38, int(found[2]))
    known = {"boolean": pa.bool_(), "float": pa.float64(), "double": pa.float64(), "date": pa.date32()}
    known |= {"timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"), "binary": pa.binary()}
    return known.get(kind, pa.string())


Misfits = Mapping[str, Mapping[int, Any]]
"""By column: the values that cannot be handed on in its type, by row."""


def folded(
    batch: pa.RecordBatch, schema: pa.Schema, extras: Sequence[str], misfits: Misfits | None = None
) -> pa.RecordBatch:
    """A batch with columns beside those of a schema, as one of that schema: the others go into `__rest`, as JSON.

    A file may have columns with the names of hidden ones. Those of the file come first.
    """
    count, places = batch.num_rows, batch.schema.get_all_field_indices
    columns = [(name, batch.column(places(name)[0]).to_pylist()) for name in extras]
    columns += [(name, [found.get(at) for at in range(count)]) for name, found in (misfits or {}).items()]
    rest = strings(list(_rests(columns, count))) if columns else pa.nulls(count, pa.string())
    arrays = [rest if each.name == REST else batch.column(places(each.name)[-1]) for each in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rests(columns: list[tuple[str, list[Any]]], count: int) -> Iterator[str | None]:
    from lading.sources.records.value_text import tree_of

    for at in range(count):
        found = {name: tree_of(values[at]) for name, values in columns if values[at] is not None}
        yield render_json(found) if found else None
