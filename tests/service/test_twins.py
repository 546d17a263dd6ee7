"""Two names of one table: DROP TABLE asks every catalog that may know it under another name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from lading.errors import ConfigError, StorageError, TableNotFoundError
from lading.service.catalog.tables import TableCatalog
from lading.service.catalog.twins import same_tables


@dataclass(frozen=True, slots=True)
class Servers:
    """Catalogs of others; a name without an identity is of a server that does not answer."""

    tables: dict[str, str]

    def incarnation(self, database: str, name: str) -> str:
        if (whole := f"{database}.{name}") not in self.tables:
            msg = f"There is no table {whole}"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo="")
        if not self.tables[whole]:
            msg = "connection refused"
            raise StorageError(msg, left="Nothing was changed.", todo="")
        return self.tables[whole]


def asks(name: str, **tables: str) -> bool:
    """Whether `name` is the same table as lake.sales.orders."""
    known = {f"{catalog}.sales.orders": identity for catalog, identity in tables.items()}
    return same_tables(cast("TableCatalog", Servers(known)), name)("lake.sales.orders")


def test_a_table_is_told_by_what_it_is() -> None:
    assert asks("pond.sales.orders", lake="1", pond="1")
    assert not asks("pond.sales.orders", lake="1", pond="2")
    assert not asks("pond.sales.orders", pond="2"), "the other one was dropped"
    assert not asks("pond.sales.orders", lake="1"), "DROP TABLE IF EXISTS"
    assert not asks("sales.orders", lake=""), "a table of the installation has one name"
    assert asks("lake.sales.orders", lake=""), "the name says it"


@pytest.mark.parametrize(("lake", "pond"), [("", "1"), ("1", "")])
def test_a_catalog_that_is_away_may_know_the_table(lake: str, pond: str) -> None:
    with pytest.raises(ConfigError, match="cannot be told: connection refused"):
        asks("pond.sales.orders", lake=lake, pond=pond)
