"""An editor for statements: the colours of SQL, what can be written next, and a name for screen readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from lading.console import queries
from lading.console.completion import Completion, complete
from lading.console.layout import Page
from lading.console.statement_check import MOST_LETTERS
from lading.errors import LadingError

EDITOR_HELP = "Ctrl+Space shows what can be written next. Tab indents; to leave the editor press Escape, then Tab."
_SET_UP = """
(async () => {
  const box = getElement(EDITOR);
  const editor = await box.editorPromise;
  editor.contentDOM.setAttribute("aria-label", "Statement");
  const found = await box.findLanguage("MySQL").load();
  editor.dispatch({ effects: box.languageConfig.reconfigure([found.language]) });
  const tell = () => emitEvent("lading_dark", lading.isDark());
  window.addEventListener("lading-theme", tell);
  tell();
  lading.completeIn(editor, await import("nicegui-codemirror"));
  if (!KEEPS) return;
  window.addEventListener("pagehide", () => lading.keepUnsent(editor.state.doc.toString()));
  const draft = lading.draft();
  if (draft && !editor.state.doc.length) emitEvent("lading_draft", draft);
})();
"""
"""Colours of MySQL without its list of words, most of which mean nothing here: the service says what can be written.
A text that was being written when the page went away comes back."""


class SqlEditor:
    """One on a page. `keeps_draft`: the browser keeps the text, and gives it back with `lading_draft`."""

    def __init__(
        self,
        page: Page,
        value: str = "",
        *,
        database: Callable[[], str] = lambda: "default",
        on_change: Callable[[], Any] | None = None,
        on_run: Callable[[], Any] | None = None,
        keeps_draft: bool = False,
    ) -> None:
        self._page, self._database, self._keeps_draft = page, database, keeps_draft
        self._editor = ui.codemirror(
            value, theme="githubLight", line_wrapping=True, keymap={"Mod-Enter": on_run} if on_run else None
        )
        self._editor.classes("ld-editor").props["aria-label"] = "Statement"
        if on_change is not None:
            self._editor.on_value_change(on_change)
        ui.timer(0.1, self._label, once=True)
        ui.on("lading_dark", self._dark)
        ui.on("lading_complete", self._complete)

    @property
    def value(self) -> str:
        return str(self._editor.value or "")

    def set_value(self, text: str) -> None:
        self._editor.set_value(text)

    def mark(self, start: int, end: int) -> None:
        """Underline what is wrong; nothing when it is empty."""
        marks = [{"kind": "mark", "from": start, "to": end, "class": "ld-wrong"}] if end > start else []
        self._editor.decorations = marks

    def _label(self) -> None:
        script = _SET_UP.replace("EDITOR", str(self._editor.id))
        ui.run_javascript(script.replace("KEEPS", "true" if self._keeps_draft else "false"))

    async def _complete(self, event: GenericEventArguments) -> None:
        """Answer what can be written at the cursor. Nobody waits long: a later question makes this one idle."""
        console, asked = self._page.console, event.args
        before, after = str(asked["before"])[-MOST_LETTERS:], str(asked["after"])[:MOST_LETTERS]

        def look() -> Completion:
            visitor = console.visitor(self._page.request)
            if visitor is None:
                return Completion(start=len(before))
            is_asked = bool(asked["asked"])
            known = queries.known_names(console, visitor, self._database(), asks_others=is_asked)
            return complete(before + after, len(before), known, is_asked=is_asked)

        try:
            found = await console.ask(look)
        except LadingError:
            found = Completion(start=len(before))
        options = [{"label": each.label, "type": each.kind, "detail": each.detail} for each in found.options]
        said = json.dumps({"id": asked["id"], "typed": before[found.start :], "options": options})
        ui.run_javascript(f"lading.completed({said})")

    def _dark(self, event: GenericEventArguments) -> None:
        self._editor.set_theme("githubDark" if event.args else "githubLight")
