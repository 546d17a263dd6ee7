"""A plan run over the rows of a batch.

Each node is computed once for the rows that need it: what stands behind a condition only for the rows that meet it, so
that reasons and records of bad rows cost nothing while rows are good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector import numbers, record_json, text, times
from lading.pipeline.vector.arrays import (
    Bools,
    Scaled,
    UnsureError,
    arrow_type,
    conditions,
    full,
    literal,
    truth,
    truths,
)
from lading.pipeline.vector.casts import cast_text, cast_value
from lading.pipeline.vector.decimals import arrow_of
from lading.sql.expressions.vector_nodes import Node, VectorPlan, VectorType

Kernel = Callable[[Node, list[Any], list[VectorType]], Any]
_CHEAP = ("column", "literal")


def map_batch(plan: VectorPlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that come out. Raises UnsureError where Spark may give another value."""
    frame = Frame(plan, batch.num_rows, dict(zip(batch.schema.names, batch.columns, strict=True)))
    arrays, names = [], []
    try:
        for name, number in plan.columns:
            arrays.append(frame.array(number))
            names.append(name)
    except (pa.ArrowException, OverflowError) as error:
        msg = f"Arrow could not compute column {name}: {error}"
        raise UnsureError(msg) from error
    return pa.RecordBatch.from_arrays(arrays, names=names)


class Frame:
    """Rows, and what is known about them already. Values are arrays, or scalars that are the same for all rows."""

    def __init__(self, plan: VectorPlan, rows: int, columns: dict[str, pa.Array]) -> None:
        self._plan = plan
        self._columns = columns
        self._known: dict[int, Any] = {}
        self.rows = rows

    def array(self, number: int) -> pa.Array:
        """A value for each row, as Arrow has it."""
        found, kind = self.value(number), self._plan.nodes[number].type
        if isinstance(found, pa.Scalar):
            return full(found, self.rows)
        return arrow_of(found, kind) if kind.is_decimal else found

    def value(self, number: int) -> Any:
        """The value of a node."""
        if number not in self._known:
            self._known[number] = self._computed(number)
        return self._known[number]

    def _computed(self, number: int) -> Any:
        node = self._plan.nodes[number]
        if node.op == "column":
            return self._columns[node.value]
        if node.op == "literal":
            return literal(node.value, node.type)
        if special := SPECIAL.get(node.op):
            return special(self, node)
        args = [self.value(arg) for arg in node.args]
        kinds = [self._plan.nodes[arg].type for arg in node.args]
        if all(isinstance(arg, pa.Scalar) for arg in args):
            found = KERNELS[node.op](node, [full(arg, 1) for arg in args], kinds)
            return arrow_of(found, node.type)[0]
        return KERNELS[node.op](node, args, kinds)

    def of(self, mask: Bools) -> Frame:
        """Only the rows where the mask is true."""
        if mask.all():
            return self
        return _Part(self._plan, self, mask)

    def node(self, number: int) -> Node:
        return self._plan.nodes[number]

    def is_known(self, number: int) -> bool:
        """Whether a value costs nothing."""
        return number in self._known or self._plan.nodes[number].op in _CHEAP


class _Part(Frame):
    """Some rows of another frame, and what that knows about them."""

    def __init__(self, plan: VectorPlan, around: Frame, mask: Bools) -> None:
        super().__init__(plan, int(mask.sum()), {})
        self._around = around
        self._mask = mask
        self._condition = conditions(mask)

    def _computed(self, number: int) -> Any:
        if not self._around.is_known(number):
            return super()._computed(number)
        found = self._around.value(number)
        if isinstance(found, pa.Scalar):
            return found
        if isinstance(found, Scaled):
            valid = None if found.valid is None else found.valid[self._mask]
            return Scaled(found.values[self._mask], valid, found.scale)
        return found.filter(self._condition)


def _and(frame: Frame, node: Node) -> Any:
    return _connected(frame, node, decided=False)


def _or(frame: Frame, node: Node) -> Any:
    return _connected(frame, node, decided=True)


def _connected(frame: Frame, node: Node, *, decided: bool) -> Any:
    """AND and OR; what one decides for all rows needs no other."""
    found: Any = truth(not decided)
    join = pc.or_kleene if decided else pc.and_kleene
    for arg in node.args:
        value = frame.value(arg)
        if isinstance(value, pa.Scalar) and value.is_valid:
            if value.as_py() is decided:
                return value
            continue
        found = join(found, value)
        if isinstance(found, pa.Array) and not found.null_count:
            true = found.true_count
            if true == (frame.rows if decided else 0):
                return truth(decided)
    return found


