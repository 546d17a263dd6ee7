"""Whether a record keeps what properties say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from lading.errors import SqlError

Record = TypeVar("Record")


def check_each_is_kept(
    read: Callable[[Mapping[str, str]], Record], given: Mapping[str, str], *, one_value: Collection[str] = ()
) -> Record:
    """Without any one of the properties the record is another one, or none. Some can only say what is so anyway."""
    record = read(given)
    for name in given.keys() - one_value:
        try:
            without = read({other: value for other, value in given.items() if other != name})
        except SqlError:
            continue  # It is needed.
        assert without != record, f"{name} is read and not kept"
    return record
