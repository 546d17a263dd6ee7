"""The row of a file that ends every worker: looked for by reading parts of the file, none of which is committed.

A position of a file is its name, so a batch cannot be cut below one file. Once a file has ended as many workers as make
a record poison, its rows are halved until one is left, and that one must end as many again, alone. What is staged
meanwhile is thrown away. Nothing of a search is durable: a process that dies in it leaves orphans, and the next one
searches again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lading.errors import LINES_IN_FIELDS, WORKER_LOST, StageError
from lading.jobs import pace
from lading.model.batch import BatchPlan, RecordPlace, Report, StagedFile

if TYPE_CHECKING:
    from lading.commit.protocols import Stager
    from lading.sources.kind import Inside


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTools:
    """What a search asks and tells."""

    inside: Inside
    deaths: Callable[[], int]
    """How many workers have died of what the batch reads alone, without this one."""
    discard: Callable[[Sequence[StagedFile]], None]
    tell: Callable[[str], None]
    """What is going on, for SHOW."""
    wait: Callable[[float], bool]
    """Wait, unless the job is to stop. Whether it is."""


class SearchingStager:
    """Stages as another does. When that ends workers again and again, its error says which row it is."""

    def __init__(self, stager: Stager, tools: SearchTools) -> None:
        self._stager = stager
        self._tools = tools

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        try:
            return self._stager.stage(plan)
        except StageError as error:
            found = self._found(plan, error)
            if found is None:
                raise
            raise StageError(error.what, left=error.left, todo=error.todo, code=WORKER_LOST, found=found) from error

    def _found(self, plan: BatchPlan, error: StageError) -> RecordPlace | None:
        if error.code == LINES_IN_FIELDS and plan.least is not None and plan.least.inside:
            # Its rows cannot be passed over one by one: the file that ended workers is meant as a whole.
            return replace(plan.least, inside=())
        extent = self._extent(plan) if error.code == WORKER_LOST else None
        if extent is None:
            return None
        try:
            return self._search(plan, *extent)
        except StageError as cut:
            if cut.code != LINES_IN_FIELDS:
                raise
            return None

    def _extent(self, plan: BatchPlan) -> tuple[int, int] | None:
        """Where to search. None: it is too early, or there is no inside."""
        if plan.least is None or not plan.least.is_record or (plan.passes_over and not plan.least.inside):
            return None
        is_due = plan.passes_over or self._tools.deaths() + 1 >= pace.POISON_DEATHS
        return self._tools.inside.extent(plan) if is_due else None

    def _search(self, plan: BatchPlan, begin: int, end: int) -> RecordPlace | None:
        """The place of the row, with those that are passed over already. None: no single row does it."""
        place = plan.least
        while end - begin > 1:
            self._tools.tell(f"Looking for the row of {place} that ends workers, between bytes {begin} and {end}")
            middle = (begin + end) // 2
            begin, end = (begin, middle) if self._dies(plan, begin, middle) else (middle, end)
        for death in range(pace.POISON_DEATHS):
            if death and self._tools.wait(pace.SUSPECT_WAIT_S):
                return None
            self._tools.tell(f"The row at byte {begin} of {place} is read alone, after {death} workers that it ended")
            if not self._dies(plan, begin, end):
                return None
        return replace(place, inside=(*place.inside, begin)) if place is not None else None

    def _dies(self, plan: BatchPlan, begin: int, end: int) -> bool:
        if self._tools.wait(0):
            msg = "The search for a row that ends workers was stopped"
            raise StageError(msg, left="Nothing was committed.", todo="It begins again when the job runs.")
        try:
            reports = self._stager.stage(self._tools.inside.narrowed(plan, begin, end))
        except StageError as error:
            if error.code != WORKER_LOST:
                raise
            return True
        # Nobody commits a part of a file, so these files can never become part of the table.
        self._tools.discard([file for report in reports for file in report.files])
        return False
