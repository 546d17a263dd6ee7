"""What a contender is asked to load. Nothing but Python's own library: every environment can read it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = "city <> 'city 7'"
"""The filter, the same text for every engine that reads SQL."""
TYPES = {"id": "BIGINT", "city": "STRING", "amount": "DECIMAL(10,2)", "note": "STRING"}
"""The columns of the input. A wide table has more, which are passed through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One load of a folder into a new table."""

    form: str
    """csv, json or parquet."""
    ending: str
    """How the names of the files end, such as csv.gz."""
    inbox: str
    home: str
    """A new folder, for whatever the contender writes."""
    extra: dict[str, str]
    """Names and types of the columns that are passed through."""
    once: bool
    """Whether this process ends after it."""
    until: str = ""
    """Load whatever comes, until there is a file of this name. Without it: what is there now."""

    @property
    def pattern(self) -> str:
        return f"{self.inbox}/*.{self.ending}"

    @property
    def files(self) -> list[Path]:
        return sorted(Path(self.inbox).glob(f"*.{self.ending}"))

    @property
    def out(self) -> Path:
        """Where the table is to be."""
        return Path(self.home) / "out"

    @property
    def types(self) -> dict[str, str]:
        """All columns of the input, in their order."""
        return {**TYPES, **self.extra}

    @property
    def expressions(self) -> dict[str, str]:
        """The mapping, in SQL: what each column of the table is."""
        mapped = {"id": "id", "city": "upper(city)", "amount": "CAST(amount * 1.1 AS DECIMAL(10,2))"}
        return {**mapped, **{name: name for name in self.extra}}

    @property
    def select(self) -> str:
        return ", ".join(text if text == name else f"{text} AS {name}" for name, text in self.expressions.items())

    def is_over(self) -> bool:
        return Path(self.until).exists()

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_order(text: str) -> Order:
    return Order(**json.loads(text))
