"""From files to splits: small files are packed together, large ones are cut where their format allows it.

Positions of one batch form a chain: "" → key of the last file of the first split → … → key of the last file. Inside a
file that is cut the position is written `key#offset`. All parts of a file are in one batch, so that such a position
stands between two splits only and is never committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lading.sources.files.compression import compression_of
from lading.sources.files.payload import FilePart
from lading.sources.files.spec import Compression, FilesSpec, Format
from lading.sources.files.store import ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSizing:
    """How large splits should be."""

    target_bytes: int = 128 * 1024 * 1024
    parallel: int = 2
    """Tasks that run at one time; a batch is cut into as many splits where it is large enough."""
    smallest_bytes: int = 4 * 1024 * 1024
    """Less is not worth a task of its own."""
    max_splits: int = 512
    open_cost_bytes: int = 64 * 1024
    """What opening one more file costs, in bytes that could be read meanwhile."""


def pack_files(files: Sequence[ObjectInfo], spec: FilesSpec, sizing: SplitSizing) -> list[tuple[FilePart, ...]]:
    """Groups of files and parts of files, in the order of their keys."""
    total = sum(file.size + sizing.open_cost_bytes for file in files)
    fair = min(sizing.target_bytes, max(sizing.smallest_bytes, _divide(total, sizing.parallel)))
    aim = max(fair, _divide(total, sizing.max_splits))
    groups: list[tuple[FilePart, ...]] = []
    current: list[FilePart] = []
    weight = 0
    for part in (part for file in files for part in _cut(file, spec, aim)):
        cost = part.end - part.begin + sizing.open_cost_bytes
        if current and weight + cost > aim + sizing.open_cost_bytes:
            groups.append(tuple(current))
            current, weight = [], 0
        current.append(part)
        weight += cost
    if current:
        groups.append(tuple(current))
    return groups


def end_of(part: FilePart) -> str:
    """The position after a part."""
    return part.key if part.end == part.size else f"{part.key}#{part.end}"


def is_cuttable(key: str, spec: FilesSpec) -> bool:
    """Whether rows of a file can be found from its middle."""
    if not spec.format.is_text:
        return True
    if compression_of(key, spec) is not Compression.PLAIN:
        return False
    if spec.format is Format.JSON:
        return spec.json.read_by_line
    return not spec.csv.enclose and not _has_border(spec.csv.line_delimiter)


def _cut(file: ObjectInfo, spec: FilesSpec, aim: int) -> list[FilePart]:
    pieces = _divide(file.size, aim) if file.size > aim + aim // 2 and is_cuttable(file.key, spec) else 1
    ends = [file.size * number // pieces for number in range(pieces + 1)]
    return [FilePart(file.key, file.size, file.etag, *span) for span in pairwise(ends)]


def _has_border(text: str) -> bool:
    """Whether a text can overlap with itself: then its places depend on where the search begins."""
    return any(text[:length] == text[-length:] for length in range(1, len(text)))


def _divide(number: int, by: int) -> int:
    return -(-number // by)
