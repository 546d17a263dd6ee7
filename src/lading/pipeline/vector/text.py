"""Functions of texts. Letters are counted as Spark counts them: by code points."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector.arrays import (
    UnsureError,
    check_utf8,
    conditions,
    is_ascii,
    literal,
    merged,
    raw,
    texts,
    truths,
    valid_of,
)
from lading.pipeline.vector.decimals import arrow_of
from lading.sql.expressions.vector_nodes import Node, VectorType

_JAVA_END = "(?:\\r\\n|[\\n\\r\u0085\u2028\u2029])?$"
"""What `$` means in Java: also before the last end of a line."""
_STABLE = re.compile("[\\0-\u017f\u0370-\u03a2\u03a4-\u04ff\u1e00-\u1eff\u2000-\u206f\u3000-\u9fff\uac00-\ud7a3]*")
"""Letters whose case Python and Spark agree about. The Greek sigma depends on what stands around it."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""From 0001-01-01 to 9999-12-31: other years are written with a sign."""
_DAY_US = 86_400_000_000


def changed_case(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """upper and lower."""
    function = pc.ascii_upper if node.op == "upper" else pc.ascii_lower
    if is_ascii(args[0]):
        return function(args[0])
    plain = pc.string_is_ascii(args[0])
    mask = truths(plain)
    coded = args[0].filter(conditions(~mask)).dictionary_encode()
    others = texts([_changed(node.op, each) for each in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)
    return merged(mask, function(args[0].filter(plain)), others)


def _changed(op: str, text: str) -> bytes:
    if _STABLE.fullmatch(text) is None:
        msg = f"{op} of letters that have another case in other versions of Unicode"
        raise UnsureError(msg)
    return (text.upper() if op == "upper" else text.lower()).encode()


def trimmed(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """Blanks cut off, and nothing else."""
    function = {"trim": pc.ascii_trim, "ltrim": pc.ascii_ltrim, "rtrim": pc.ascii_rtrim}[node.op]
    return function(args[0], " ")


def length(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """How many letters, or bytes."""
    if node.op == "octet_length" or is_ascii(args[0]):
        return pc.binary_length(args[0])
    return pc.utf8_length(args[0])


def concat(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """All, one behind the other; NULL when one is."""
    return pc.binary_join_element_wise(*args, literal("", node.type), null_handling="emit_null")


def sliced(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """From a letter to another."""
    if not is_ascii(args[0]):
        return pc.utf8_slice_codeunits(args[0], *node.value)
    return pc.binary_slice(args[0].cast(pa.binary()), *node.value).cast(pa.string())


def sliced_end(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """The last letters."""
    check_utf8(args[0])
    if not node.value:
        return pc.utf8_slice_codeunits(args[0], 0, 0)
    return pc.utf8_slice_codeunits(args[0], -node.value, 2**31 - 1)


def replaced(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """Each occurrence of a text by another one."""
    return pc.replace_substring(args[0], pattern=node.value[0], replacement=node.value[1])


def padded(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """So many letters, neither more nor less."""
    check_utf8(args[0])
    size, letter = node.value
    function = pc.utf8_lpad if node.op == "lpad" else pc.utf8_rpad
    return pc.utf8_slice_codeunits(function(args[0], size, letter), 0, size)


def found(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """Whether a text begins, ends or goes on with another."""
    function = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}[node.op]
    return function(args[0], pattern=node.value)


def place(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """Where a text is in another, from one; zero: nowhere."""
    if not is_ascii(args[0]):
        msg = "instr in a text with other letters than those of ASCII"
        raise UnsureError(msg)
    return pc.add(pc.find_substring(args[0], pattern=node.value), literal(1, node.type))


def like(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """LIKE with `%` and `_`."""
    check_utf8(args[0])
    return pc.match_like(args[0], pattern=node.value)


def matches(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """One of the regular expressions that Lading writes."""
    is_ascii(args[0])
    pattern = node.value
    return pc.match_substring_regex(args[0], pattern[:-1] + _JAVA_END if pattern.endswith("$") else pattern)


def encoded(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """The bytes of a text."""
    return args[0].cast(pa.binary()) if isinstance(args[0], pa.Scalar) else args[0].view(pa.binary())


def written(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """CAST AS STRING."""
    return text_of(args[0], kinds[0], plain=bool(node.value))


def text_of(value: Any, kind: VectorType, *, plain: bool) -> pa.Array:
    """How Spark writes values. `plain`: decimals without an exponent."""
    if kind.is_decimal:
        listed = arrow_of(value, kind).to_pylist()
        return texts([None if each is None else _decimal(each, plain=plain).encode() for each in listed], pa.string())
    if kind.name in ("float", "double"):
        if value.null_count == len(value):
            return pa.nulls(len(value), pa.string())
        msg = "a double as a text"
        raise UnsureError(msg)
    if kind.name in ("date", "timestamp", "timestamp_ntz"):
        return _time(value, kind)
    return value.cast(pa.string())


def _decimal(value: Any, *, plain: bool) -> str:
    return format(value, "f") if plain else str(value)


def _time(value: pa.Array, kind: VectorType) -> pa.Array:
    unit = 1 if kind.name == "date" else _DAY_US
    numbers, valid = raw(value, np.int32 if kind.name == "date" else np.int64), valid_of(value)
    kept = numbers if valid is None else numbers[valid]
    if len(kept) and (kept.min() < _FIRST_DAY * unit or kept.max() >= (_LAST_DAY + 1) * unit):
        msg = "a year that has not four digits, as a text"
        raise UnsureError(msg)
    if kind.name == "date":
        return value.cast(pa.string())
    # Six digits behind the point; Spark leaves out the zeros at the end.
    exact = value.view(pa.timestamp("us")).cast(pa.string())
    return pc.ascii_rtrim(pc.ascii_rtrim(exact, "0"), ".")
