"""The watermark of a bill, worked out once more by the verifier."""

from __future__ import annotations

from datetime import datetime

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
        if any(p in bill.positions.partitions and p not in finished for p in state.parents):
            continue  # Its parents hold the watermark.
        old, part = known.get(name), ranges.get(name)
        rows = source.rows(name, part.start, part.end) if part else []
        times = [row.event for row in rows if row.fate_at(was) == "loaded"]
        times += [old.event_us] if old is not None and old.event_us is not None else []
        read_at = _read_at(source, before, bill, name)
        told = f"seq {bill.seq} says that {name} was heard of at {state.read_at}, not {read_at}"
        findings.expect(state.read_at == read_at, PROGRESS_MISMATCH, told)
        is_idle = rule.idle_s is not None and (bill.planned_at - read_at).total_seconds() >= rule.idle_s
        if name not in finished and not is_idle:
            marks.append(max(times, default=None))
    reached = None if not marks or None in marks else min(mark for mark in marks if mark is not None) - rule.delay_us
    expected = max((mark for mark in (was, reached) if mark is not None), default=None)
    findings.expect(now == expected, PROGRESS_MISMATCH, f"seq {bill.seq} has watermark {now}, not {expected}")


def _read_at(source: ScriptedSource, before: Bill, bill: Bill, name: str) -> datetime:
    """When a partition last said how late it is there, or could have: one that was left out of a batch was not idle."""
    known, was = before.positions.partitions, before.positions.watermark_us
    old, state = known.get(name), bill.positions.partitions[name]
    part = next((part for part in bill.ranges if part.partition == name), None)
    if old is None or old.read_at is None:
        return bill.planned_at
    if part is not None:
        rows = source.rows(name, part.start, part.end)
        is_heard = part.start == part.end or any(row.fate_at(was) in ("loaded", "late") for row in rows)
        return bill.planned_at if is_heard else old.read_at
    extent = source.extent_of(bill.planned_at)
    was_ready = not state.finished and not any(p in known and not known[p].finished for p in state.parents)
    return extent.at if was_ready and extent.has_more(name, state.at) else old.read_at
