"""Mutants of files: what is remembered of them, and when they are read."""

from __future__ import annotations

from dataclasses import replace

from lading.sources.files import source, window
from lading.sources.files.settling import Settling
from lading.sources.files.window import FileStatus, Window
from lading.storage.store import ObjectInfo
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
