"""The functions of the vector path: what each takes, and the node it becomes. docs/vector.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lading.sql.expressions.vector_build import Builder, refuse
from lading.sql.expressions.vector_nodes import VectorType
from lading.sql.expressions.vector_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATS,
    INT,
    INTEGERS,
    NTZ,
    STRING,
    TIMES,
    TIMESTAMP,
    VOID,
    decimal,
)

Build = Callable[[Builder, Sequence[int]], int]
_MAX_PAD = 10_000


def _count(name: str, args: Sequence[int], *counts: int) -> None:
    if len(args) not in counts:
        refuse(f"{name} with {len(args)} arguments")


def _text(builder: Builder, name: str, node: int) -> int:
    kind = builder.type(node)
    if kind != VOID and kind not in INTEGERS and kind not in (STRING, DATE):
        refuse(f"{name} of {kind.spark_name}")
    return builder.as_text(node, plain=False)


def _number(builder: Builder, name: str, node: int) -> int:
    """A literal whole number."""
    value = builder.literal_of(node)
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(f"{name} with a number that is no literal")
    return value


def _words(builder: Builder, name: str, node: int) -> str:
    """A literal text."""
    value = builder.literal_of(node)
    if not isinstance(value, str):
        refuse(f"{name} with a text that is no literal")
    return value


def _of_text(name: str, op: str, kind: VectorType) -> Build:
    """One text in, one value out."""

    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 1)
        return builder.add(op, kind, _text(builder, name, args[0]))

    return build


def _with_words(name: str, op: str, kind: VectorType, *, swapped: bool = False) -> Build:
    """A text and a literal one."""

    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 2)
        value, words = reversed(args) if swapped else args
        return builder.add(op, kind, _text(builder, name, value), value=_words(builder, name, words))

    return build


def _coalesce(builder: Builder, args: Sequence[int]) -> int:
    if not args:
        refuse("coalesce of nothing")
    values = builder.unified(args)
    return builder.add("coalesce", builder.type(values[0]), *values)


def _if(builder: Builder, args: Sequence[int]) -> int:
    _count("if", args, 3)
    return builder.case([(args[0], args[1])], args[2])


def _nullif(builder: Builder, args: Sequence[int]) -> int:
    _count("nullif", args, 2)
    same = builder.compare("eq", args[0], args[1])
    return builder.case([(same, builder.literal(None, VOID))], args[0])


def _nvl2(builder: Builder, args: Sequence[int]) -> int:
    _count("nvl2", args, 3)
    return builder.case([(builder.not_null(args[0]), args[1])], args[2])


def _isnull(builder: Builder, args: Sequence[int]) -> int:
    _count("isnull", args, 1)
    return builder.add("is_null", BOOLEAN, args[0])


def _isnotnull(builder: Builder, args: Sequence[int]) -> int:
    _count("isnotnull", args, 1)
    return builder.not_null(args[0])


def _equal_null(builder: Builder, args: Sequence[int]) -> int:
    _count("equal_null", args, 2)
    return builder.compare("same", args[0], args[1])


def _concat(builder: Builder, args: Sequence[int]) -> int:
    if not args:
        refuse("concat of nothing")
    return builder.add("concat", STRING, *(_text(builder, "concat", arg) for arg in args))


def _substring(builder: Builder, args: Sequence[int]) -> int:
    _count("substring", args, 2, 3)
    start = _number(builder, "substring", args[1])
    size = _number(builder, "substring", args[2]) if len(args) == 3 else 2**31 - 1
    if start < 0:
        refuse("substring from the end")
    first = max(start - 1, 0)
    return builder.add("slice", STRING, _text(builder, "substring", args[0]), value=(first, first + max(size, 0)))


def _left(builder: Builder, args: Sequence[int]) -> int:
    _count("left", args, 2)
    size = _number(builder, "left", args[1])
    return builder.add("slice", STRING, _text(builder, "left", args[0]), value=(0, max(size, 0)))


def _right(builder: Builder, args: Sequence[int]) -> int:
    _count("right", args, 2)
    size = _number(builder, "right", args[1])
    return builder.add("slice_end", STRING, _text(builder, "right", args[0]), value=max(size, 0))


def _replace(builder: Builder, args: Sequence[int]) -> int:
    _count("replace", args, 3)
    words = _words(builder, "replace", args[1]), _words(builder, "replace", args[2])
    if not words[0]:
        refuse("replace of an empty text")
    return builder.add("replace", STRING, _text(builder, "replace", args[0]), value=words)


def _padded(name: str) -> Build:
    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 3)
        size, words = _number(builder, name, args[1]), _words(builder, name, args[2])
        if len(words) != 1 or not 0 <= size <= _MAX_PAD:
            refuse(f"{name} with more than one character")
        return builder.add(name, STRING, _text(builder, name, args[0]), value=(size, words))

    return build


def _encode(builder: Builder, args: Sequence[int]) -> int:
    _count("encode", args, 2)
    if builder.literal_of(args[1]) != "UTF-8" or builder.type(args[0]) != STRING:
        refuse("encode to anything but UTF-8")
    return builder.add("encode", BINARY, args[0])


def _named_struct(builder: Builder, args: Sequence[int]) -> int:
    names = tuple(_words(builder, "named_struct", arg) for arg in args[::2])
    if len(args) % 2 or not names:
        refuse("named_struct of pairs that are none")
    return builder.add("record", VectorType("struct"), *args[1::2], value=names)


def _to_json(builder: Builder, args: Sequence[int]) -> int:
    _count("to_json", args, 1)
    record = builder.nodes[args[0]]
    if record.op != "record":
        refuse("to_json of anything but a record")
    return builder.add("to_json", STRING, *record.args, value=record.value)


def _abs(builder: Builder, args: Sequence[int]) -> int:
    _count("abs", args, 1)
    kind = builder.type(args[0])
    if kind not in INTEGERS and kind not in FLOATS:
        refuse(f"abs of {kind.spark_name}")
    return builder.add("abs", kind, args[0])


def _rounded(name: str) -> Build:
    """floor and ceil, to whole numbers."""

    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 1)
        kind = builder.type(args[0])
        if kind in INTEGERS:
            return builder.cast(args[0], BIGINT)
        if kind.is_decimal:
            return builder.add(name, decimal(kind.precision - kind.scale + (kind.scale > 0), 0), args[0])
        if kind != DOUBLE:
            refuse(f"{name} of {kind.spark_name}")
        return builder.add(name, BIGINT, args[0])

    return build


def _date_of(builder: Builder, name: str, node: int) -> int:
    if builder.type(node) not in TIMES:
        refuse(f"{name} of {builder.type(node).spark_name}")
    return builder.cast(node, DATE)


def _part(name: str) -> Build:
    """A field of a date."""

    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 1)
        return builder.add("date_part", INT, _date_of(builder, name, args[0]), value=name)

    return build


def _clock(name: str) -> Build:
    """A field of a time of day."""

    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 1)
        if builder.type(args[0]) not in (TIMESTAMP, NTZ):
            refuse(f"{name} of {builder.type(args[0]).spark_name}")
        return builder.add("date_part", INT, args[0], value=name)

    return build


def _shift_days(name: str, op: str) -> Build:
    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 2)
        if builder.type(args[1]) not in INTEGERS[:3]:
            refuse(f"{name} by {builder.type(args[1]).spark_name}")
        return builder.add(op, DATE, _date_of(builder, name, args[0]), builder.cast(args[1], INT))

    return build


def _datediff(builder: Builder, args: Sequence[int]) -> int:
    _count("datediff", args, 2)
    return builder.add("datediff", INT, *(_date_of(builder, "datediff", arg) for arg in args))


def _last_day(builder: Builder, args: Sequence[int]) -> int:
    _count("last_day", args, 1)
    return builder.add("last_day", DATE, _date_of(builder, "last_day", args[0]))


def _to_date(builder: Builder, args: Sequence[int]) -> int:
    _count("to_date", args, 1)
    return _date_of(builder, "to_date", args[0])


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _date_trunc(builder: Builder, args: Sequence[int]) -> int:
    _count("date_trunc", args, 2)
    unit, kind = _words(builder, "date_trunc", args[0]).lower(), builder.type(args[1])
    if unit not in _UNITS or kind != TIMESTAMP:
        refuse(f"date_trunc of {kind.spark_name} to {unit}")
    return builder.add("date_trunc", kind, args[1], value=unit)


def _units_of(name: str, kind: VectorType, out: VectorType) -> Build:
    def build(builder: Builder, args: Sequence[int]) -> int:
        _count(name, args, 1)
        if builder.type(args[0]) != kind:
            refuse(f"{name} of {builder.type(args[0]).spark_name}")
        return builder.add("units", out, args[0])

    return build


FUNCTIONS: dict[str, Build] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "if": _if,
    "nullif": _nullif,
    "nvl2": _nvl2,
    "isnull": _isnull,
    "isnotnull": _isnotnull,
    "equal_null": _equal_null,
    "upper": _of_text("upper", "upper", STRING),
    "ucase": _of_text("ucase", "upper", STRING),
    "lower": _of_text("lower", "lower", STRING),
    "lcase": _of_text("lcase", "lower", STRING),
    "trim": _of_text("trim", "trim", STRING),
    "ltrim": _of_text("ltrim", "ltrim", STRING),
    "rtrim": _of_text("rtrim", "rtrim", STRING),
    "length": _of_text("length", "length", INT),
    "char_length": _of_text("char_length", "length", INT),
    "octet_length": _of_text("octet_length", "octet_length", INT),
    "concat": _concat,
    "substring": _substring,
    "substr": _substring,
    "left": _left,
    "right": _right,
    "replace": _replace,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "startswith": _with_words("startswith", "startswith", BOOLEAN),
    "endswith": _with_words("endswith", "endswith", BOOLEAN),
    "contains": _with_words("contains", "contains", BOOLEAN),
    "instr": _with_words("instr", "instr", INT),
    "locate": _with_words("locate", "instr", INT, swapped=True),
    "encode": _encode,
    "named_struct": _named_struct,
    "to_json": _to_json,
    "abs": _abs,
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "day": _part("day"),
    "dayofmonth": _part("day"),
    "dayofyear": _part("dayofyear"),
    "dayofweek": _part("dayofweek"),
    "weekday": _part("weekday"),
    "weekofyear": _part("weekofyear"),
    "hour": _clock("hour"),
    "minute": _clock("minute"),
    "second": _clock("second"),
    "date_add": _shift_days("date_add", "add_days"),
    "date_sub": _shift_days("date_sub", "sub_days"),
    "datediff": _datediff,
    "last_day": _last_day,
    "to_date": _to_date,
    "date_trunc": _date_trunc,
    "unix_micros": _units_of("unix_micros", TIMESTAMP, BIGINT),
    "unix_date": _units_of("unix_date", DATE, INT),
}
"""By Spark's name. What is not here takes the general path."""
