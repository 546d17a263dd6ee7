"""What a person sees on a terminal: the letters that a program wrote, after its moves of the cursor."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

_SEQUENCE = re.compile(r"\x1b(?:\[([?0-9;]*)([A-Za-z])|\][^\x07]*\x07|[^\[\]])")
_PARTIAL = re.compile(r"\x1b(?:\[[?0-9;]*|\][^\x07]*)?\Z")


class Screen:
    """As wide as it is told, and as long as it takes. Knows what rich and readline send."""

    def __init__(self, width: int) -> None:
        self.lines = [""]
        self._width, self._row, self._column = width, 0, 0
        self._rest = ""

    def write(self, text: str) -> None:
        text, self._rest = self._rest + text, ""
        if cut := _PARTIAL.search(text):
            text, self._rest = text[: cut.start()], cut.group()
        at = 0
        for found in _SEQUENCE.finditer(text):
            self._letters(text[at : found.start()])
            self._move(found[1] or "", found[2] or "")
            at = found.end()
        self._letters(text[at:])

    def _letters(self, text: str) -> None:
        for letter in text:
            if letter == "\r":
                self._column = 0
            elif letter == "\n":
                self._down()
            elif letter.isprintable():
                if self._column == self._width:
                    self._column = 0
                    self._down()
                line = self.lines[self._row].ljust(self._column)
                self.lines[self._row] = line[: self._column] + letter + line[self._column + 1 :]
                self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")

    def _move(self, given: str, kind: str) -> None:
        number = int(given) if given.isdigit() else 1
        if kind == "A":
            self._row = max(0, self._row - number)
        elif kind == "B":
            self._row = min(len(self.lines) - 1, self._row + number)
        elif kind == "K":
            line = self.lines[self._row]
            self.lines[self._row] = "" if given == "2" else line[: self._column]
        else:
            assert kind in ("m", "h", "l", ""), f"a move that this screen does not know: {given}{kind}"

    def with_words(self, words: str) -> list[str]:
        """The lines in which the words stand now."""
        return [line.strip() for line in self.lines if words in line]


class Terminal:
    """A program on a terminal, and what it shows."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes], screen: Screen) -> None:
        self.screen, self.process, self._descriptor = screen, process, descriptor
        self.on_change: Callable[[Screen], None] = lambda screen: None

    def until(self, is_shown: Callable[[Screen], bool], within_s: float = 60) -> None:
        """Read until it is shown."""
        while not is_shown(self.screen):
            assert self._read(within_s), self.screen.lines

    def end(self, within_s: float = 60) -> int:
        """Read until the program has ended; its exit status."""
        while self._read(within_s):
            pass
        return self.process.wait(within_s)

    def _read(self, within_s: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], within_s)
        assert ready, f"nothing came any more after {self.screen.lines}"
        try:
            got = os.read(self._descriptor, 4096)
        except OSError:  # What a terminal says when nobody writes to it any more.
            got = b""
        self.screen.write(got.decode(errors="replace"))
        self.on_change(self.screen)
        return bool(got)


@contextmanager
def on_terminal(
    command: Sequence[str], *, width: int = 100, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """A program with a terminal for itself."""
    ours, theirs = pty.openpty()
    known = {**os.environ, **(env or {}), "TERM": "xterm", "COLUMNS": str(width), "LINES": "40"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=known) as process:
        os.close(theirs)
        try:
            yield Terminal(ours, process, Screen(width))
        finally:
            process.kill()
            os.close(ours)
