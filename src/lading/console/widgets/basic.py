"""Text, buttons, figures and boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from lading.console.formatting import NOTHING, Tone


def box(tag: str = "div", classes: str = "", **attributes: str) -> Element:
    """An element to put others in. Underscores of attributes become dashes."""
    made = ui.element(tag).classes(classes)
    _attribute(made, attributes)
    return made


def text(tag: str, content: str, classes: str = "", **attributes: str) -> TextElement:
    """An element that holds text and nothing else."""
    made = TextElement(tag=tag, text=content).classes(classes)
    _attribute(made, attributes)
    return made


def link(content: str, href: str, classes: str = "", **attributes: str) -> TextElement:
    """A link within the console."""
    return text("a", content, classes, href=href, **attributes)


def button(
    content: str, on_click: Callable[[], Any] | None, *, is_main: bool = False, is_final: bool = False
) -> ui.button:
    """A button with its label. The main one of a page has the accent colour; what cannot be taken back is red."""
    made = ui.button(content, on_click=on_click, color=None)
    look = "ld-main-act" if is_main else "ld-final-act" if is_final else ""
    return made.props("unelevated no-caps").classes(f"ld-button {look}")


def field(
    label: str, *, value: str = "", is_mono: bool = False, is_password: bool = False, example: str = ""
) -> ui.input:
    """A field for one line."""
    made = ui.input(label, value=value, password=is_password, placeholder=example or None).props("outlined dense")
    return made.classes(f"ld-field {'ld-mono' if is_mono else ''}")


def _attribute(element: Element, attributes: Mapping[str, str]) -> None:
    for name, value in attributes.items():
        element.props[name.rstrip("_").replace("_", "-")] = value


class Badge:
    """A state: its word, on a tint."""

    def __init__(self) -> None:
        self._text = text("span", "", "ld-badge")

    def show(self, word: str, tone: Tone) -> None:
        self._text.set_text(word)
        self._text.props["data-tone"] = tone


class Tiles:
    """A row of figures."""

    def __init__(self, names: Mapping[str, str], *, has_notes: bool = True) -> None:
        self._values: dict[str, tuple[TextElement, TextElement]] = {}
        with box("dl", "ld-panel ld-tiles") as self._box:
            for key, name in names.items():
                with box("div", "ld-tile"):
                    text("dt", name)
                    shown, note = text("dd", NOTHING), text("dd", "", "ld-tile-note")
                    note.set_visibility(has_notes)
                    self._values[key] = (shown, note)

    def set_visibility(self, is_visible: bool) -> None:
        """Show or hide all of them."""
        self._box.set_visibility(is_visible)

    def leave_out(self, key: str, is_left_out: bool = True) -> None:
        """Take a figure away that this page has nothing to say about."""
        self._values[key][0].parent_slot.parent.set_visibility(not is_left_out)  # type: ignore[union-attr] # In its tile.

    def show(self, key: str, value: str, note: str = "", tone: Tone | None = None) -> None:
        shown, beside = self._values[key]
        shown.set_text(value)
        beside.set_text(note)
        if shown.props.get("data-tone", "") != (tone or ""):
            shown.props["data-tone"] = tone or ""


class Countdown:
    """Words, and the seconds until a moment, which the browser counts."""

    def __init__(self) -> None:
        with box("p") as self._box:
            self._words = text("span", "")
            self._until = text("span", "", "ld-until")

    def show(self, words: str, at: int | None = None) -> None:
        """Show words before the seconds until `at`, in milliseconds; None: the words alone."""
        self._words.set_text(f"{words} " if at is not None else words)
        if self._until.props.get("data-at") != (str(at) if at is not None else ""):
            self._until.props["data-at"] = str(at) if at is not None else ""
        self._box.set_visibility(bool(words))


class Choices:
    """A row of figures that are buttons: one of them is chosen, or none."""

    def __init__(self, names: Mapping[str, str], label: str, on_choose: Callable[[str], Any]) -> None:
        self._values: dict[str, tuple[TextElement, Element]] = {}
        with box("div", "ld-panel ld-tiles", role="group", aria_label=label):
            for key, name in names.items():
                with box("button", "ld-tile ld-tile-act", type="button", aria_pressed="false") as pressed:
                    text("span", name, "ld-tile-name")
                    self._values[key] = (text("span", NOTHING, "ld-tile-value"), pressed)
                pressed.on("click", partial(on_choose, key))

    def show(self, key: str, value: str, *, tone: Tone | None = None, is_chosen: bool = False) -> None:
        shown, pressed = self._values[key]
        shown.set_text(value)
        if shown.props.get("data-tone", "") != (tone or ""):
            shown.props["data-tone"] = tone or ""
        pressed.props["aria-pressed"] = "true" if is_chosen else "false"


class Banner:
    """A message that stays on the page until it is no longer true, and is read out when it is shown."""

    def __init__(self) -> None:
        self._box = box("div", "ld-banner")
        with self._box:
            self._title = text("strong", "")
            self._lines = text("div", "")
        self._box.set_visibility(False)

    def show(self, title: str, lines: str = "", tone: Tone = "idle") -> None:
        """Show it, or hide it when there is no title."""
        self._title.set_text(title)
        self._lines.set_text(lines)
        self._lines.set_visibility(bool(lines))
        if self._box.props.get("data-tone") != tone:
            self._box.props["data-tone"] = tone
        self._box.set_visibility(bool(title))


def facts(pairs: Mapping[str, str]) -> Element:
    """Names and what they are."""
    with box("dl", "ld-facts") as made:
        for name, value in pairs.items():
            text("dt", name)
            text("dd", value or NOTHING)
    return made
