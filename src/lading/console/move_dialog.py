"""Moving a position: look first, then do it; and taking it back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from lading.console import acts, words
from lading.console.frame import Page
from lading.console.parts.basic import Banner, box, button, field, text
from lading.console.parts.live import Column, LiveTable
from lading.service.moves import EditPlan, PartitionMove
from lading.service.sight_records import JobDetail

MOST_PARTITIONS = 200
_PLAN = (
    Column(name="partition", label="Partition"),
    Column(name="way", label="Direction"),
    Column(name="end", label="Goes to"),
    Column(name="again", label="Loaded again", is_number=True),
    Column(name="skipped", label="Skipped", is_number=True),
)
_WAYS = {"BACK": "warn", "FORWARD": "warn", "GIVEN UP": "bad", "UNKNOWN": "warn", "NEW SOURCE": "bad"}


class MoveDialog:
    """A form for positions. The button that moves works only for what the dry run has shown."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]]) -> None:
        self._page, self._name, self._after = page, name, after
        self._fields: dict[str, ui.input] = {}
        self._shown: dict[str, str | None] = {}
        self._detail: JobDetail | None = None
        with ui.dialog() as self._dialog, ui.card().classes("ld-dialog"):
            text("h2", f"Move the position of {name}")
            text(
                "p",
                "Positions are next to read. One commit without rows moves them; a batch that was planned before it "
                "cannot land any more.",
                "ld-muted",
            )
            self._state = Banner()
            self._pause = button("Pause the job", self._pause_first)
            self._form = box("div", "ld-moves")
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
        detail = self._detail = await console.ask(console.sights.one_job, self._name, visitor.may_see)
        self._form.clear()
        self._fields = {}
        self._said.show("")
        with self._form:
            for found in [part for part in detail.positions if not part.finished][:MOST_PARTITIONS]:
                with box("div", "ld-move"):
                    with box("div", "ld-move-at"):
                        text("div", found.partition, "ld-mono")
                        text("div", f"now at {words.place(found.at)}", "ld-note")
                    given = field(f"New position of {found.partition}", is_mono=True)
                    given.props["label"] = "New position"
                    given.props["aria-label"] = f"New position of {found.partition}"
                    given.on_value_change(self._forget)
                    self._fields[found.partition] = given
        if detail.positions_fault:
            self._said.show("The positions are not known", detail.positions_fault, "bad")
        elif not detail.positions:
            self._said.show("The job was not opened yet", "It has no position before its first run.", "warn")
        self._forget()
        self._show_state(detail.job.state)
        self._dialog.open()

    def _show_state(self, state: str) -> None:
        is_paused = state == "PAUSED"
        self._state.show(
            "" if is_paused else f"The job is {state}", "A position can be moved while the job is PAUSED.", "warn"
        )
        self._pause.set_visibility(not is_paused)
        self._dry.set_enabled(is_paused and bool(self._fields))

    async def _pause_first(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(acts.control, console, visitor, self._name, "PAUSE")
            await self.open()
            await self._after()

        await self._page.attempt(work)

    def _wanted(self) -> dict[str, str | None]:
        return {
            name: str(given.value).strip() for name, given in self._fields.items() if str(given.value or "").strip()
        }

    def _forget(self) -> None:
        """What was shown is not what the form says now."""
        self._shown = {}
        self._go.disable()
        self._plan.set_visibility(False)

    async def _dry_run(self) -> None:
        wanted = self._wanted()
        if not wanted:
            self._said.show(
                "No new position is given", "Leave partitions empty that should stay where they are.", "warn"
            )
            return

        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            plan = await console.ask(acts.plan_move, console, visitor, self._name, wanted)
            self._shown = wanted
            self._said.show("")
            self._plan.show([plan_row(move) for move in plan.moves])
            self._plan.set_visibility(True)
            self._go.set_enabled(any(move.direction != "SAME" for move in plan.moves))
            self._page.announce(spoken(plan))

        self._forget()
        await self._page.attempt(work)

    async def _do(self) -> None:
        wanted = self._wanted()
        if not wanted or wanted != self._shown:
            self._forget()
            return

        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            reason = str(self._reason.value or "").strip()
            plan = await console.ask(acts.move, console, visitor, self._name, wanted, reason=reason)
            self._dialog.close()
            self._page.tell(f"{self._name} was moved in epoch {plan.epoch}; it stays PAUSED until it is resumed")
            await self._after()

        self._go.disable()
        await self._page.attempt(work)


class UndoDialog:
    """Taking back the last change, shown before it is done."""

    def __init__(self, page: Page, name: str, after: Callable[[], Awaitable[None]]) -> None:
        self._page, self._name, self._after = page, name, after
        with ui.dialog() as self._dialog, ui.card().classes("ld-dialog"):
            text("h2", f"Undo the last change of {name}")
            self._plan = LiveTable("Positions go back", _PLAN, empty="No position moves.", shows_caption=True)
            self._changed = text("pre", "", "ld-code")
            with box("div", "ld-bar"):
                button("Undo", self._do, is_main=True)
                button("Cancel", self._dialog.close)

    async def open(self) -> None:
        """Show what would be taken back. Raises JobStateError when there is nothing."""
        console, visitor = self._page.console, await self._page.visitor()
        plan = await console.ask(acts.plan_undo, console, visitor, self._name)
        self._plan.show([plan_row(move) for move in plan.moves])
        parts = [
            f"{what}\n  {old or '(not set)'} → {new or '(not set)'}"
            for what, (old, new) in (plan.changed or {}).items()
        ]
        self._changed.set_text("\n".join(parts))
        self._changed.set_visibility(bool(parts))
        self._dialog.open()

    async def _do(self) -> None:
        async def work() -> None:
            console, visitor = self._page.console, await self._page.visitor()
            await console.ask(acts.undo, console, visitor, self._name)
            self._dialog.close()
            self._page.tell(f"The last change of {self._name} was taken back")
            await self._after()

        await self._page.attempt(work)


def plan_row(move: PartitionMove) -> dict[str, object]:
    """One partition of a plan."""
    return {
        "key": move.partition,
        "partition": {"text": move.partition, "mono": True, "note": move.remark},
        "way": {"text": move.direction, "badge": True, "tone": _WAYS.get(move.direction, "idle")},
        "end": {"text": "nothing more is read" if move.end is None else words.place(move.end), "mono": True},
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
    shown = f"{number:,} {words.plural(number, unit)}".strip()
    return {"text": shown, "note": words.size(size) if size and number else "", "tone": "warn" if number else ""}
