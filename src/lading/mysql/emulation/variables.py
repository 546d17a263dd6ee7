"""System variables: what clients ask for and set when they begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lading
from lading.mysql.protocol.errors import Fault
from lading.mysql.protocol.packets import BINARY, UTF8MB4

VERSION = f"8.0.33-lading-{lading.__version__}"
"""What clients decide by. They ask an 8.0 for what Lading answers."""

DEFAULTS: Mapping[str, Any] = {
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "autocommit": 1,
    "basedir": "",
    "big_tables": 0,
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_database": "utf8mb4",
    "character_set_filesystem": "binary",
    "character_set_results": "utf8mb4",
    "character_set_server": "utf8mb4",
    "character_set_system": "utf8mb3",
    "collation_connection": "utf8mb4_general_ci",
    "collation_database": "utf8mb4_general_ci",
    "collation_server": "utf8mb4_general_ci",
    "default_storage_engine": "lading",
    "event_scheduler": "OFF",
    "foreign_key_checks": 0,
    "have_query_cache": "NO",
    "have_ssl": "DISABLED",
    "hostname": "lading",
    "init_connect": "",
    "innodb_version": "",
    "interactive_timeout": 28800,
    "language": "",
    "license": "Apache-2.0",
    "lower_case_file_system": "OFF",
    "lower_case_table_names": 0,
    "max_allowed_packet": 16 * 1024 * 1024,
    "max_connections": 600,
    "max_execution_time": 0,
    "net_buffer_length": 16384,
    "net_read_timeout": 30,
    "net_write_timeout": 600,
    "performance_schema": 0,
    "port": 0,
    "profiling": 0,
    "protocol_version": 10,
    "query_cache_size": 0,
    "query_cache_type": "OFF",
    "query_timeout": 0,
    "read_only": 0,
    "require_secure_transport": "OFF",
    "session_track_schema": 0,
    "sql_auto_is_null": 0,
    "sql_mode": "STRICT_TRANS_TABLES",
    "sql_notes": 1,
    "sql_quote_show_create": 1,
    "sql_safe_updates": 0,
    "sql_select_limit": 18446744073709551615,
    "sql_warnings": 0,
    "ssl_cipher": "",
    "super_read_only": 0,
    "system_time_zone": "UTC",
    "time_zone": "+00:00",
    "transaction_isolation": "SERIALIZABLE",
    "transaction_read_only": 0,
    "tx_isolation": "SERIALIZABLE",
    "tx_read_only": 0,
    "unique_checks": 0,
    "version": VERSION,
    "version_comment": f"Lading {lading.__version__}",
    "version_compile_machine": "any",
    "version_compile_os": "Linux",
    "wait_timeout": 28800,
}
_FIXED = {
    "license",
    "lower_case_table_names",
    "max_allowed_packet",
    "max_connections",
    "port",
    "require_secure_transport",
    "version",
    "version_comment",
}
_TIMES = {"query_timeout": 1, "max_execution_time": 1000}
"""Variables that bound queries, and how many of their units a second has."""
_CODECS = {
    "utf8mb4": ("utf-8", UTF8MB4),
    "utf8mb3": ("utf-8", 33),
    "utf8": ("utf-8", 33),
    "latin1": ("cp1252", 8),
    "ascii": ("ascii", 11),
    "binary": ("utf-8", BINARY),
}
CHARSETS = tuple(_CODECS)
MOST_VARIABLES = 1000
MOST_LETTERS = 256 * 1024
"""What one connection may keep in variables."""


class Variables:
    """The variables of one connection: those of the server, and people's own (`@name`)."""

    def __init__(self, server: Mapping[str, Any]) -> None:
        self._server = {**DEFAULTS, **server}
        self._set: dict[str, Any] = {}
        self.own: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """One variable. Raises when it is not known."""
        key = name.lower()
        if key in self._set:
            return self._set[key]
        if key not in self._server:
            raise Fault(1193, "HY000", f"Unknown system variable '{name}'")
        return self._server[key]

    def set(self, name: str, value: Any) -> None:
        """Set one. Names that are not known are kept too: clients set much that means nothing here."""
        key = name.lower()
        if key in _FIXED:
            raise Fault(1238, "HY000", f"Variable '{name}' is a read only variable")
        if key in ("character_set_client", "character_set_results") and value is not None:
            charset_of(str(value))
        if key in _TIMES and (not isinstance(value, int) or value < 0):
            raise Fault(1232, "42000", f"Incorrect argument type to variable '{name}'")
        self._check_room(self._set, key, value)
        self._set[key] = value

    @property
    def query_timeout_s(self) -> float | None:
        """How long a query may take, as Doris (`query_timeout`) or MySQL (`max_execution_time`) have it."""
        asked = [self.get(name) / parts for name, parts in _TIMES.items() if name in self._set and self.get(name)]
        return min(asked, default=None)

    def set_own(self, name: str, value: Any) -> None:
        """Set one of people's own."""
        self._check_room(self.own, name.lower(), value)
        self.own[name.lower()] = value

    def _check_room(self, kept: Mapping[str, Any], name: str, value: Any) -> None:
        letters = sum(len(each) for each in self.own.values() if isinstance(each, str))
        letters += sum(len(each) for each in self._set.values() if isinstance(each, str))
        letters += len(value) - len(str(kept.get(name, ""))) if isinstance(value, str) else 0
        if letters > MOST_LETTERS or (name not in kept and len(kept) >= MOST_VARIABLES):
            told = f"Memory capacity of {MOST_LETTERS} characters in {MOST_VARIABLES} variables exceeded"
            raise Fault(3170, "HY000", f"{told}. The variable was not set. Use fewer of them.")

    def set_names(self, charset: str) -> None:
        charset_of(charset)
        for name in ("character_set_client", "character_set_connection", "character_set_results"):
            self._set[name] = charset

    def reset(self) -> None:
        """As they were at the beginning."""
        self._set.clear()
        self.own.clear()

    def listed(self) -> list[tuple[str, str]]:
        """All of them, as SHOW VARIABLES has them."""
        now = {**self._server, **self._set}
        return [(name, "" if value is None else str(value)) for name, value in sorted(now.items())]

    @property
    def reading(self) -> str:
        """The codec of what the client sends."""
        return charset_of(str(self.get("character_set_client")))[0]

    @property
    def writing(self) -> tuple[str, int]:
        """The codec of what the client is sent, and its number."""
        chosen = self.get("character_set_results")
        codec, number = charset_of("utf8mb4" if chosen is None else str(chosen))
        return codec, UTF8MB4 if number == BINARY else number


def charset_of(name: str) -> tuple[str, int]:
    """The codec and the number of a character set. Raises when it is not known."""
    if name.lower() not in _CODECS:
        raise Fault(1115, "42000", f"Unknown character set: '{name}'. Lading knows {', '.join(_CODECS)}.")
    return _CODECS[name.lower()]


def charset_named(number: int) -> str:
    """The character set that a client names by a number; all but a few old ones are UTF-8."""
    return {8: "latin1", 5: "latin1", 15: "latin1", 31: "latin1", 47: "latin1", 48: "latin1", 49: "latin1"}.get(
        number, "ascii" if number in (11, 65) else "utf8mb4"
    )
