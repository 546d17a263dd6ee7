"""Plots of one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from nicegui.elements.mixins.text_element import TextElement

from lading.console import formatting
from lading.console.job_timeline import JobTimeline
from lading.console.layout import Page
from lading.console.step_timings import STEPS
from lading.console.widgets.basic import box, text
from lading.console.widgets.live import Line, LivePlot
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.service.views.jobs import MOST_SERIES_BILLS
from lading.service.views.records import JobView, LagView, Series
from lading.status.lag import LagUnit
from lading.status.rates import Point

WINDOWS = {15: "15 min", 60: "1 h", 360: "6 h", 1440: "24 h"}
USUAL = 60
_STEP_COLORS = dict(zip(STEPS, ("7", "1", "6", "3", "4", "5", "8"), strict=True))


class JobPlots:
    """Four plots over the same time, and what happened in it."""

    def __init__(self, page: Page, name: str) -> None:
        asked = page.request.query_params.get("range", "")
        found = next((minutes for minutes, words in WINDOWS.items() if words.replace(" ", "") == asked), USUAL)
        self._page, self._name, self._minutes = page, name, found
        self._choices: dict[int, TextElement] = {}
        self._job: JobView | None = None
        with box("section", "ld-stack", aria_label="Plots"):
            with box("div", "ld-bar"):
                text("h2", "Over time")
                self._cut = text("span", "", "ld-muted ld-grow")
                with box("div", "ld-seg", role="group", aria_label="How far back"):
                    for minutes, label in WINDOWS.items():
                        choice = text("button", label, type="button")
                        choice.on("click", partial(self._choose, minutes))
                        self._choices[minutes] = choice
            self._press()
            with box("div", "ld-plots"):
                self._rows, self._rows_now = _plot("Rows per second", "rows/s")
                self._lag, self._lag_now = _plot("Lag", "")
                self._time, self._time_now = _plot("Batch time by step", "s")
                self._files, self._files_now = _plot("Data files", "files", whole=True)
            self._timeline = JobTimeline(page, name)

    async def refresh(self, job: JobView) -> None:
        """Draw what is known now."""
        self._job = job
        console, visitor = self._page.console, await self._page.visitor()
        record = await console.ask(console.sights.record, self._name, visitor.may_see)
        series = await console.ask(console.sights.series, self._name, minutes=self._minutes, may_see=visitor.may_see)
        self._cut.set_text(
            f"Only the newest {formatting.count(MOST_SERIES_BILLS)} commits are drawn." if series.is_cut else ""
        )
        self._draw(series, record, job.lag)
        await self._timeline.refresh(self._minutes)

    def _draw(self, series: Series, record: JobRecord, lag: LagView | None) -> None:
        span = WINDOWS[self._minutes]
        times = [formatting.millis(point.at) for point in series.points]
        points = series.points

        def of(values: list[float | None]) -> list[tuple[int, float | None]]:
            return list(zip(times, values, strict=True))

        def show(plot: LivePlot, lines: list[Line], label: str, unit: str = "") -> None:
            plot.show(lines, start=series.start, end=series.end, label=f"{label}, last {span}", unit=unit)

        most = max((point.rows_per_s for point in points), default=0)
        self._rows_now.set_text(f"most {formatting.rate(most)}")
        show(self._rows, rate_lines(points), f"Rows per second, at most {formatting.rate(most)}")

        self._draw_lag(series, lag, of, show)
        self._draw_steps(series, record, of, show)

        files = sum(point.data_files for point in points)
        bars = Line(name="files", color="--ld-plot-1", points=of([p.data_files or None for p in points]), kind="bar")
        self._files_now.set_text(f"{formatting.count(files)} in all")
        show(self._files, [bars], f"Data files written, {formatting.count(files)} in all")

    def _draw_lag(self, series: Series, lag: LagView | None, of, show) -> None:  # type: ignore[no-untyped-def]
        in_time = series.lag_unit is LagUnit.MILLISECONDS
        unit = "s" if in_time else series.lag_unit.value if series.lag_unit else ""
        values = [point.lag / 1000 if in_time and point.lag is not None else point.lag for point in series.points]
        is_known = lag is not None and lag.behind is not None
        now = f"now {formatting.lag(lag)}" if is_known else "not known now"
        self._lag_now.set_text(now)
        drawn = sum(value is not None for value in values)
        line = Line(name="lag", color="--ld-plot-5", points=of(values), is_filled=True, has_dots=drawn < 12)
        show(self._lag, [line], f"Lag, {now}", unit)

    def _draw_steps(self, series: Series, record: JobRecord, of, show) -> None:  # type: ignore[no-untyped-def]
        points = series.points
        steps = self._page.console.memory.steps(JobId(record.job_id), [point.at for point in points], series.step_s)
        lines = [
            Line(name=step, color=f"--ld-plot-{_STEP_COLORS[step]}", points=of(values), kind="bar", stack="steps")
            for step, values in steps.items()
        ]
        mean = _mean(points)
        whole = without_steps([point.batch_s for point in points], steps)
        if not lines:
            lines = [Line(name="plan to bill", color="--ld-plot-4", points=of(whole), has_dots=True)]
        elif any(value is not None for value in whole):
            lines.append(Line(name="plan to bill", color="--ld-idle", points=of(whole), kind="bar", stack="steps"))
        self._time_now.set_text(f"mean {formatting.took(mean)}" if mean is not None else "no batch")
        show(self._time, lines, f"Time of batches by step, mean {formatting.took(mean)}")

    async def _choose(self, minutes: int) -> None:
        self._minutes = minutes
        self._page.remember(range=WINDOWS[minutes].replace(" ", "") if minutes != USUAL else "")
        self._press()
        if (job := self._job) is not None:
            await self._page.attempt(lambda: self.refresh(job))

    def _press(self) -> None:
        for minutes, choice in self._choices.items():
            choice.props["aria-pressed"] = "true" if minutes == self._minutes else "false"


def rate_lines(points: Sequence[Point]) -> list[Line]:
    """Rates as the bills have them, and as the API tells them: a bar is what was committed within its time."""

    def line(name: str, color: str, rates: Sequence[float]) -> Line:
        drawn = [(formatting.millis(point.at), rate or None) for point, rate in zip(points, rates, strict=True)]
        return Line(name=name, color=color, points=drawn, kind="bar")

    rows = line("rows", "--ld-plot-1", [point.rows_per_s for point in points])
    bad = line("bad rows", "--ld-plot-2", [point.errors_per_s for point in points])
    return [rows, bad] if any(point.errors_per_s for point in points) else [rows]


def without_steps(whole: Sequence[float | None], steps: Mapping[str, Sequence[float | None]]) -> list[float | None]:
    """Times of batches where no step is known: a start of the service forgets the steps, the bills keep the whole."""
    known = steps.get(STEPS[0], [None] * len(whole))
    return [value if step is None else None for value, step in zip(whole, known, strict=True)]


def _plot(title: str, unit: str, *, whole: bool = False) -> tuple[LivePlot, TextElement]:
    with box("figure", "ld-panel ld-plot", style="margin:0"):
        with box("figcaption", "ld-plot-head"):
            text("h3", title, style="font-size:13px;line-height:18px;font-weight:600")
            now = text("span", "", "ld-plot-now")
        return LivePlot(unit, whole=whole), now


def _mean(points: tuple[Point, ...]) -> float | None:
    known = [(point.batch_s, point.batches) for point in points if point.batch_s is not None]
    batches = sum(count for _, count in known)
    return sum(seconds * count for seconds, count in known) / batches if batches else None
