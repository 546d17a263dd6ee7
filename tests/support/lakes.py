"""A catalog of each kind with its real server: as Lading's statement names it, and as Iceberg on the JVM does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.store.postgres import PostgresServer
from tests.support.hive_metastore import Metastore
from tests.support.jvm_engine import OTHERS
from tests.support.rest_catalog import RestServer
from tests.tables.s3_server import S3Server


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeCatalog:
    """One catalog in two languages."""

    properties: Mapping[str, str]
    """Of CREATE CATALOG."""
    engine: Mapping[str, str]
    """Of Iceberg's catalogs."""
    files: Mapping[str, str] = field(default_factory=dict)
    """How PyIceberg's FileIO reaches its files, for readers that go through it."""

    @property
    def statement(self) -> str:
        said = ", ".join(f'"{name}" = "{value}"' for name, value in self.properties.items())
        return f"CREATE CATALOG lake PROPERTIES ({said})"


def rest_lake(server: RestServer, uri: str = "") -> LakeCatalog:
    return LakeCatalog(
        properties=_of("rest", {"uri": uri or server.url, "warehouse": f"file://{server.warehouse}"}),
        engine={"type": "rest", "uri": uri or server.url},
    )


def in_postgres(server: PostgresServer) -> dict[str, str]:
    """A new database for a catalog of Iceberg's JDBC kind, in Iceberg's words."""
    user, _, place = server.new_database().removeprefix("postgresql://").partition("@")
    return {"uri": f"jdbc:postgresql://{place}", "jdbc.user": user, "jdbc.schema-version": "V1"}


def jdbc_lake(server: PostgresServer, folder: Path) -> LakeCatalog:
    kept = in_postgres(server)
    warehouse = f"file://{folder}/warehouse"
    return LakeCatalog(
        # Iceberg writes the name of the catalog into its rows; Spark calls it `lading`.
        properties=_of(
            "jdbc",
            {
                "uri": kept["uri"],
                "iceberg.jdbc.user": kept["jdbc.user"],
                "iceberg.jdbc.catalog_name": "lading",
                "warehouse": warehouse,
            },
        ),
        engine={"type": "jdbc", **kept, "warehouse": warehouse},
    )


def hms_lake(server: Metastore) -> LakeCatalog:
    warehouse = f"file://{server.warehouse}"
    return LakeCatalog(
        properties=_of("hms", {"hive.metastore.uris": server.uri, "warehouse": warehouse}),
        engine={"type": "hive", "uri": server.uri, "warehouse": warehouse},
    )


def glue_lake(store: S3Server) -> LakeCatalog:
    warehouse, keys = f"s3://{store.make_bucket()}/lake", store.options
    return LakeCatalog(
        properties=_of(
            "glue",
            {
                "warehouse": warehouse,
                "glue.endpoint": store.endpoint,
                "glue.region": keys.region,
                "glue.access_key": keys.access_key,
                "glue.secret_key": keys.secret_key,
                **_in_s3(store),
            },
        ),
        engine={"type": "glue", "warehouse": warehouse, "glue.endpoint": store.endpoint, **_jvm_in_s3(store)},
        files=_files_in_s3(store),
    )


def nessie_lake(uri: str, store: S3Server) -> LakeCatalog:
    """A REST catalog of others, whose tables are in S3. It calls its warehouse `lake`."""
    return LakeCatalog(
        properties=_of("rest", {"uri": uri, "warehouse": "lake", **_in_s3(store)}),
        engine={"type": "rest", "uri": uri, **_jvm_in_s3(store)},
        files=_files_in_s3(store),
    )


def _in_s3(store: S3Server) -> dict[str, str]:
    """In the words of CREATE CATALOG."""
    keys = store.options
    return {
        "s3.endpoint": store.endpoint,
        "s3.region": keys.region,
        "s3.access_key": keys.access_key,
        "s3.secret_key": keys.secret_key,
        "use_path_style": "true",
    }


def _jvm_in_s3(store: S3Server) -> dict[str, str]:
    """In the words of Iceberg's S3FileIO."""
    return {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "http-client.type": "urlconnection",
        "client.region": store.options.region,
        "s3.endpoint": store.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": OTHERS,
        "s3.secret-access-key": OTHERS,
    }


def _files_in_s3(store: S3Server) -> dict[str, str]:
    """In the words of PyIceberg's FileIO."""
    return {
        "s3.endpoint": store.endpoint,
        "s3.region": store.options.region,
        "s3.access-key-id": store.options.access_key,
        "s3.secret-access-key": store.options.secret_key,
    }


def s3a(store: S3Server) -> dict[str, str]:
    """How Spark reaches the store."""
    return {
        "fs.s3a.endpoint": store.endpoint,
        "fs.s3a.endpoint.region": store.options.region,
        "fs.s3a.access.key": OTHERS,
        "fs.s3a.secret.key": OTHERS,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.impl.disable.cache": "true",
        "fs.s3a.input.stream.type": "classic",
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }


def _of(kind: str, more: Mapping[str, str]) -> dict[str, str]:
    return {"type": "iceberg", "iceberg.catalog.type": kind, **more}
