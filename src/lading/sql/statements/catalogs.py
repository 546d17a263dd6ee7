"""Statements about catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog:
    """CREATE CATALOG [IF NOT EXISTS] name [COMMENT '…'] PROPERTIES (…)"""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCatalog:
    """ALTER CATALOG name SET PROPERTIES (…) | RENAME other | MODIFY COMMENT '…': one of the three."""

    name: str
    properties: Mapping[str, str] | None = field(default=None, repr=False)
    new_name: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog:
    """DROP CATALOG [IF EXISTS] name"""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCatalogs:
    """SHOW CATALOGS"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateCatalog:
    """SHOW CREATE CATALOG name"""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchCatalog:
    """SWITCH name"""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshCatalog:
    """REFRESH CATALOG name"""

    name: str


CatalogStatement = (
    CreateCatalog | AlterCatalog | DropCatalog | ShowCatalogs | ShowCreateCatalog | SwitchCatalog | RefreshCatalog
)
