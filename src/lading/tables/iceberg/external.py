"""Catalogs that others keep: opening them."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from lading.errors import ConfigError
from lading.model.catalog import CatalogAccess, CatalogKind
from lading.net.addresses import AddressRules
from lading.net.peers import guard_peers
from lading.storage.aws import Credentials, open_session
from lading.tables.iceberg.errors import translated, wrong_setting
from lading.tables.iceberg.file_io_properties import FILE_IO, file_io_properties
from lading.tables.iceberg.guard import guard_catalog
from lading.tables.iceberg.postgres import with_limits
from lading.tables.iceberg.rest import GuardedRest


def open_external(access: CatalogAccess) -> Catalog:
    """Open a catalog. Raises what says that it cannot be reached, or not with this token."""
    with translated(what := f"catalog {access.name}"):
        try:
            return _opened(access)
        except (ValueError, KeyError) as error:
            raise wrong_setting(what, error) from error


def _opened(access: CatalogAccess) -> Catalog:
    files = {"py-io-impl": FILE_IO, **file_io_properties(access.storage)}
    match access.kind:
        case CatalogKind.REST:
            return GuardedRest(_with(access, {"py-io-impl": FILE_IO}))
        case CatalogKind.GLUE:
            client = _glue_client(access.properties, access.storage.addresses)
            return guard_catalog(GlueCatalog(access.name, client=client, **access.properties, **files), access.storage)
        case CatalogKind.HMS:
            return guard_catalog(_hive(access, files), access.storage)
        case CatalogKind.JDBC:
            return guard_catalog(_sql(access, files), access.storage)


def _with(access: CatalogAccess, more: dict[str, str]) -> CatalogAccess:
    return CatalogAccess(
        name=access.name,
        kind=access.kind,
        properties={**access.properties, **more},
        storage=access.storage,
        lends_keys=access.lends_keys,
    )


def _hive(access: CatalogAccess, files: dict[str, str]) -> Catalog:
    try:
        from lading.tables.iceberg.hive import LockedHive
    except ModuleNotFoundError as error:
        msg = "A Hive metastore needs the library thrift, which is not installed"
        raise ConfigError(msg, left="Nothing was changed.", todo="pip install 'lading[hive]'") from error
    return LockedHive(access, files)


def _sql(access: CatalogAccess, files: dict[str, str]) -> Catalog:
    url = with_limits(access.properties["uri"])
    name = access.properties.get("catalog-name") or access.name
    catalog = SqlCatalog(name, **{**access.properties, **files, "uri": url})
    # None of them keeps a connection: a thousand tables would need as many, and none outlives a restart.
    catalog.engine.dispose()
    catalog.engine = create_engine(url, poolclass=NullPool)
    return catalog


def _glue_client(properties: Any, rules: AddressRules) -> Any:
    keys = Credentials(
        access_key=properties.get("glue.access-key-id", ""),
        secret_key=properties.get("glue.secret-access-key", ""),
        session_token=properties.get("glue.session-token", ""),
        addresses=rules,
    )
    endpoint = properties.get("glue.endpoint", "")
    client = open_session(keys, properties.get("glue.region", "")).client(
        "glue",
        region_name=properties.get("glue.region") or None,
        endpoint_url=endpoint or None,
        config=Config(retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=10, read_timeout=20),
    )
    return guard_peers(client, rules) if endpoint else client
