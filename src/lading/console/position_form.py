"""Fields for new positions, one for each partition that is still read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from nicegui.elements.mixins.text_element import TextElement
from nicegui.events import ValueChangeEventArguments

from lading.console import formatting
from lading.console.widgets.basic import box, field, text
from lading.service.views.records import PartitionView

MOST_PARTITIONS = 200
"""So many fields stand on a page at once; the others are found with the filter."""
FEW = 12
"""No filter is needed for so many."""


class PositionForm:
    """What was typed stays, also where the filter hides it."""

    def __init__(self, *, now: str, on_change: Callable[[], None]) -> None:
        self._now, self._on_change = now, on_change
        self._parts: dict[str, PartitionView] = {}
        self._typed: dict[str, str] = {}
        self._notes: dict[str, TextElement] = {}
        with box("div", "ld-stack"):
            self._head = box("div", "ld-stack")
            self._list = box("div", "ld-moves")
            self._rest = text("p", "", "ld-muted")
        self._wanted = ""

    @property
    def is_empty(self) -> bool:
        """No partition has a position yet."""
        return not self._parts

    @property
    def wanted(self) -> dict[str, str | None]:
        """New positions that somebody typed."""
        return {name: at.strip() for name, at in self._typed.items() if at.strip()}

    def fill(self, positions: Sequence[PartitionView]) -> None:
        """Start again, with where the job is."""
        self._typed, self._wanted = {}, ""
        self._take(positions)
        self._head.clear()
        if len(self._parts) > FEW:
            with self._head:
                field("Filter partitions").props("clearable debounce=200").on_value_change(self._filter)
        self._draw()

    def follow(self, positions: Sequence[PartitionView]) -> bool:
        """Show where the job is now. Says whether that is elsewhere than before."""
        before = self._parts
        self._take(positions)
        if self._parts == before:
            return False
        if self._parts.keys() != before.keys():
            self._draw()
        for name, note in self._notes.items():
            note.set_text(self._where(name))
        return True

    def _take(self, positions: Sequence[PartitionView]) -> None:
        self._parts = {found.partition: found for found in positions if not found.finished}
        self._typed = {name: at for name, at in self._typed.items() if name in self._parts}

    def _filter(self, event: ValueChangeEventArguments[str | None]) -> None:
        self._wanted = str(event.value or "").strip().lower()
        self._draw()

    def _draw(self) -> None:
        found = [name for name in self._parts if self._wanted in name.lower() or self._typed.get(name)]
        shown = found[:MOST_PARTITIONS]
        self._list.clear()
        self._notes = {}
        with self._list:
            for name in shown:
                self._field(name)
        is_cut = len(shown) < len(self._parts)
        self._rest.set_visibility(is_cut)
        self._rest.set_text(
            f"{formatting.count(len(shown))} of {formatting.count(len(self._parts))} are shown." if is_cut else ""
        )

    def _field(self, name: str) -> None:
        with box("div", "ld-move"):
            with box("div", "ld-move-at"):
                text("div", name, "ld-mono")
                self._notes[name] = text("div", self._where(name), "ld-note")
            given = field("New position", value=self._typed.get(name, ""), is_mono=True)
            given.props["aria-label"] = f"New position of {name}"
            given.on_value_change(partial(self._type, name))

    def _where(self, name: str) -> str:
        return f"{self._now} {formatting.place(self._parts[name].at)}" if name in self._parts else ""

    def _type(self, name: str, event: ValueChangeEventArguments[str | None]) -> None:
        self._typed[name] = str(event.value or "")
        self._on_change()
