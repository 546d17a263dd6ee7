"""What the properties of CREATE CATALOG mean, in Doris' words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit

from lading.errors import SqlError
from lading.model.catalog import CatalogAccess, CatalogKind
from lading.model.s3_access import S3Access, bucket_path, machine_path
from lading.net.addresses import AddressRules
from lading.service.security.endpoints import Endpoint, endpoint_of

_TYPE, _KIND = "type", "iceberg.catalog.type"
_URI, _WAREHOUSE = "uri", "warehouse"
_REST = "iceberg.rest."
_JDBC = "iceberg.jdbc."
_METASTORE = "hive.metastore.uris"
_S3 = ("s3.endpoint", "s3.region", "s3.access_key", "s3.secret_key", "s3.session_token", "use_path_style")
_OAUTH = f"{_REST}oauth2."
_VENDED = f"{_REST}vended-credentials-enabled"
_SECURITY = f"{_REST}security.type"
_OF_KIND: Mapping[CatalogKind, tuple[str, ...]] = {
    CatalogKind.REST: (
        f"{_REST}uri",
        f"{_REST}warehouse",
        f"{_REST}prefix",
        _SECURITY,
        *(f"{_OAUTH}{name}" for name in ("token", "credential", "server-uri", "scope")),
        _VENDED,
    ),
    CatalogKind.GLUE: (
        *(f"glue.{name}" for name in ("region", "endpoint", "access_key", "secret_key", "session_token")),
        "glue.catalog_id",
    ),
    CatalogKind.HMS: (_METASTORE,),
    CatalogKind.JDBC: tuple(f"{_JDBC}{name}" for name in ("uri", "user", "password", "catalog_name")),
}
_FORMS = {CatalogKind.REST: ("http", "https"), CatalogKind.HMS: ("thrift",), CatalogKind.JDBC: ("jdbc", "postgresql")}
_REFUSED = {
    "hadoop": "Lading does not load tables of a Hadoop catalog, in which nothing decides between two writers",
}
"""Kinds that Doris knows, and why they are none here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDefinition:
    """A catalog as it is written, checked; references to secrets stay."""

    kind: CatalogKind
    properties: Mapping[str, str]

    @property
    def uri(self) -> str:
        """Where it answers; empty for one of AWS."""
        names = {
            CatalogKind.REST: (_URI, f"{_REST}uri"),
            CatalogKind.JDBC: (_URI, f"{_JDBC}uri"),
            CatalogKind.HMS: (_METASTORE, _URI),
            CatalogKind.GLUE: (),
        }[self.kind]
        return next((self.properties[name] for name in names if self.properties.get(name)), "")

    @property
    def warehouse(self) -> str:
        return self.properties.get(_WAREHOUSE) or self.properties.get(f"{_REST}warehouse", "")

    @property
    def hosts(self) -> tuple[Endpoint, ...]:
        """Every host that it names."""
        named = [(_URI, part) for part in self.uri.split(",") if part]
        named += [(name, self.properties.get(name, "")) for name in ("s3.endpoint", "glue.endpoint")]
        named.append((f"{_OAUTH}server-uri", self.properties.get(f"{_OAUTH}server-uri", "")))
        return tuple(endpoint_of(name, value.removeprefix("jdbc:")) for name, value in named if value)

    @property
    def uses_service_identity(self) -> bool:
        """Whether the service signs in at AWS as itself."""
        return self.kind is CatalogKind.GLUE and not self.properties.get("glue.access_key")


