"""Step 3: exactly one report for every planned split, and the error budget holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lading.errors import BudgetError, StageError
from lading.model.batch import BatchPlan, Report, Split
from lading.model.bill import Head
from lading.model.field_types import joined_type
from lading.model.job import ErrorBudget
from lading.model.positions import PartitionState, Positions
from lading.model.tally import RowCounts

_NOTHING = "Nothing was committed; the position is unchanged."


def check_reports(plan: BatchPlan, reports: Sequence[Report]) -> tuple[Report, ...]:
    """Put reports in the order of their splits. A missing report is never read as an empty one."""
    counts = Counter(report.split for report in reports)
    planned = {split.number: split for split in plan.splits}
    doubled = sorted(number for number, count in counts.items() if count > 1)
    missing = sorted(planned.keys() - counts.keys())
    strange = sorted(counts.keys() - planned.keys())
    for word, numbers in (("missing", missing), ("doubled", doubled), ("of no planned split", strange)):
        if numbers:
            msg = f"Reports are {word}: {numbers} of {len(planned)} splits"
            raise StageError(msg, left=_NOTHING, todo="The batch is planned again.", splits=numbers)
    for report in reports:
        _check_one(plan, report)
    return tuple(sorted(reports, key=lambda report: report.split))


def check_fields(reports: Sequence[Report]) -> None:
    """Refuse a batch with fields that the table has no column for: its rows would be loaded without them."""
    found: dict[str, str] = {}
    for report in reports:
        for name, kind in report.fields.items():
            found[name] = joined_type(found.get(name), kind) if kind else ""
    if found:
        msg = f"Rows have fields that the table has no column for: {', '.join(sorted(found)[:20])}"
        todo = "The table gets those columns, and the batch is staged again."
        raise StageError(msg, code="UnseenColumns", left=_NOTHING, todo=todo, fields=found)


def _check_one(plan: BatchPlan, report: Report) -> None:
    split = next(split for split in plan.splits if split.number == report.split)
    held = sum(file.rows for file in report.files) + sum(file.of_rows or file.rows for file in report.spool)
    flaws = {
        "is for another range": (report.partition, report.start) != (split.partition, split.start),
        "does not reach the planned end": not (split.end is None or split.may_end_early or report.end == split.end),
        "ends outside of the planned range": split.may_end_early and not _is_within(split, report.end),
        "has rows that do not add up": not report.rows.adds_up,
        "has files that do not hold its rows": held != report.rows.loaded,
    }
    for flaw, found in flaws.items():
        if found:
            msg = f"The report of split {report.split} ({split.partition} from {split.start!r}) {flaw}"
            raise StageError(msg, left=_NOTHING, todo="The batch is planned again.", splits=[report.split])


def _is_within(split: Split, end: str) -> bool:
    """Whether an early end lies in the range. Only positions that are numbers can be compared here."""
    if not (end.isdigit() and (split.end or "").isdigit()):
        return True
    start = int(split.start) if split.start.isdigit() else 0
    return start <= int(end) <= int(split.end or 0)


_STRICT = (
    'Fix the bad rows or let a tenth of a batch go to quarantine with ALTER: "session.enable_insert_strict" = "false", '
    '"session.enable_strict_cast" = "true", "session.insert_max_filter_ratio" = "0.1". Then RESUME. '
    "SHOW LOAD ERRORS has all of them."
)


_RATIO = "Fix the bad rows or raise the ratio, then RESUME. SHOW LOAD ERRORS has all of them."


def note_refused(error: Exception, head: Head | None, reports: Sequence[Report], merged: Sequence[str] = ()) -> None:
    """Have the error of a refused batch say where its bad rows are, and which bill it would have followed."""
    if isinstance(error, BudgetError):
        places = [*(place for report in reports for place in report.quarantine), *merged]
        error.facts |= {"head": head.bill_name if head is not None else "", "quarantine": places}


def check_budget(budget: ErrorBudget, rows: RowCounts, first_error: str) -> None:
    """Refuse a batch that has more bad rows than the job allows."""
    first = f"; the first: {first_error}" if first_error else ""
    if budget.strict and rows.error:
        msg = f"Insert has filtered data in strict mode: {rows.error} of {rows.total} rows are bad{first}"
        raise BudgetError(msg, left=_NOTHING, todo=_STRICT)
    if rows.error > budget.max_ratio * rows.total:
        allowed = f"allowed is {budget.max_ratio:g}"
        msg = f"too many filtered rows: {rows.error} of {rows.total} rows are bad, {allowed}{first}"
        raise BudgetError(msg, left=_NOTHING, todo=_RATIO)


def check_budget_of(budget: ErrorBudget, plan: BatchPlan, rows: RowCounts, first_error: str) -> None:
    """The same without what the batch passes over: that is bad by the user's own choice."""
    passed = plan.rows_passed_over
    counted = replace(rows, total=rows.total - passed, error=rows.error - passed)
    check_budget(ErrorBudget() if plan.passes_over and not passed else budget, counted, first_error)


def advance(plan: BatchPlan, reports: Sequence[Report]) -> Positions:
    """Positions after the batch: each partition stands where its last report ended."""
    partitions = dict(plan.positions.partitions)
    for report in reports:
        before = partitions[report.partition]
        if report.start != before.at:
            msg = (
                f"The report of split {report.split} starts at {report.start!r}, but {report.partition} "
                f"is at {before.at!r}"
            )
            raise StageError(msg, left=_NOTHING, todo="The batch is planned again.", splits=[report.split])
        partitions[report.partition] = _moved(before, report)
    return replace(plan.positions, partitions=partitions)


def _moved(state: PartitionState, report: Report) -> PartitionState:
    return replace(
        state,
        at=report.end,
        finished=report.finished,
        marks={**state.marks, **report.marks},
    )
