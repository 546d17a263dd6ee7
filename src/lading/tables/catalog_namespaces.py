"""What a catalog that others keep has, for the rest of the system."""

from __future__ import annotations

from typing import Protocol


class CatalogNamespaces(Protocol):
    """Namespaces and tables of a catalog. Every question goes to the catalog; dots part levels of namespaces."""

    def databases(self) -> list[str]:
        """Its namespaces of the first level."""
        ...

    def has_database(self, name: str) -> bool: ...

    def tables(self, database: str) -> list[str]:
        """Its Iceberg tables in one namespace. Raises TableNotFoundError when that is not there."""
        ...

    def has_table(self, database: str, name: str) -> bool: ...

    def create_database(self, name: str) -> None:
        """Raises ConflictError."""
        ...

    def drop_database(self, name: str) -> None:
        """Raises ConflictError while it has tables."""
        ...

    def drop_table(self, database: str, name: str, *, purge: bool) -> None:
        """Take a name out of the catalog; with `purge`, its files go too."""
        ...

    def close(self) -> None: ...
