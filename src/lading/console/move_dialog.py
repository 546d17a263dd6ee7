"""Moving a position: look first, then do it; and taking it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lading.console import actions, formatting
from lading.console.layout import Page
from lading.console.position_form import PositionForm
from lading.console.widgets.basic import Banner, box, button, field, text
from lading.console.widgets.dialogs import Dialog
from lading.console.widgets.live import Column, LiveTable
from lading.errors import JobChangedError
from lading.service.operations import EditPlan, PartitionMove
from lading.service.views.records import JobDetail

_PLAN = (
    Column(name="partition", label="Partition"),
    Column(name="way", label="Direction"),
    Column(name="end", label="Goes to"),
    Column(name="again", label="Loaded again", is_number=True),
    Column(name="skipped", label="Skipped", is_number=True),
)
_WAYS = {"BACK": "warn", "FORWARD": "warn", "GIVEN UP": "bad", "UNKNOWN": "warn", "NEW SOURCE": "bad"}
_FENCE = "One commit without rows moves it; a batch that was planned before it cannot land any more."
_CHANGED = "The job was changed since this was shown"


class MoveDialog:
    """A form for positions. The button that moves works only for what the dry run has shown, of the job as it was."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]], *, is_files: bool) -> None:
        self._page, self._name, self._after = page, name, after
        self._plan_shown: EditPlan | None = None
        self._wanted_shown: dict[str, str | None] = {}
        self._paused: bool | None = None
        with Dialog(f"Move the position of {name}") as self._dialog:
            text("p", f"{_meaning(is_files=is_files)} {_FENCE}", "ld-muted")
            self._state = Banner()
            self._first = box("div", "ld-bar")
            self._form = PositionForm(now="now after" if is_files else "now at", on_change=self._forget)
            self._reason = field("Why (kept in the audit)")
            self._said = Banner()
            self._plan = LiveTable("What the move would do", _PLAN, empty="", shows_caption=True)
            with box("div", "ld-bar"):
                self._dry = button("Show what would happen", self._dry_run)
                self._go = button("Move", self._do, is_main=True)
                button("Cancel", self._dialog.close)

    async def open(self) -> None:
        """Show where the job is."""
        console, visitor = self._page.console, await self._page.visitor()
        detail = await console.ask(console.sights.one_job, self._name, visitor.may_see)
        self._form.fill(detail.positions)
        self._reason.set_value("")
        self._said.show("")
        self._forget()
        if detail.positions_fault:
            self._said.show("The positions are not known", detail.positions_fault, "bad")
        elif not detail.positions:
            self._said.show("The job was not opened yet", "It has no position before its first run.", "warn")
        self._show_state(detail.job.state)
        self._dialog.open()

    def follow(self, detail: JobDetail) -> None:
        """The job as it is now. What was shown of it as it was cannot be done any more."""
        if not self._dialog.is_open:
            return
        is_elsewhere = self._form.follow(detail.positions)
        self._show_state(detail.job.state)
        if self._plan_shown is not None and (is_elsewhere or not self._paused):
            self._forget()
            self._said.show(_CHANGED, "Look again at what would happen.", "warn")
            self._page.announce(_CHANGED)

    def _show_state(self, state: str) -> None:
        is_paused = state == "PAUSED"
        self._state.show(
            "" if is_paused else f"The job is {state}", "A position can be moved while the job is PAUSED.", "warn"
        )
        if is_paused != self._paused:
            self._paused = is_paused
            self._first.clear()  # Hidden, it would keep the focus from coming back into the dialog.
            self._first.set_visibility(not is_paused)
            if not is_paused:
                with self._first:
                    button("Pause the job", self._pause_first)
        self._dry.set_enabled(is_paused and not self._form.is_empty)
        if not is_paused:
            self._go.disable()

    async def _pause_first(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(actions.control, console, visitor, self._name, "PAUSE")
            await self._after()

        await self._page.attempt(work)

    def _forget(self) -> None:
        """What was shown is not what the form says now."""
        self._plan_shown = None
        self._go.disable()
        self._plan.set_visibility(False)

    async def _dry_run(self) -> None:
        self._said.show("")
        await self._page.attempt(self._look)

    async def _look(self) -> None:
        wanted = self._form.wanted
        self._forget()
        if not wanted:
            left = "Leave partitions empty that should stay where they are."
            self._said.show("No new position is given", left, "warn")
            self._page.announce("No new position is given")
            return
        console, visitor = self._page.console, await self._page.visitor()
        plan = await console.ask(actions.plan_move, console, visitor, self._name, wanted)
        self._plan_shown, self._wanted_shown = plan, wanted
        self._plan.show([plan_row(move) for move in plan.moves])
        self._plan.set_visibility(True)
        self._go.set_enabled(any(move.direction != "SAME" for move in plan.moves))
        self._page.announce(spoken(plan))

    async def _do(self) -> None:
        wanted, shown = self._form.wanted, self._plan_shown
        if shown is None or wanted != self._wanted_shown:
            self._forget()
            return

        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            reason = str(self._reason.value or "").strip()
            try:
                plan = await console.ask(
                    actions.move, console, visitor, self._name, wanted, seen=shown.seen, reason=reason
                )
            except JobChangedError:
                await self._look()
                self._said.show(_CHANGED, "Nothing was moved. This is what the move would do now.", "warn")
                self._page.announce(f"{_CHANGED}. Nothing was moved.")
                return
            self._dialog.close()
            self._page.tell(f"{self._name} was moved in epoch {plan.epoch}; it stays PAUSED until it is resumed")
            await self._after()

        self._go.disable()
        if not await self._page.attempt(work):
            self._forget()


class UndoDialog:
    """Taking back the last change, shown before it is done."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]]) -> None:
        self._page, self._name, self._after = page, name, after
        self._seen = ""
        with Dialog(f"Undo the last change of {name}") as self._dialog:
            self._said = Banner()
            self._plan = LiveTable("Positions as they were", _PLAN, empty="No position moves.", shows_caption=True)
            self._changed = text("pre", "", "ld-code")
            with box("div", "ld-bar"):
                self._go = button("Undo", self._do, is_main=True)
                button("Cancel", self._dialog.close)

    async def open(self) -> None:
        """Show what would be taken back. Raises JobStateError when there is nothing."""
        self._said.show("")
        await self._look()
        self._dialog.open()

    async def _look(self) -> None:
        console, visitor = self._page.console, await self._page.visitor()
        plan = await console.ask(actions.plan_undo, console, visitor, self._name)
        self._seen = plan.seen
        self._plan.show([plan_row(move) for move in plan.moves])
        parts = [
            f"{what}\n  {old or '(not set)'} → {new or '(not set)'}"
            for what, (old, new) in (plan.changed or {}).items()
        ]
        self._changed.set_text("\n".join(parts))
        self._changed.set_visibility(bool(parts))
        self._go.enable()

    async def _do(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            try:
                await console.ask(actions.undo, console, visitor, self._name, seen=self._seen)
            except JobChangedError:
                await self._look()
                self._said.show(_CHANGED, "Nothing was taken back. This would be taken back now.", "warn")
                self._page.announce(f"{_CHANGED}. Nothing was taken back.")
                return
            self._dialog.close()
            self._page.tell(f"The last change of {self._name} was taken back")
            await self._after()

        self._go.disable()
        await self._page.attempt(work)


class StopDialog:
    """The end of a job, asked for by its name."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]], statement: str) -> None:
        self._page, self._name, self._after = page, name, after
        with Dialog(f"Stop {name} for good?") as self._dialog:
            text("p", f"This is {statement}: the job ends and cannot be resumed. A batch on its way is cut off.")
            text(
                "p",
                "Rows that it loaded stay in the table, and so do its bills. A new job of this name begins where its "
                "own statement says, not where this one ended.",
                "ld-muted",
            )
            self._typed = field(f"Type {name} to go on", is_mono=True)
            self._typed.on_value_change(self._look)
            self._typed.on("keydown.enter", self._do)
            with box("div", "ld-bar"):
                button("Keep the job", self._dialog.close)
                self._go = button("Stop for good", self._do, is_final=True)

    def open(self) -> None:
        self._typed.set_value("")
        self._look()
        self._dialog.open()

    def _look(self) -> None:
        self._go.set_enabled(self._is_typed)

    @property
    def _is_typed(self) -> bool:
        return str(self._typed.value or "").strip() == self._name

    async def _do(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(actions.control, console, visitor, self._name, "STOP")
            self._dialog.close()
            self._page.tell(f"{self._name} was stopped for good")
            await self._after()

        if not self._is_typed or not self._go.enabled:  # A key that is held down, or another name.
            return
        self._go.disable()
        if not await self._page.attempt(work):
            self._go.enable()


def _meaning(*, is_files: bool) -> str:
    if is_files:
        return (
            "The position is the last file that counts as loaded: what comes after it by name is loaded next. "
            "A name without a folder is one in the folder of the job."
        )
    return "A position is the record that is read next."


def plan_row(move: PartitionMove) -> dict[str, object]:
    """One partition of a plan."""
    return {
        "key": move.partition,
        "partition": {"text": move.partition, "mono": True, "note": move.remark},
        "way": {"text": move.direction, "badge": True, "tone": _WAYS.get(move.direction, "idle")},
        "end": {"text": "nothing more is read" if move.end is None else formatting.place(move.end), "mono": True},
        "again": _amount(move.again, move.again_bytes, move.unit),
        "skipped": _amount(move.skipped, move.skipped_bytes, move.unit),
    }


def spoken(plan: EditPlan) -> str:
    """A plan in a sentence."""
    return ". ".join(
        f"{move.partition} goes {move.direction}: {_amount(move.again, None, move.unit)['text']} loaded again, "
        f"{_amount(move.skipped, None, move.unit)['text']} skipped"
        for move in plan.moves
    )


def _amount(number: int | None, size: int | None, unit: str) -> dict[str, str]:
    if number is None:
        return {"text": "not known"}
    shown = f"{number:,} {formatting.plural(number, unit)}".strip()
    return {"text": shown, "note": formatting.size(size) if size and number else "", "tone": "warn" if number else ""}
