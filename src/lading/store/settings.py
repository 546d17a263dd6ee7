"""Small values by key, for example who made the store."""

from __future__ import annotations

from sqlalchemy import delete, select

from lading.store.database import Database
from lading.store.schema import SETTINGS


class SqlSettings:
    """See `protocols.Settings`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_setting(self, key: str) -> str | None:
        """A value, or None."""
        with self._database.read(f"Reading the setting {key}") as connection:
            return connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.key == key)).scalar_one_or_none()

    def list_settings(self) -> dict[str, str]:
        with self._database.read("Listing the settings") as connection:
            return {row.key: row.value for row in connection.execute(select(SETTINGS)).all()}

    def write_setting(self, key: str, value: str) -> None:
        with self._database.write(f"Writing the setting {key}") as connection:
            self._database.put(connection, SETTINGS, {"key": key, "value": value})

    def drop_setting(self, key: str) -> None:
        """Forget a value, if there is one."""
        with self._database.write(f"Forgetting the setting {key}") as connection:
            connection.execute(delete(SETTINGS).where(SETTINGS.c.key == key))
