"""Two sources as one: the name of the pair, and the properties of each under the name of its side."""

from __future__ import annotations

from collections.abc import Mapping

from lading.model.load import SourceSpec

SIDES = ("left", "right")
"""What partitions and properties of a pair begin with. The names that a statement gives its sources can change."""
_AND = "+"


def is_pair(kind: str) -> bool:
    """Whether a source is a pair, by the name of its kind."""
    return _AND in kind


def kinds_of_pair(kind: str) -> tuple[str, ...]:
    """The kinds of both sources of a pair; of another source its own."""
    return tuple(kind.split(_AND))


def paired(left: SourceSpec, right: SourceSpec) -> SourceSpec:
    """Both sources as one."""
    properties = {
        on_side(side, name): value
        for side, source in zip(SIDES, (left, right), strict=True)
        for name, value in source.properties.items()
    }
    return SourceSpec(kind=f"{left.kind}{_AND}{right.kind}", properties=properties)


def single_sources(source: SourceSpec) -> dict[str, SourceSpec]:
    """The sources of a pair by their sides; another source under no name."""
    if not is_pair(source.kind):
        return {"": source}
    return {
        side: SourceSpec(kind=kind, properties=of_side(side, source.properties))
        for side, kind in zip(SIDES, kinds_of_pair(source.kind), strict=True)
    }


def on_side(side: str, name: str) -> str:
    """What a property or a partition of a source is called in a pair; its own name where there is no side."""
    return f"{side}.{name}" if side else name


def of_side(side: str, named: Mapping[str, str]) -> dict[str, str]:
    """What there is of one side, by its own names."""
    prefix = on_side(side, "")
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}


def side_of(name: str) -> tuple[str, str]:
    """The side of a property or a partition, and its own name."""
    side, _, own = name.partition(".")
    return (side, own) if side in SIDES else ("", name)
