"""A table that was put back: what that took from a job, and how the job goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lading.console import actions, formatting
from lading.console.layout import Page
from lading.console.widgets.basic import Banner, box, button, field, text
from lading.console.widgets.dialogs import Dialog
from lading.errors import JobChangedError
from lading.service.operations import RollbackView

_CHANGED = "The job or its table was changed since this was shown"


class RollbackDialog:
    """Shows what was taken away; one button keeps the position, the other loads again."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]]) -> None:
        self._page, self._name, self._after = page, name, after
        self._seen = ""
        with Dialog(f"The table of {name} was rolled back") as self._dialog:
            self._said = Banner()
            self._gone = text("p", "")
            self._kept = text("p", "", "ld-muted")
            self._back = text("p", "", "ld-muted")
            self._reason = field("Why (kept in the audit)")
            with box("div", "ld-bar"):
                self._keep = button("Keep position", self._keep_position)
                self._again = button("Load again", self._load_again)
                button("Cancel", self._dialog.close)

    async def open(self) -> None:
        """Show it. Raises JobStateError when the table was not put back."""
        self._said.show("")
        self._reason.set_value("")
        await self._look()
        self._dialog.open()

    async def _look(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        view = await console.ask(actions.look_at_rollback, console, visitor, self._name)
        self._seen = view.seen
        self._gone.set_text(told(view))
        self._kept.set_text(
            f"Keep position: goes on from {view.position_kept or 'where it is'}; what is gone stays gone."
        )
        self._back.set_text(f"Load again: goes on from {view.position_of_table or 'an unknown position'}.")
        self._keep.set_enabled(view.can_keep)
        self._again.set_enabled(view.can_load_again)

    async def _keep_position(self) -> None:
        await self._do(keeps_position=True)

    async def _load_again(self) -> None:
        await self._do(keeps_position=False)

    async def _do(self, *, keeps_position: bool) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            reason = str(self._reason.value or "").strip()
            act = actions.accept_rollback
            try:
                await console.ask(
                    act, console, visitor, self._name, keeps_position=keeps_position, seen=self._seen, reason=reason
                )
            except JobChangedError:
                await self._look()
                self._said.show(_CHANGED, "Nothing was changed. This is how it is now.", "warn")
                self._page.announce(f"{_CHANGED}. Nothing was changed.")
                return
            self._dialog.close()
            self._page.tell(f"The rollback of {self._name} was accepted; it stays PAUSED until it is resumed")
            await self._after()

        await self._page.attempt(work)


def told(view: RollbackView) -> str:
    """What happened, in a sentence or two."""
    ends = f"commit {view.ends_with_seq}" if view.ends_with_seq is not None else "no commit of this job"
    gone = f" {formatting.count(view.rows_gone)} rows are gone." if view.rows_gone is not None else ""
    remark = f" {view.remark}." if view.remark else ""
    return f"The job had committed {view.committed_seq}; {view.table} now ends with {ends}.{gone}{remark}"
