"""Reads what Java's own serialization writes: every object that a plan of Spark consists of, without Java.

Complete by construction: an object that is reachable from the one that was written is in the stream, whatever field it
stands in. What cannot be read is an error and never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from lading.errors import NotSupportedError

_HEAD = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS_DESC, _OBJECT, _STRING, _ARRAY, _CLASS, _BLOCK, _END = range(0x70, 0x79)
_LONG_BLOCK, _LONG_STRING, _ENUM = 0x7A, 0x7C, 0x7E
_FIRST_HANDLE = 0x7E0000
_WRITES_MORE, _SERIALIZABLE, _EXTERNAL, _IN_BLOCKS = 1, 2, 4, 8
_SIZES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}


@dataclass(slots=True, eq=False)
class JavaClass:
    """A class that is named in the stream."""

    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    """Type code and name."""
    parent: JavaClass | None = None
    layout: list[int | str] = field(default_factory=list)
    """How one of its objects is written: bytes to pass over, names of fields that are objects, "" for anything."""


@dataclass(slots=True, eq=False)
class JavaObject:
    """An object: its fields, and what its class wrote beside them. Numbers are not kept."""

    kind: JavaClass
    fields: dict[str, Any] = field(default_factory=dict)
    extra: list[Any] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class JavaArray:
    """An array of objects; arrays of numbers are empty here."""

    kind: JavaClass
    items: list[Any] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class JavaLiteral:
    """A class as a value: `List.class`."""

    kind: JavaClass


Part = JavaClass | JavaObject | JavaArray | JavaLiteral | str


def read_stream(data: bytes) -> list[Part]:
    """Everything in the stream, in the order of its handles."""
    if not data.startswith(_HEAD):
        why = "it is no stream of Java objects"
        raise _unreadable(why)
    try:
        return _Reader(data).run()
    except IndexError as error:
        why = "the stream ends too early"
        raise _unreadable(why) from error


def _unreadable(why: str) -> NotSupportedError:
    msg = f"What Spark would run cannot be checked: {why}"
    return NotSupportedError(msg, code="RefusedPlan", left="Nothing was run.", todo="Report this, with the statement.")


def texts_of(value: object) -> list[str]:
    """The texts in a collection of Scala, in order."""
    if isinstance(value, JavaArray):
        return [item for item in value.items if isinstance(item, str)]
    if not isinstance(value, JavaObject):
        return []
    return [item for item in value.extra if isinstance(item, str)] + [
        text for part in value.fields.values() for text in ([part] if isinstance(part, str) else texts_of(part))
    ]


class _Reader:
    """Without recursion over objects: plans are as deep as somebody writes them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = len(_HEAD)
        self._handles: list[Part] = []
        self._steps: list[Iterator[Callable[[Any], object]]] = []
        self._depth = 0

    def run(self) -> list[Part]:
        while self._at < len(self._data) or not self._handles:
            self._content(lambda value: None)
            while self._steps:
                for give in self._steps[-1]:
                    self._content(give)
                    if self._depth != len(self._steps):
                        break
                else:
                    self._steps.pop()
                self._depth = len(self._steps)
        if self._at != len(self._data):
            self._fail(_END)
        return self._handles

    def _content(self, give: Callable[[Any], object]) -> None:
        """Read one object as far as its own fields; those that are objects follow as steps."""
        at = self._at
        code = self._data[at]
        self._at = at + 1
        if code == _REFERENCE:
            self._at = at + 5
            give(self._handles[int.from_bytes(self._data[at + 1 : at + 5]) - _FIRST_HANDLE])
        elif code == _NULL:
            give(None)
        elif code in (_STRING, _LONG_STRING):
            give(self._string(code))
        elif code == _OBJECT:
            made = JavaObject(self._class())
            self._handles.append(made)
            give(made)
            self._steps.append(self._object(made))
        elif code == _ARRAY:
            self._array(give)
        elif code == _CLASS:
            literal = JavaLiteral(self._class())
            self._handles.append(literal)
            give(literal)
        elif code == _ENUM:
            constant = JavaObject(self._class())
            self._handles.append(constant)
            give(constant)
            self._string(self._byte())
        elif code in (_BLOCK, _LONG_BLOCK):
            size = self._byte() if code == _BLOCK else self._int()
            self._at += size
        elif code == _CLASS_DESC:
            give(self._new_class())
        else:
            self._fail(code)

    def _object(self, made: JavaObject) -> Iterator[Callable[[Any], object]]:
        """The parts of an object that are objects, in order, from the highest class down."""
        for step in made.kind.layout or self._lay_out(made.kind):
            if isinstance(step, int):
                self._at += step
            elif step:
                yield partial(made.fields.__setitem__, step)
            else:
                while self._data[self._at] != _END:
                    yield made.extra.append
                self._at += 1

    def _lay_out(self, kind: JavaClass) -> list[int | str]:
        line: list[JavaClass] = []
        each: JavaClass | None = kind
        while each is not None:
            line.insert(0, each)
            each = each.parent
        for each in line:
            if each.flags & _SERIALIZABLE:
                kind.layout += [_SIZES.get(code) or name for code, name in each.fields]
            elif not each.flags & _IN_BLOCKS:
                self._fail(each.flags)
            if each.flags & (_WRITES_MORE | _EXTERNAL):
                kind.layout.append("")
        return kind.layout

    def _array(self, give: Callable[[Any], object]) -> None:
        made = JavaArray(self._class())
        self._handles.append(made)
        give(made)
        count = self._int()
        code = made.kind.name[1:2]
        if code in _SIZES:
            self._at += count * _SIZES[code]
        else:
            self._steps.append(made.items.append for _ in range(count))

    def _class(self) -> JavaClass:
        kind = self._class_or_none()
        if kind is None:
            self._fail(_NULL)
        return kind

    def _class_or_none(self) -> JavaClass | None:
        at = self._at
        code = self._data[at]
        self._at = at + 1
        if code == _NULL:
            return None
        if code == _REFERENCE:
            self._at = at + 5
            found = self._handles[int.from_bytes(self._data[at + 1 : at + 5]) - _FIRST_HANDLE]
            if not isinstance(found, JavaClass):
                self._fail(code)
            return found
        if code != _CLASS_DESC:
            self._fail(code)
        return self._new_class()

    def _new_class(self) -> JavaClass:
        made = JavaClass(self._text(self._short()))
        self._at += 8  # Its version.
        self._handles.append(made)
        made.flags = self._byte()
        for _ in range(self._short()):
            code = chr(self._byte())
            made.fields.append((code, self._text(self._short())))
            if code in "[L":
                told = self._byte()
                if told == _REFERENCE:
                    self._at += 4
                else:
                    self._string(told)
            elif code not in _SIZES:
                self._fail(ord(code))
        if (end := self._byte()) != _END:
            self._fail(end)
        made.parent = self._class_or_none()
        return made

    def _string(self, code: int) -> str:
        if code not in (_STRING, _LONG_STRING):
            self._fail(code)
        place = len(self._handles)
        self._handles.append("")
        size = self._short() if code == _STRING else (self._int() << 32) + self._int()
        text = self._handles[place] = self._text(size)
        return text

    def _text(self, size: int) -> str:
        text = self._data[self._at : self._at + size]
        self._at += size
        return text.decode("utf-8", "replace")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _short(self) -> int:
        return self._number(2)

    def _int(self) -> int:
        return self._number(4)

    def _number(self, size: int) -> int:
        self._at += size
        if self._at > len(self._data):
            self._fail(size)
        return int.from_bytes(self._data[self._at - size : self._at])

    def _fail(self, code: int) -> NoReturn:
        why = f"the stream holds {code:#x} at byte {self._at}"
        raise _unreadable(why)
