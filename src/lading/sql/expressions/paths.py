"""Paths into nested values: `a.b`, `a[1]`, `a['k']`.

Of a column that is a text, a path is one into its JSON. Of a STRUCT, ARRAY or MAP it is Spark's own. Which of them a
column is, is known only with its source: until then `a.b` is a Dot, whatever the parser took it for.
"""

from __future__ import annotations

from sqlglot import exp

from lading.errors import NotSupportedError, SqlError
from lading.model.nested_types import NestedType, nested_type
from lading.sql.expressions.functions import call
from lading.sql.expressions.value_types import OTHER, Kind, ValueType, type_of_spark

_STEPS = "lading_json_steps"
"""Where the call that reads a path has it, so that a longer one is still one call."""
_TODO = "Write a.b for a field, a[1] for the first element of an array, and a['k'] for a key."
_WITHOUT_PARTS = (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.DATE, Kind.DATETIME, Kind.MOMENT)


def with_paths(tree: exp.Expr, alias: str | None) -> exp.Expr:
    """A tree in which `a.b` is a part of the column a, unless a is the name of the source."""
    holder = exp.Paren(this=tree.copy())
    for column in list(holder.find_all(exp.Column)):
        parts = column.parts
        if len(parts) == 1 or not all(isinstance(part, exp.Identifier) for part in parts):
            continue
        if alias is not None and parts[0].name.lower() == alias.lower():
            parts = parts[1:]
        made: exp.Expr = exp.Column(this=parts[0].copy())
        made.meta.update(column.meta)
        for part in parts[1:]:
            made = exp.Dot(this=made, expression=part.copy())
        column.replace(made)
    found: exp.Expr = holder.this
    found.pop()
    return found


def is_bound(node: exp.Column) -> bool:
    """Whether this is the x of a lambda around it, which is no column."""
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if node.name in (argument.name for argument in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def json_part(base: exp.Expr, step: exp.Expr) -> exp.Expr:
    """What stands at a step of the JSON that a text is, as a text: NULL where there is nothing, or no JSON."""
    steps = (*base.meta.get(_STEPS, ()), _written(step))
    document = base.expressions[0] if _STEPS in base.meta else call("try_parse_json", base)
    path = exp.Literal.string("$" + "".join(steps))
    made = call("try_variant_get", document.copy(), path, exp.Literal.string("string"))
    made.meta[_STEPS] = steps
    return made


def part_type(whole: ValueType, step: exp.Expr) -> ValueType:
    """The type of a part of a nested value. Raises SqlError for a part that it cannot have."""
    if whole.kind in _WITHOUT_PARTS:
        msg = f"A {whole.spark_name} has no part {_shown(step)}"
        raise SqlError(msg, todo=f"Take the column as it is. {_TODO}")
    if not whole.nested and whole.kind is not Kind.TEXTS:
        return OTHER
    known = nested_type(whole.nested or "array<string>")
    if known.kind == "array":
        return _element_type(known, step)
    if known.kind == "struct" and not isinstance(step, exp.Identifier):
        msg = f"{known} has fields, and {_shown(step)} is none"
        raise SqlError(msg, todo=f"Write a.b for a field. It has: {', '.join(each for each, _ in known.parts)}.")
    return _value_type(_field(known, step.name) if known.kind == "struct" else known.parts[-1][1])


def _element_type(known: NestedType, step: exp.Expr) -> ValueType:
    """Of an array: its element, or a field of all of them."""
    element = known.parts[0][1]
    if isinstance(step, exp.Identifier) and element.kind == "struct":
        return ValueType(Kind.OTHER, nested=f"array<{_field(element, step.name)}>")
    is_wrong = isinstance(step, exp.Literal) and (step.is_string or step.name.strip("0") == "")
    if isinstance(step, exp.Identifier) or is_wrong:
        msg = f"{known} has no part {_shown(step)}: its elements count from 1"
        raise SqlError(msg, todo=_TODO)
    return _value_type(element)


def _value_type(kind: NestedType) -> ValueType:
    return ValueType(Kind.OTHER, nested=str(kind)) if kind.is_nested else type_of_spark(kind.kind)


def _field(known: NestedType, name: str) -> NestedType:
    found = [kind for each, kind in known.parts if each.lower() == name.lower()]
    if len(found) > 1:
        msg = f"{known} has {len(found)} fields {name}, which differ by case alone: which one is meant cannot be said"
        raise SqlError(msg, todo="Take the column as it is, or rename one of them where the files are made.")
    if not found:
        msg = f"{known} has no field {name}"
        raise SqlError(msg, todo=f"It has: {', '.join(each for each, _ in known.parts)}.")
    return found[0]


def _shown(step: exp.Expr) -> str:
    return step.name if isinstance(step, exp.Identifier) else f"[{step.sql(dialect='doris')}]"


def _written(step: exp.Expr) -> str:
    """A step as the paths of Spark's variants have it, which count from zero."""
    if isinstance(step, exp.Identifier) or (isinstance(step, exp.Literal) and step.is_string):
        name = step.name
        quote = next((letter for letter in "\"'" if letter not in name), None)
        if name and quote is not None and "?" not in name:
            return f"[{quote}{name}{quote}]"
    elif isinstance(step, exp.Literal) and step.name.isdecimal() and int(step.name) >= 1:
        return f"[{int(step.name) - 1}]"
    msg = f"{step.sql(dialect='doris')} is no step of a path into JSON: elements count from 1"
    raise NotSupportedError(msg, todo=_TODO)
