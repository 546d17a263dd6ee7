"""Elements whose content changes in place: the browser redraws what differs and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import nicegui.elements.echart  # noqa: F401 - registers the module that plots import in the browser
from nicegui.element import Element

from lading.console.formatting import millis

Row = Mapping[str, Any]
"""Cells by column, and `key`. A cell is a text or a record; see lading_table.js."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    label: str
    is_number: bool = False
    is_sortable: bool = False


class LiveTable(Element, component="lading_table.js"):
    """A table with a caption. On a phone each row is a card; of a broad table on a tablet, too."""

    def __init__(
        self,
        caption: str,
        columns: Sequence[Column],
        *,
        empty: str = "Nothing here.",
        shows_caption: bool = False,
        is_broad: bool = False,
        on_sort: Callable[[str], object] | None = None,
        on_act: Callable[[Any], object] | None = None,
        on_pick: Callable[[str, bool], object] | None = None,
    ) -> None:
        super().__init__()
        self.props["caption"] = caption
        self.props["quiet"] = not shows_caption
        self.props["cards"] = True
        self.props["early"] = is_broad
        self.props["empty"] = empty
        self.props["columns"] = [
            {"name": column.name, "label": column.label, "number": column.is_number, "sortable": column.is_sortable}
            for column in columns
        ]
        self.props["rows"] = []
        if on_sort is not None:
            self.on("sort", lambda event: on_sort(str(event.args)))
        if on_act is not None:
            self.on("act", lambda event: on_act(event.args))
        if on_pick is not None:
            self.on("pick", lambda event: on_pick(str(event.args["key"]), bool(event.args["on"])))

    def show(self, rows: Sequence[Row]) -> None:
        listed = [dict(row) for row in rows]
        if self.props["rows"] != listed:
            self.props["rows"] = listed

    def show_sort(self, name: str, *, descending: bool) -> None:
        """Say by what it is sorted."""
        self.props["sort"] = name
        self.props["descending"] = descending


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series of a plot."""

    name: str
    color: str
    """A CSS variable."""
    points: Sequence[tuple[int, float | None]]
    kind: str = "line"
    stack: str = ""
    is_filled: bool = False
    has_dots: bool = False


class LivePlot(Element, component="lading_chart.js"):
    """A plot over time. What it shows is also said in words, for those who do not see it."""

    def __init__(self, unit: str, *, whole: bool = False) -> None:
        super().__init__()
        self.props["unit"] = unit
        self.props["whole"] = whole
        self.props["series"] = []
        self.props["label"] = ""
        self.props["start"] = self.props["end"] = 0

    def show(self, lines: Sequence[Line], *, start: datetime, end: datetime, label: str, unit: str = "") -> None:
        self.props["start"], self.props["end"], self.props["label"] = millis(start), millis(end), label
        if unit:
            self.props["unit"] = unit
        self.props["series"] = [
            {
                "name": line.name,
                "color": line.color,
                "kind": line.kind,
                "stack": line.stack,
                "area": line.is_filled,
                "dots": line.has_dots,
                "data": [list(point) for point in line.points],
            }
            for line in lines
        ]
