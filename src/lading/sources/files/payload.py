"""What the planner tells the reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, or the rows of it that start in a range of bytes."""

    key: str
    size: int
    etag: str
    begin: int
    end: int

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.end == self.size

    @property
    def name(self) -> str:
        """What rows give as their file. In the later parts of a cut file rows count from the start of the part."""
        return self.key if self.begin == 0 else f"{self.key}#{self.begin}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The inside of `Split.payload`."""

    parts: tuple[FilePart, ...]
    finished: bool = False
    marks: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    """Marks that are to be kept as well when the file cannot be read, and is put aside."""


def render_payload(payload: Payload) -> str:
    """One JSON object. `files` is a list of [key, size, etag, begin, end]."""
    files = [[part.key, part.size, part.etag, part.begin, part.end] for part in payload.parts]
    body = {
        "files": files,
        "finished": payload.finished,
        "marks": dict(payload.marks),
        "unread": dict(payload.unread),
    }
    return json.dumps(body, separators=(",", ":"))


def parse_payload(text: str) -> Payload:
    """The opposite of `render_payload`."""
    body = json.loads(text)
    parts = tuple(FilePart(*item) for item in body["files"])
    return Payload(parts=parts, finished=body["finished"], marks=body["marks"], unread=body["unread"])


def pieces_of(part: FilePart, passed: Sequence[int]) -> Iterator[tuple[FilePart, bool]]:
    """A part around the rows that start at these bytes, each with whether it is such a row; those elsewhere are others'
    business."""
    begin = part.begin
    for at in sorted(byte for byte in passed if part.begin <= byte < part.end):
        if begin < at:
            yield replace(part, begin=begin, end=at), False
        yield replace(part, begin=at, end=at + 1), True
        begin = at + 1
    if begin < part.end or begin == part.begin:
        yield replace(part, begin=begin), False
