"""How a catalog that others keep is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lading.model.s3_access import S3Access


class CatalogKind(Enum):
    """What answers there, in Doris' words for `iceberg.catalog.type`."""

    REST = "rest"
    GLUE = "glue"
    HMS = "hms"
    JDBC = "jdbc"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAccess:
    """A catalog, ready to be opened: references to secrets were followed, and its hosts were checked."""

    name: str
    """In Lading."""
    kind: CatalogKind
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """In PyIceberg's words; no more than its definition says."""
    storage: S3Access = S3Access()
    """How files of its tables are reached, and which they may be, unless the catalog lends keys for them."""
    lends_keys: bool = False
    """A REST catalog gives keys for the files of each table, which expire."""
