"""A machine that is busy makes pages slowly; that is no error of the server."""

from __future__ import annotations

from nicegui.page import page

from lading.console import mount
from lading.console.layout import STORE_S


def test_a_page_may_take_longer_than_the_three_seconds_of_nicegui() -> None:
    assert mount.FOLDER.is_dir()
    assert page("/slow").response_timeout == STORE_S > 30
