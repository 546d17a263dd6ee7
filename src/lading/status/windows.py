"""How many windows a job has open, from what its newest bill says. Nothing here reads a state file."""

from __future__ import annotations

from lading.model.bill import Bill
from lading.model.load import WindowSpec


def count_open_windows(window: WindowSpec, bill: Bill) -> int | None:
    """At most so many are open: from the next that is due to the last that a row may be in. None: it is not known.

    Windows that no row fell into count as well, and those of rows too far ahead of the clock do not. For sessions it is
    the number of their parts, of which several may be one session.
    """
    state = bill.state
    if state is None or state.next_us is None:
        return 0
    if window.is_session:
        return state.rows
    times = [known.event_us for known in bill.positions.partitions.values() if known.event_us is not None]
    if not times:
        return None
    last_end = max(times) // window.slide_us * window.slide_us + window.size_us
    return max(1, (last_end - state.next_us) // window.slide_us + 1)
