"""A look inside of a file that ends the workers that read it: its rows are read in parts, until one row is left."""

from __future__ import annotations

from dataclasses import replace

from lading.model.batch import BatchPlan
from lading.sources.files.packing import is_cuttable
from lading.sources.files.payload import Payload, parse_payload, render_payload
from lading.sources.files.spec import FilesSpec


class InsideOfFiles:
    """Implements `lading.sources.kind.Inside` for lines of text that can be found from the middle of their file."""

    def __init__(self, spec: FilesSpec) -> None:
        self._spec = spec

    def extent(self, plan: BatchPlan) -> tuple[int, int] | None:
        """The bytes of the one file that a batch reads; None: it reads several, or rows of it cannot be told apart."""
        parts = [part for split in plan.splits for part in parse_payload(split.payload).parts]
        keys = {part.key for part in parts}
        if len(keys) != 1 or not self._spec.format.is_text or not is_cuttable(keys.pop(), self._spec):
            return None
        return (0, parts[0].size) if parts[0].size else None

    def narrowed(self, plan: BatchPlan, begin: int, end: int) -> BatchPlan:
        """The same batch with the rows alone that start in a range of bytes. It is read, and never committed."""
        first = plan.splits[0]
        part = replace(parse_payload(first.payload).parts[0], begin=begin, end=end)
        return replace(plan, splits=(replace(first, payload=render_payload(Payload(parts=(part,)))),))
