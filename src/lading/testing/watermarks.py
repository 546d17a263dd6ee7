"""The watermark of a bill, worked out once more by the verifier."""

from __future__ import annotations

from lading.model.bill import Bill, BillKind
from lading.model.job import WatermarkRule
from lading.testing.source import ScriptedSource
from lading.testing.verdict import PROGRESS_MISMATCH, Findings


def check_watermark(
    rule: WatermarkRule | None, source: ScriptedSource, findings: Findings, before: Bill, bill: Bill
) -> None:
    """Worked out again from the rows of the bill and what the bill before said."""
    was, now = before.positions.watermark_us, bill.positions.watermark_us
    if bill.kind is BillKind.EDIT:
        return  # The operator may have lowered it; the epoch says so.
    if bill.kind is not BillKind.LOAD or rule is None:
        findings.expect(was == now, PROGRESS_MISMATCH, f"seq {bill.seq} moves the watermark from {was} to {now}")
        return
    known, finished = before.positions.partitions, {n for n, s in bill.positions.partitions.items() if s.finished}
    ranges = {part.partition: part for part in bill.ranges}
    marks: list[int | None] = []
    for name, state in bill.positions.partitions.items():
        old, part = known.get(name), ranges.get(name)
        is_child = any(p in bill.positions.partitions and p not in finished for p in state.parents)
        rows = source.rows(name, part.start, part.end) if part else []
        times = [row.event for row in rows if row.fate_at(was) == "loaded"]
        times += [old.event_us] if old is not None and old.event_us is not None else []
        is_heard = part and (part.start == part.end or any(r.fate_at(was) in ("loaded", "late") for r in rows))
        read_at = bill.planned_at if is_heard or old is None or old.read_at is None else old.read_at
        if part is None and state.read_at is not None and source.has_rows_at(name, state.at):
            # It was left out of a batch of one record, and waits for its turn. Whether it had rows when it was planned
            # is not known here, only that it had some in the end: the bill's own word counts for such a partition.
            read_at = max(read_at, state.read_at)
        is_idle = rule.idle_s is not None and (bill.planned_at - read_at).total_seconds() >= rule.idle_s
        if name not in finished and not is_child and not is_idle:
            marks.append(max(times, default=None))
    reached = None if not marks or None in marks else min(mark for mark in marks if mark is not None) - rule.delay_us
    expected = max((mark for mark in (was, reached) if mark is not None), default=None)
    findings.expect(now == expected, PROGRESS_MISMATCH, f"seq {bill.seq} has watermark {now}, not {expected}")
