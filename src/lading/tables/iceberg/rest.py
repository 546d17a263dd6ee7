"""A REST catalog: whom it is asked through, what its answers may say, and keys that it lends.

PyIceberg takes over whatever the server says: classes to import, another token server, endpoints, files of this
machine. Here the answers may name no more than where the API is and how the files of a table are reached, and those
hosts pass the rules of the catalog. A lent key is used for the files of its table alone, and asked for again with every
look at the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.catalog.rest import Endpoints, RestCatalog, TableResponse
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.exceptions import RESTError
from pyiceberg.io import load_file_io
from pyiceberg.table import StagedTable, Table
from pyiceberg.typedef import EMPTY_DICT
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException

from lading.clock import Clock, SystemClock
from lading.errors import TableError
from lading.model.catalog import CatalogAccess
from lading.model.s3_access import S3Access
from lading.net.addresses import AddressRules
from lading.net.peers import guarded_pools
from lading.storage.renewed import KeySource
from lading.tables.iceberg.file_io_properties import file_io_properties
from lading.tables.iceberg.guard import check_loaded
from lading.tables.iceberg.oauth import ClientCredentials

_TIMES_S = (10.0, 60.0)
"""To connect, and for each part of an answer."""
_FROM_SERVER = ("uri", "prefix", "namespace-separator", "rest-page-size")
_REGIONS = ("client.region", "region")
_KEPT = (*_REGIONS, "expiration-time")
_DELEGATION = "X-Iceberg-Access-Delegation"
_EXPIRES = ("s3.session-token-expires-at-ms", "expiration-time")
"""Both are in use, in milliseconds."""
_SPARE_S = 300.0
"""So long before its end a key is not handed out any more; half of its life, when that is shorter."""
_FRESH_S = 600.0
"""A key that does not say when it ends is asked for again after so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LentAccess:
    """A key with its times, in seconds of the calendar, for another process."""

    access: S3Access
    until_s: float
    """From then on it is asked for another one."""
    over_s: float
    """From then on it is refused; infinite where nobody said."""


class GuardedRest(RestCatalog):
    """A catalog of one table, or of none: `lent` is how the files of the table that was loaded last are reached."""

    def __init__(self, access: CatalogAccess, clock: Clock | None = None) -> None:
        self._access = access
        self._clock = clock or SystemClock()
        self._server: dict[str, str] = {}
        self.lent = access.storage
        self._until_s = self._over_s = 0.0
        self._last: Any = None
        super().__init__(access.name, **access.properties)

    @property
    def lends_keys(self) -> bool:
        return self._access.lends_keys

    @property
    def definition(self) -> CatalogAccess:
        """How it was opened."""
        return self._access

    def _create_session(self) -> Session:
        session = super()._create_session()
        adapter = _GuardedAdapter(self._access.storage.addresses)
        for scheme in ("http://", "https://"):
            session.mount(scheme, adapter)
        # A redirect leads to a host that nobody named, and takes the token there.
        session.max_redirects = 0
        return session

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        credential = self.properties.get("credential")
        if credential is None:
            return super()._create_legacy_oauth2_auth_manager(session)
        url = self.properties.get("oauth2-server-uri") or self.url(Endpoints.get_token, prefixed=False)
        return ClientCredentials(session, url, credential, self._extract_optional_oauth_params(), self._clock)

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)
        # Every open table has a catalog of its own. None keeps a connection: a thousand tables would need as many.
        session.headers["Connection"] = "close"
        if not self._access.lends_keys:
            session.headers.pop(_DELEGATION, None)

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        said = self.properties
        self._server = storage_of(said)
        self.properties = {**own, **{name: said[name] for name in _FROM_SERVER if name in said}}

    def load_table(self, identifier: Any) -> Table:
        table: Table = super().load_table(identifier)
        check_loaded(table.metadata, self.lent)
        self._last = identifier
        return table

    def fresh(self) -> S3Access:
        """How the files of the table are reached, with a key that is good for a while."""
        now_s = self._clock.monotonic_s()
        if self._access.lends_keys and self._last is not None and now_s > self._until_s:
            try:
                self.load_table(self._last)
            except (RESTError, RequestException):
                if now_s >= self._over_s:
                    raise
                # The catalog is away: the key is good for a moment, and the next use asks again.
        return self.lent

    def keys_of(self, identifier: str) -> KeySource:
        """The keys of one table, here and in other processes."""
        from lading.tables.iceberg.lent_keys import TableKeys  # It opens catalogs, in other processes.

        return TableKeys(self, identifier)

    def lent_until(self) -> LentAccess:
        """The key of now, with its times."""
        shift_s = self._clock.now().timestamp() - self._clock.monotonic_s()
        return LentAccess(access=self.lent, until_s=self._until_s + shift_s, over_s=self._over_s + shift_s)

    def _load_file_io(self, properties: Any = EMPTY_DICT, location: str | None = None) -> Any:
        del properties  # Of the table: everybody who may write to its bucket can change them.
        return load_file_io({"py-io-impl": self.properties["py-io-impl"], **file_io_properties(self.lent)}, location)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        self._borrow(table_response)
        return super()._response_to_table(identifier_tuple, table_response)

    def _response_to_staged_table(
        self, identifier_tuple: tuple[str, ...], table_response: TableResponse
    ) -> StagedTable:
        self._borrow(table_response)
        return super()._response_to_staged_table(identifier_tuple, table_response)

    def _borrow(self, response: TableResponse) -> None:
        config = {name: value for name, value in response.config.items() if name != "token"}
        place = response.metadata.location
        best = self._resolve_storage_credentials(response.storage_credentials, place)
        said = {**self._server, **storage_of(config), **storage_of(best)}
        self.lent = with_lent_keys(self._access, said, response.metadata.location)
        now_s, lasts_s = self._clock.monotonic_s(), self._lasts_s(said)
        self._over_s = now_s + (float("inf") if lasts_s is None else lasts_s)
        self._until_s = now_s + (_FRESH_S if lasts_s is None else lasts_s - min(_SPARE_S, lasts_s / 2))

    def _lasts_s(self, said: Mapping[str, str]) -> float | None:
        """How long a key is good; None when the server does not say."""
        until = next((said[name] for name in _EXPIRES if said.get(name, "").isdecimal()), "")
        return max(0.0, int(until) / 1000 - self._clock.now().timestamp()) if until else None


