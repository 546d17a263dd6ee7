"""Questions that stand before a page."""

from __future__ import annotations

from types import TracebackType

from nicegui import ui

from lading.console.widgets.basic import text


class Dialog:
    """A dialog with its heading, which is also its name for screen readers. What is made inside `with` stands in it.

    Everything in it that can be focused must be visible: the browser brings the focus back to the first of them.
    """

    def __init__(self, title: str) -> None:
        with ui.dialog() as self._dialog:
            self._card = ui.card().classes("ld-dialog")
        with self._card:
            self._title = text("h2", "")
        self.rename(title)

    def __enter__(self) -> Dialog:
        self._card.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._card.__exit__(kind, error, trace)

    @property
    def is_open(self) -> bool:
        return bool(self._dialog.value)

    def rename(self, title: str) -> None:
        self._title.set_text(title)
        self._dialog.props["aria-label"] = title

    def open(self) -> None:
        self._dialog.open()

    def close(self) -> None:
        """Take it away. The focus goes back to where it came from."""
        self._dialog.close()
