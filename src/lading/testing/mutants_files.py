"""Mutants of files: what is remembered of them, and when they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lading.sources.files import aside, source, window
from lading.sources.files.settling import Settling
from lading.sources.files.window import FileStatus, Window
from lading.storage.store import ObjectInfo
from lading.testing import aside_world
from lading.testing.mutants import Patch, mutant


@mutant("forgotten-file-is-new", "a file that may have been loaded is never loaded by itself")
def _forgotten_file_is_new(patch: Patch) -> None:
    patch(window, "_forgetting", lambda kept, dropped: replace(kept, passed=(kept.passed or 0) + len(dropped)))


@mutant("late-file-passed-over", "a file is loaded in whatever order it comes")
def _late_file_passed_over(patch: Patch) -> None:
    whole = Window.status_of

    def orderly(self: Window, file: ObjectInfo, at: str) -> FileStatus:
        status = whole(self, file, at)
        return FileStatus.FORGOTTEN if status is FileStatus.LATE else status

    patch(Window, "status_of", orderly)


@mutant("file-read-while-written", "a file that may still be written is not read")
def _file_read_while_written(patch: Patch) -> None:
    patch(Settling, "remaining_s", lambda self, file: 0.0)


@mutant("loaded-files-not-committed", "which files were loaded changes in the same commit as their rows")
def _loaded_files_not_committed(patch: Patch) -> None:
    patch(source, "render_window", lambda window: {})


@mutant("move-called-harmless", "a replay takes nothing up that comes by reading")
def _move_called_harmless(patch: Patch) -> None:
    patch(aside_world, "repeats_nothing", lambda was, now: True)


@mutant("skipped-file-forgotten", "a file that is left out stays so when the position is moved")
def _skipped_file_forgotten(patch: Patch) -> None:
    patch(window, "_SKIPPED", "late.skipped")
    patch(window, "_ASIDE", {**window._ASIDE, "skipped": "late.skipped"})  # noqa: SLF001  # a mutant breaks the inside


@mutant("put-aside-is-loaded", "a file of which nothing was loaded counts as not loaded")
def _put_aside_is_loaded(patch: Patch) -> None:
    patch(source, "with_unread", lambda window, key: window)


@mutant("load-file-forgets-nothing", "a file that is loaded after all is loaded once")
def _load_file_forgets_nothing(patch: Patch) -> None:
    whole = Window.adding

    def stubborn(self: Window, *args: Any, **options: Any) -> Window:
        return replace(whole(self, *args, **options), asked=self.asked)

    patch(Window, "adding", stubborn)


@mutant("load-file-of-a-loaded-one", "only a file of which nothing was loaded is loaded after all")
def _load_file_of_a_loaded_one(patch: Patch) -> None:
    whole = window.read_window

    def blind(*args: Any) -> Window:
        found = whole(*args)
        return replace(found, unread=(*found.unread, *found.keys))

    patch(aside, "read_window", blind)