def storage_of(said: Mapping[str, Any]) -> dict[str, str]:
    """What a server says about the storage of tables; the rest of it is not heard."""
    kept = ((name, value) for name, value in said.items() if name.startswith("s3.") or name in _KEPT)
    return {name: str(value) for name, value in kept}


def with_lent_keys(access: CatalogAccess, said: Mapping[str, str], location: str) -> S3Access:
    """The access of a catalog with what its server lends for one table. Raises TableError.

    What the definition of the catalog says counts more than the server, but for the keys: those are what it lends.
    """
    own = access.storage
    if not access.lends_keys:
        return own
    key, secret = said.get("s3.access-key-id", ""), said.get("s3.secret-access-key", "")
    is_local = not location.startswith("s3")
    if not (key and secret) and not own.access_key and not is_local:
        signer = "it signs requests itself, which Lading does not do" if _signs(said) else "it gave none"
        msg = f"The catalog {access.name} lends no keys for the table at {location}: {signer}"
        todo = "Have it lend keys (vended credentials), or write s3.access_key and s3.secret_key into the catalog."
        raise TableError(msg, left="Nothing was changed.", todo=todo)
    found = replace(
        own,
        endpoint=own.endpoint or said.get("s3.endpoint", ""),
        region=own.region or said.get("s3.region", "") or said.get("client.region", "") or said.get("region", ""),
        path_style=own.path_style or said.get("s3.path-style-access", "").lower() == "true",
    )
    if not (key and secret):
        return found
    token = said.get("s3.session-token", "")
    return replace(found, access_key=key, secret_key=secret, session_token=token)


def _signs(said: Mapping[str, str]) -> bool:
    return said.get("s3.remote-signing-enabled", "").lower() == "true"


class _GuardedAdapter(HTTPAdapter):
    """Connects to no address that the rules forbid, waits for no answer for ever, and tries nothing twice."""

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        manager = self.poolmanager
        pools = guarded_pools(manager.pool_classes_by_scheme, self._rules)
        manager.pool_classes_by_scheme = {scheme: _for_one_request(pool) for scheme, pool in pools.items()}

    def send(self, request: PreparedRequest, *args: Any, **more: Any) -> Response:
        if more.get("timeout") is None:
            more["timeout"] = _TIMES_S
        return super().send(request, *args, **more)


def _for_one_request(pool: Any) -> Any:
    """A pool of urllib3 that uses no connection twice.

    Each request says `Connection: close`. A server need not say so in its answer, and may close a moment later; urllib3
    would send the next request into that connection, and the catalog would seem to be away.
    """

    class OneRequestPool(pool):  # type: ignore[misc]
        def _put_conn(self, conn: Any) -> None:
            if conn is not None:
                conn.close()
            super()._put_conn(None)

    return OneRequestPool
