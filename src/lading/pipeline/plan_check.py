"""The second lock: whatever text reached Spark, its plan may consist of nothing but what is on the lists.

Text is checked before it gets here (`lading.sql`). This check trusts none of that: it looks at what Spark itself read
from the text, before Spark analyses it, because an analysis runs some functions already; and at what Spark made of it,
before it runs. It needs no Spark: plans come as the parts that Java wrote down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain

from lading.errors import NotSupportedError
from lading.pipeline.java_stream import JavaLiteral, JavaObject, Part, texts_of
from lading.pipeline.spark_classes import MAPPING_CLASSES, METHODS, QUERY_CLASSES, STATIC, VALUE_PACKAGES

_ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
_CALLS = {
    f"{_ANALYSIS}UnresolvedFunction": "nameParts",
    f"{_ANALYSIS}UnresolvedGenerator": "name",
    f"{_ANALYSIS}UnresolvedTableValuedFunction": "name",
}
"""Where a call that Spark has not looked up yet keeps its name."""
_RELATION = f"{_ANALYSIS}UnresolvedRelation"
_WITH = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith"
_STATIC_CALL = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
_METHOD_CALL = "org.apache.spark.sql.catalyst.expressions.objects.Invoke"
_LAMBDA = "java.lang.invoke.SerializedLambda"
_OPTIONS = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
_LOOKED_AT = (*_CALLS, _RELATION, _WITH, _STATIC_CALL, _METHOD_CALL, _LAMBDA, _OPTIONS)
REFUSED_LEFT = "Nothing was run and nothing was changed."
REFUSED_TODO = "Use the functions and clauses that docs/sql.md allows."
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a plan may consist of."""

    what: str
    """For the message: "The mapping", "The query"."""
    classes: frozenset[str]
    functions: Collection[str]
    """In small letters."""
    tables: frozenset[str] = frozenset()


def mapping_rules(functions: Collection[str]) -> Rules:
    """For the SQL of a job."""
    return Rules(what="The mapping of the job", classes=MAPPING_CLASSES, functions=functions)


def query_rules(functions: Collection[str], tables: Collection[str]) -> Rules:
    """For a query over views that were made for it."""
    return Rules(what="The query", classes=QUERY_CLASSES, functions=functions, tables=frozenset(tables))


def check_plan(parts: Iterable[Part], rules: Rules) -> None:
    """Raises NotSupportedError, with the names of everything that is not on the lists."""
    objects = [part for part in parts if isinstance(part, JavaObject | JavaLiteral)]
    kinds = dict.fromkeys(part.kind.name for part in objects)
    odd = [_short(name) for name in kinds if not _is_allowed(name, rules.classes)]
    of_kind: dict[str, list[JavaObject]] = {name: [] for name in _LOOKED_AT}
    for part in objects:
        if isinstance(part, JavaObject) and part.kind.name in of_kind:
            of_kind[part.kind.name].append(part)
    own = {name for part in of_kind[_WITH] for name in part.fields.get("names", ())}
    odd += [name for part in chain(*of_kind.values()) for name in _problems(part, rules, own)]
    if odd:
        raise refused(odd, rules.what)


def refused(names: Iterable[str], what: str) -> NotSupportedError:
    """The error for parts that are not on the lists."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    msg = f"{what} was refused before it ran: Spark would run {', '.join(found[:_SHOWN])}{more}, which is not allowed"
    return NotSupportedError(msg, code="RefusedPlan", left=REFUSED_LEFT, todo=REFUSED_TODO)


def _problems(part: JavaObject, rules: Rules, own: Collection[str]) -> list[str]:
    """What is wrong with a part that is allowed only for some of what it may hold."""
    name, fields = part.kind.name, part.fields
    if (place := _CALLS.get(name)) is not None:
        words = _words(fields.get(place))
        is_known = len(words) == 1 and words[0].lower() in rules.functions
        return [] if is_known else [f"the function {'.'.join(words) or '?'}"]
    if name == _RELATION:
        words = _words(fields.get("multipartIdentifier"))
        return [] if len(words) == 1 and words[0] in {*rules.tables, *own} else [f"the table {'.'.join(words) or '?'}"]
    if name == _STATIC_CALL:
        target = fields.get("staticObject")
        is_known = isinstance(target, JavaLiteral) and _base(target.kind.name) in STATIC
        return [] if is_known else [f"the method {fields.get('functionName')}"]
    if name == _METHOD_CALL:
        return [] if fields.get("functionName") in METHODS else [f"the method {fields.get('functionName')}"]
    if name == _LAMBDA:
        home = str(fields.get("implClass")).replace("/", ".")
        return [] if _is_allowed(home, rules.classes) else [_short(home)]
    if name == _OPTIONS:
        return [] if fields.get("is_empty") else ["options of a table"]
    return []


def _is_allowed(name: str, classes: Collection[str]) -> bool:
    return _base(name) in classes or name.startswith(VALUE_PACKAGES)


def _base(name: str) -> str:
    """The class that a part of it belongs to: `Cast` for `Cast$$anonfun$1`."""
    return name.partition("$")[0]


def _words(value: object) -> list[str]:
    """The parts of a name, in order."""
    if isinstance(value, list):
        return [str(word) for word in value]
    if isinstance(value, JavaObject) and "funcName" in value.fields:
        return [word for place in ("catalog", "database") for word in texts_of(value.fields.get(place))] + [
            str(value.fields["funcName"])
        ]
    return texts_of(value)


def _short(name: str) -> str:
    return name.rpartition(".")[2] or name
