"""What the planner tells the reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


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


def render_payload(payload: Payload) -> str:
    """One JSON object. `files` is a list of [key, size, etag, begin, end]."""
    files = [[part.key, part.size, part.etag, part.begin, part.end] for part in payload.parts]
    body = {"files": files, "finished": payload.finished, "marks": dict(payload.marks)}
    return json.dumps(body, separators=(",", ":"))


def parse_payload(text: str) -> Payload:
    """The opposite of `render_payload`."""
    body = json.loads(text)
    parts = tuple(FilePart(*item) for item in body["files"])
    return Payload(parts=parts, finished=body["finished"], marks=body["marks"])
