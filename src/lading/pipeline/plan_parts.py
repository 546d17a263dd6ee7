"""Everything that a plan of Spark consists of, as Java writes it down: plans stay in Java, their parts come here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lading.pipeline.java_stream import JavaClass, JavaObject, Part, read_stream

_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_VIEW = f"{_PLANS}View"
_WITH = f"{_PLANS}UnresolvedWith"
_RELATION = "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation"
_NO_OPTIONS = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
_SEPARATOR = "\0"


def parts_of(jvm: Any, plan: Any, views: Collection[str] = ()) -> list[Part]:
    """All parts of a plan or an expression, but for what is behind the given views.

    Java cannot write down the name of a table together with its options, nor anything that holds one. Such a part is
    named here, and each of its own parts is looked at. What cannot be opened either is a part that nobody allows.
    """
    if not views and (data := written(jvm, [plan])) is not None:
        return read_stream(data)
    found: list[Part] = []
    waiting = [plan]
    while waiting:
        item = waiting.pop()
        if item is None or isinstance(item, str | int | float | bytes | bytearray):
            continue
        name = str(item.getClass().getName())
        if name == _VIEW and item.isTempView() and item.desc().identifier().table() in views:
            continue
        if not name.startswith(_PLANS) and name != _RELATION and (data := written(jvm, [item])) is not None:
            found += read_stream(data)
            continue
        found.append(JavaObject(JavaClass(name), _names(name, item)))
        waiting += _inside(jvm, item)
    return found


def classes_of_plans(plan: Any, count: int) -> tuple[list[str], Any]:
    """The names of so many plans that stand on each other, and what they stand on."""
    names = []
    for _ in range(count):
        names.append(str(plan.getClass().getName()))
        plan = plan.children().head() if plan.children().size() == 1 else plan
    return names, plan


def written(jvm: Any, items: Iterable[Any]) -> bytes | None:
    """Objects as Java writes them down; None when it cannot."""
    room = jvm.java.io.ByteArrayOutputStream()
    stream = jvm.java.io.ObjectOutputStream(room)
    try:
        for item in items:
            stream.writeObject(item)
        stream.flush()
    except (Py4JJavaError, PySparkException):
        return None
    # As a text: py4j takes longer for bytes than Java for all the rest.
    return str(room.toString("ISO-8859-1")).encode("latin-1")


def _names(name: str, item: Any) -> dict[str, Any]:
    """What the check wants to know of a part that Java cannot write down."""
    if name == _RELATION:
        return {"multipartIdentifier": str(item.multipartIdentifier().mkString(_SEPARATOR)).split(_SEPARATOR)}
    if name == _WITH:
        given = item.cteRelations()
        return {"names": [str(given.apply(number).productElement(0)) for number in range(given.size())]}
    if name == _NO_OPTIONS:
        return {"is_empty": bool(item.isEmpty())}
    return {}


def _inside(jvm: Any, item: Any) -> list[Any]:
    is_a = jvm.py4j.reflection.TypeUtil.isInstanceOf
    if is_a("scala.collection.Iterable", item):
        items = item.toSeq()
        return [items.apply(number) for number in range(items.size())]
    if is_a("scala.Product", item):
        return [item.productElement(number) for number in range(item.productArity())]
    return []
