"""What is wrong with a job, as a task: a sentence, the value that is to blame, and what can be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lading.console import actions, formatting
from lading.console.layout import Page
from lading.console.widgets.basic import Countdown, box, button, field, text
from lading.console.widgets.dialogs import Dialog
from lading.service.views.records import Health, JobView, ProblemView

ROLLED_BACK = "ACCEPT ROLLBACK"
After = Callable[[], Awaitable[None]]
_ALLOW = (
    "Good rows are loaded from now on, and bad ones go to quarantine, where they can be read and loaded again. "
    "The job is altered and resumed:"
)
_SKIP = (
    "The job never reads this file, whatever is in it, and goes on with the others. "
    "LOAD FILE takes that back, and so does Undo last change:"
)


class ProblemPanel:
    """Stands above the figures while something is wrong."""

    def __init__(
        self,
        page: Page,
        name: str,
        *,
        after: After,
        on_resume: After,
        on_show: Callable[[], None],
        on_edit: Callable[[], None],
        has_files: bool,
    ) -> None:
        self._page, self._name, self._after, self._has_files = page, name, after, has_files
        self._file, self._allowed = "", dict[str, str]()
        self._allow_dialog = ActDialog(page, f"Allow bad rows in {name}?", _ALLOW, "Allow and resume", self._do_allow)
        self._skip_dialog = ActDialog(page, f"Skip a file in {name}?", _SKIP, "Skip and resume", self._do_skip)
        with box("section", "ld-banner ld-problem", aria_label="What is wrong", data_tone="bad") as self._box:
            self._sentence = text("strong", "")
            with box("p") as self._first:
                self._value = text("code", "", "ld-value")
                self._place = text("span", "", "ld-muted")
            self._next = Countdown()
            with box("div", "ld-bar"):
                self._show = button("Show bad rows", on_show)
                self._allow = button("Allow bad rows", self._open_allow)
                self._skip = button("Skip the file", self._open_skip)
                self._edit = button("Edit", on_edit)
                self._retry = button("Retry now", on_resume, is_main=True)
            with box("details", "ld-more"):
                text("summary", "All that is known")
                self._detail = text("div", "")
        self._box.set_visibility(False)

    def show(self, job: JobView) -> None:
        """Show what is wrong, or nothing."""
        problem = job.problem
        self._box.set_visibility(problem is not None)
        if problem is None:
            return
        is_paused = job.state == "PAUSED"
        self._sentence.set_text(problem.sentence)
        self._value.set_text(problem.value)
        self._value.set_visibility(bool(problem.value))
        self._place.set_text(place_of(problem))
        self._first.set_visibility(bool(problem.value or problem.file))
        self._next.show(*next_words(job))
        self._show.set_visibility(problem.has_bad_rows)
        self._allow.set_visibility(is_paused and bool(problem.allow))
        if not self._allow_dialog.is_open and not self._skip_dialog.is_open:
            self._file, self._allowed = problem.file, dict(problem.allow)
        self._skip.set_visibility(is_paused and bool(problem.file) and self._has_files)
        self._edit.set_visibility(job.ended_at is None)
        self._retry.set_visibility(is_paused and ROLLED_BACK not in problem.detail)
        self._detail.set_text(f"{job.reason.code}: {problem.detail}" if job.reason else problem.detail)

    def _open_allow(self) -> None:
        self._allow_dialog.open("\n".join(f'"{name}" = "{value}"' for name, value in self._allowed.items()))

    def _open_skip(self) -> None:
        self._skip_dialog.open(self._file)

    async def _do_allow(self, why: str) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        await console.ask(actions.allow_bad_rows, console, visitor, self._name, self._allowed, why=why)
        self._page.tell(f"{self._name} goes on; bad rows go to quarantine")
        await self._after()

    async def _do_skip(self, why: str) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        await console.ask(actions.skip_file, console, visitor, self._name, self._file, why=why)
        self._page.tell(f"{self._name} goes on without {self._file}")
        await self._after()


class ActDialog:
    """What lets a job go on, with a reason for the audit: what is done is shown before it is done."""

    def __init__(self, page: Page, title: str, about: str, verb: str, act: Callable[[str], Awaitable[None]]) -> None:
        """`act` gets the reason."""
        self._page, self._act = page, act
        with Dialog(title) as self._dialog:
            text("p", about)
            self._change = text("pre", "", "ld-code")
            self._reason = field("Why (kept in the audit)")
            self._reason.on("keydown.enter", self._do)
            with box("div", "ld-bar"):
                self._go = button(verb, self._do, is_main=True)
                button("Cancel", self._dialog.close)

    @property
    def is_open(self) -> bool:
        return self._dialog.is_open

    def open(self, change: str) -> None:
        """Ask. `change` is what is done."""
        self._change.set_text(change)
        self._reason.set_value("")
        self._go.enable()
        self._dialog.open()

    async def _do(self) -> None:
        async def work() -> None:
            await self._act(str(self._reason.value or "").strip())
            self._dialog.close()

        if not self._go.enabled:  # A key that is held down.
            return
        self._go.disable()
        if not await self._page.attempt(work):
            self._go.enable()


def place_of(problem: ProblemView) -> str:
    """Where the first bad row is."""
    if not problem.file:
        return ""
    return (
        f"in {problem.file}, row {formatting.count(problem.row)}" if problem.row is not None else f"in {problem.file}"
    )


def next_words(job: JobView) -> tuple[str, int | None]:
    """What happens without a person, and when: words, and the moment for the browser to count down to."""
    health = job.health
    if health.state is Health.NEEDS_REVIEW:
        return ("It does not go on by itself." if job.ended_at is None else "The job has ended."), None
    if health.next_try_at is not None:
        return f"{health.note}. It is tried again", formatting.millis(health.next_try_at)
    return f"{health.note}. It is tried again by itself.", None