def warehouses_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Where a catalog keeps tables of which nobody says where they are: folders, buckets, or words of its own."""
    return tuple(properties[name] for name in (_WAREHOUSE, f"{_REST}warehouse") if properties.get(name))


def read_definition(properties: Mapping[str, str]) -> CatalogDefinition:
    """Check the properties of a catalog. Raises SqlError."""
    from lading.tables.registry import IN_CATALOGS

    if properties.get(_TYPE, "").lower() != IN_CATALOGS:
        msg = f'Lading knows catalogs of "type" = "iceberg", not {properties.get(_TYPE, "")!r}'
        raise SqlError(msg, property=_TYPE, todo='Write "type" = "iceberg".')
    try:
        kind = CatalogKind(properties.get(_KIND, "").lower())
    except ValueError as error:
        known = ", ".join(each.value for each in CatalogKind)
        given = properties.get(_KIND, "")
        msg = _REFUSED.get(given.lower()) or f"{_KIND} is {given!r}"
        raise SqlError(msg, property=_KIND, todo=f"Write one of {known}.") from error
    known_names = {_TYPE, _KIND, _WAREHOUSE, *_S3, *_OF_KIND[kind], *(() if kind is CatalogKind.GLUE else (_URI,))}
    unknown = sorted(set(properties) - known_names)
    if unknown:
        msg = f"A catalog of {_KIND} = {kind.value} has no property {unknown[0]}"
        todo = f"Known are: {', '.join(sorted(known_names))}."
        raise SqlError(msg, property=unknown[0], todo=todo)
    found = CatalogDefinition(kind=kind, properties=dict(properties))
    _check(found)
    return found


def _check(found: CatalogDefinition) -> None:
    forms = _FORMS.get(found.kind, ())
    if forms and not found.uri:
        msg = f"A catalog of {_KIND} = {found.kind.value} needs a uri"
        raise SqlError(msg, property=_URI, todo=f"Write for example {_EXAMPLES[found.kind]}.")
    for part in found.uri.split(",") if forms else ():
        if part.strip().partition(":")[0].lower() not in forms:
            msg = f"The uri of a catalog of {_KIND} = {found.kind.value} begins with {' or '.join(forms)}"
            raise SqlError(msg, property=_URI, todo=f"Write for example {_EXAMPLES[found.kind]}.")
    if found.kind is CatalogKind.JDBC and not found.uri.removeprefix("jdbc:").startswith("postgresql://"):
        msg = "A jdbc catalog is one in PostgreSQL"
        raise SqlError(msg, property=_URI, todo=f"Write for example {_EXAMPLES[found.kind]}.")
    security = found.properties.get(_SECURITY, "").lower()
    tokens = [name for name in ("token", "credential") if found.properties.get(f"{_OAUTH}{name}")]
    if security not in ("", "none", "oauth2") or (security == "oauth2") != bool(tokens):
        msg = f"{_SECURITY} is {security or 'none'!r}, and {' and '.join(tokens) or 'no token'} is written"
        todo = f"With oauth2, write {_OAUTH}token or {_OAUTH}credential; without it, neither."
        raise SqlError(msg, property=_SECURITY, todo=todo)
    S3Access.from_properties({name: value for name, value in found.properties.items() if name in _S3})


_EXAMPLES = {
    CatalogKind.REST: "http://catalog.example:8181",
    CatalogKind.HMS: "thrift://metastore.example:9083",
    CatalogKind.JDBC: "jdbc:postgresql://db.example:5432/catalog",
}


def access_of(name: str, found: CatalogDefinition, resolved: Mapping[str, str], rules: AddressRules) -> CatalogAccess:
    """How the catalog is reached. `resolved`: its properties with secrets in the place of references to them."""
    lends = resolved.get(_VENDED, "").lower() == "true"
    whole = CatalogDefinition(kind=found.kind, properties=resolved)
    reach = S3Access.from_properties({key: value for key, value in resolved.items() if key in _S3})
    storage = _limited(replace(reach, addresses=rules), whole.warehouse, lends=lends)
    return CatalogAccess(name=name, kind=found.kind, properties=_words(whole), storage=storage, lends_keys=lends)


def _limited(reach: S3Access, warehouse: str, *, lends: bool) -> S3Access:
    """Which files tables of the catalog may name. Local ones: in the warehouse, when that is a folder. Buckets: any
    with keys of the catalog's own, or lent ones; with the service's identity, what the warehouse has."""
    is_bucket = bucket_path(warehouse) is not None
    path = machine_path(warehouse)
    roots = (path.rstrip("/"),) if not is_bucket and path.startswith("/") and path.strip("/") else ()
    within = warehouse if is_bucket and not reach.access_key and not lends else "s3://"
    return replace(reach, within=within, roots=roots)


def _words(found: CatalogDefinition) -> dict[str, str]:
    """The definition in PyIceberg's words."""
    said = found.properties
    words = {"warehouse": found.warehouse}
    match found.kind:
        case CatalogKind.REST:
            words |= {
                "uri": found.uri,
                "prefix": said.get(f"{_REST}prefix", ""),
                "token": said.get(f"{_OAUTH}token", ""),
                "credential": said.get(f"{_OAUTH}credential", ""),
                "oauth2-server-uri": said.get(f"{_OAUTH}server-uri", ""),
                "scope": said.get(f"{_OAUTH}scope", ""),
            }
        case CatalogKind.GLUE:
            words |= {
                "glue.region": said.get("glue.region") or said.get("s3.region", ""),
                "glue.endpoint": said.get("glue.endpoint", ""),
                "glue.access-key-id": said.get("glue.access_key", ""),
                "glue.secret-access-key": said.get("glue.secret_key", ""),
                "glue.session-token": said.get("glue.session_token", ""),
                "glue.id": said.get("glue.catalog_id", ""),
            }
        case CatalogKind.HMS:
            words |= {"uri": found.uri}
        case CatalogKind.JDBC:
            words |= {"uri": _database_url(found), "catalog-name": said.get(f"{_JDBC}catalog_name", "")}
    return {name: value for name, value in words.items() if value}


def _database_url(found: CatalogDefinition) -> str:
    """A URL of JDBC as SQLAlchemy takes it, with the user and the password in it."""
    parts = urlsplit(found.uri.removeprefix("jdbc:"))
    given = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
    user = found.properties.get(f"{_JDBC}user") or unquote(given.pop("user", "") or parts.username or "")
    password = found.properties.get(f"{_JDBC}password") or unquote(given.pop("password", "") or parts.password or "")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    place = parts.netloc.rpartition("@")[2]
    kept = {name: value for name, value in given.items() if name in ("sslmode",)}
    query = "&".join(f"{name}={value}" for name, value in kept.items())
    return f"postgresql+psycopg://{login}{place}{parts.path}{f'?{query}' if query else ''}"
