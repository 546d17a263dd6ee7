"""Opening what a home keeps, and noticing that some of it was lost.

A store that is gone looks like one that was never made. To start as new beside the tables of the old one would have
jobs load everything again, and a new key beside what the old one sealed would make that look damaged. So a start
stops when

- the store is missing, empty, or was never begun, and the warehouse has tables;
- the key is missing, and the store has what was sealed with it.

`lading recover` opens such a home. The mark `begun` in the store says that a start has looked and found nothing lost:
it is written by the first start of a home that has no tables yet, and by a recovery in which nothing failed. A store
without it that has tables, jobs or an audit was made by an earlier version.
"""

from __future__ import annotations

import base64
import secrets
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from lading.clock import Clock
from lading.deferred import deferred
from lading.errors import ConfigError, SecretError
from lading.service.catalog.file_catalogs import FileCatalogs
from lading.service.home import Home
from lading.service.security.key_file import KEY_BYTES, KEY_FILE, KEY_VARIABLE
from lading.service.security.private_home import make_private
from lading.service.security.vault import Vault, open_vault
from lading.settings import load_settings
from lading.store.protocols import MetadataStore
from lading.store.store import Store, open_store
from lading.tables.bills import FOLDER

if TYPE_CHECKING:
    from lading.tables.registry import all_kinds
else:
    all_kinds = deferred("lading.tables.registry", "all_kinds")

BEGUN = "begun"
_SEALED = "sealed"
_LEFT = "Nothing was started, and nothing was changed."


class Opening(Enum):
    """What a home is opened for."""

    WORK = "work"
    RECOVERY = "recovery"
    """What was lost may be made again."""
    INSPECTION = "inspection"
    """What was lost is looked at; not even a key is made."""


def open_kept(home: Home, store_url: str, clock: Clock, opening: Opening, of_file: FileCatalogs) -> tuple[Store, Vault]:
    """The store of a home, and the vault for what is sealed in it.

    Raises ConfigError when the store was lost or has a catalog of the settings file, and SecretError when the key was.
    """
    url = store_url or home.store_url
    if url == home.store_url:
        file = Path(url)
        if opening is Opening.WORK and not (file.exists() and file.stat().st_size):
            _check_no_tables(home, f"The metadata store {file} is {'empty' if file.exists() else 'missing'}")
        make_private(file)
    store = open_store(url, clock)
    try:
        of_file.check_names([entry.name for entry in store.list_catalogs()])
        if opening is Opening.WORK:
            if not _is_begun(store):
                _check_no_tables(home, f"The metadata store {store.place} has never been used")
            _check_key(home.path, store)
            mark_begun(store, clock)
        vault = _new_vault(home.path) if opening is Opening.INSPECTION else open_vault(home.path)
    except BaseException:
        store.close()
        raise
    return store, vault


def mark_begun(store: MetadataStore, clock: Clock) -> None:
    """Nothing of this home is lost."""
    if store.read_setting(BEGUN) is None:
        store.write_setting(BEGUN, clock.now().isoformat())


def find_tables(warehouse: Path) -> list[Path]:
    """Folders of a warehouse that hold a table, in the order of their names.

    Other engines may have removed all that Lading put beside a table; its own folders are always there.
    """
    marks = (FOLDER, *(kind.folder for kind in all_kinds()))
    return [folder for folder in sorted(warehouse.glob("*/*")) if any((folder / name).is_dir() for name in marks)]


def is_key_missing(home: Path) -> bool:
    """Whether a home has no key, neither in its file nor in the environment."""
    return not load_settings(home=home).service.secret_key and not (home / KEY_FILE).exists()


def has_sealed(store: MetadataStore) -> bool:
    """Whether a store has what only the key of its home opens."""
    users = any(user.native_verifier.startswith(_SEALED) for user in store.list_users())
    return users or any(value.startswith(_SEALED) for value in store.list_settings().values())


def _check_no_tables(home: Home, what: str) -> None:
    tables = find_tables(home.warehouse)
    if not tables:
        return
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    msg = f"{what}, and {home.warehouse} has tables: {tables[0].relative_to(home.warehouse)}{more}"
    todo = (
        "Give --store (LADING_STORE) if the metadata is kept elsewhere, put the store back from a backup, or rebuild "
        f"it from the tables with lading recover --home {home.path}."
    )
    raise ConfigError(msg, left=_LEFT, todo=todo)


def _check_key(home: Path, store: MetadataStore) -> None:
    if not is_key_missing(home) or not has_sealed(store):
        return
    msg = f"The key file {home / KEY_FILE} is missing, and the metadata store has secrets that were sealed with it"
    todo = (
        f"Put the file back or set {KEY_VARIABLE}. If the key is lost, lading recover --home {home} makes a new one; "
        "passwords and keys of jobs must then be given again."
    )
    raise SecretError(msg, left=_LEFT, todo=todo)


def _is_begun(store: MetadataStore) -> bool:
    return (
        store.read_setting(BEGUN) is not None
        or bool(store.list_tables())
        or bool(store.list_jobs(include_final=True))
        or bool(store.list_audit(limit=1))
    )


def _new_vault(home: Path) -> Vault:
    """The vault of a home; when its key is missing, one that is forgotten again."""
    if not is_key_missing(home):
        return open_vault(home)
    key = base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return open_vault(home, key)