def _not(frame: Frame, node: Node) -> Any:
    return pc.invert(frame.value(node.args[0]))


def _is_null(frame: Frame, node: Node) -> Any:
    value = frame.value(node.args[0])
    if isinstance(value, pa.Scalar):
        return truth(not value.is_valid)
    if isinstance(value, Scaled):
        return truth(False) if value.valid is None else numbers.is_null(value)
    if not value.null_count:
        return truth(False)
    return truth(True) if value.null_count == len(value) else pc.is_null(value)


def _case(frame: Frame, node: Node) -> Any:
    """Each row takes the value of its first condition that is true."""
    pieces: list[tuple[Bools, int]] = []
    left = np.ones(frame.rows, np.bool_)
    *branches, default = node.args
    for when, then in zip(branches[::2], branches[1::2], strict=True):
        value = frame.value(when)
        if isinstance(value, pa.Scalar):
            if value.as_py() is not True:
                continue
            mask = left
        else:
            mask = truths(value) & left
        if not mask.any():
            continue
        pieces.append((mask, then))
        left = left & ~mask
        if not left.any():
            break
    if left.any() or not pieces:
        pieces.append((left, default))
    if len(pieces) == 1:
        return frame.value(pieces[0][1])
    some = [(mask, number) for mask, number in pieces if not _is_nothing(frame.node(number))]
    return _put_together(frame, node, [(mask, frame.of(mask).array(number)) for mask, number in some])


def _is_nothing(node: Node) -> bool:
    return node.op == "literal" and node.value is None


def _put_together(frame: Frame, node: Node, pieces: list[tuple[Bools, pa.Array]]) -> Any:
    found = pa.nulls(frame.rows, arrow_type(node.type))
    for mask, values in pieces:
        found = pc.replace_with_mask(found, conditions(mask), values)
    return found


def _coalesce(frame: Frame, node: Node) -> Any:
    """Each row takes the first value that is not NULL."""
    pieces: list[tuple[Bools, pa.Array]] = []
    left = np.ones(frame.rows, np.bool_)
    for number in node.args:
        part = frame.of(left)
        is_null = _is_null(part, Node("is_null", node.type, (number,)))
        if isinstance(is_null, pa.Scalar):
            if is_null.as_py():
                continue
            if part is frame:
                return frame.value(number)
            pieces.append((left, part.array(number)))
            break
        is_some = ~truths(is_null)
        mask = left.copy()
        mask[left] = is_some
        pieces.append((mask, part.array(number).filter(conditions(is_some))))
        left = left & ~mask
    return _put_together(frame, node, pieces) if pieces else literal(None, node.type)


def _cast(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    return cast_text(args[0], node.type) if kinds[0].name == "string" else cast_value(args[0], kinds[0], node.type)


SPECIAL: dict[str, Callable[[Frame, Node], Any]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "case": _case,
    "coalesce": _coalesce,
}
KERNELS: dict[str, Kernel] = {
    "cast": _cast,
    "text": text.written,
    "eq": numbers.compare,
    "lt": numbers.compare,
    "le": numbers.compare,
    "same": numbers.same,
    "add": numbers.compute,
    "sub": numbers.compute,
    "mul": numbers.compute,
    "div": numbers.divide,
    "mod": numbers.remainder,
    "neg": numbers.negate,
    "abs": numbers.absolute,
    "floor": numbers.whole,
    "ceil": numbers.whole,
    "upper": text.changed_case,
    "lower": text.changed_case,
    "trim": text.trimmed,
    "ltrim": text.trimmed,
    "rtrim": text.trimmed,
    "length": text.length,
    "octet_length": text.length,
    "concat": text.concat,
    "slice": text.sliced,
    "slice_end": text.sliced_end,
    "replace": text.replaced,
    "lpad": text.padded,
    "rpad": text.padded,
    "startswith": text.found,
    "endswith": text.found,
    "contains": text.found,
    "instr": text.place,
    "like": text.like,
    "matches": text.matches,
    "encode": text.encoded,
    "to_json": record_json.to_json,
    "date_part": times.part,
    "add_days": times.shifted,
    "sub_days": times.shifted,
    "datediff": times.difference,
    "last_day": times.last_day,
    "date_trunc": times.truncated,
    "units": times.units,
}
