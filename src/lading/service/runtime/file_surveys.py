"""Telling what a survey of files found to everybody who watches."""

from __future__ import annotations

from collections.abc import Sequence

from lading.clock import Clock
from lading.errors import LadingError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import JobObserver
from lading.sources.kind import SourceSurvey

TELL_EVERY_S = 10.0


class SurveyTeller:
    """Tells watches of surveys: when a job is idle, and now and then while it is not."""

    def __init__(self, clock: Clock, watches: Sequence[JobObserver]) -> None:
        self._clock = clock
        self._watches = watches
        self._due_s = 0.0

    def tell(self, record: JobRecord, survey: SourceSurvey) -> None:
        """What was seen just now."""
        for watch in self._watches:
            watch.files_behind(record, survey.pending)
            watch.files_left_out(record, survey.left_out, survey.remark)

    def tell_now_and_then(self, compiled: Compiled, record: JobRecord, bill: Bill) -> None:
        """Not after every commit: a survey lists everything there is."""
        now_s = self._clock.monotonic_s()
        if compiled.source.survey is None or not self._watches or now_s < self._due_s:
            return
        self._due_s = now_s + TELL_EVERY_S
        try:
            survey = compiled.source.survey(bill.positions)
        except LadingError:
            return  # The next batch says what is wrong.
        self.tell(record, survey)
