"""Root, as tests log in: nobody is root without a password."""

from __future__ import annotations

from pathlib import Path

from lading.service.security.privileges import ROOT_NAME
from lading.service.security.root_password import FILE_NAME
from lading.service.security.users import ROOT, Access
from lading.testing.marked import secret

ROOT_PASSWORD = secret("of root")
ROOT_LOGIN = (ROOT_NAME, ROOT_PASSWORD)


def with_root(access: Access) -> Access:
    """Give root the password that tests know, unless it has one."""
    if not access.has_password(ROOT_NAME):
        access.set_password(ROOT_NAME, ROOT_PASSWORD, by=ROOT)
    return access


def read_root_login(home: Path) -> tuple[str, str]:
    """Root and the password that a service made for it, as its owner finds it in the home."""
    return ROOT_NAME, (home / FILE_NAME).read_text().strip()
