"""An installation in memory whose job loads files: the real coordinator, planner and files source, and a bad day.

What must hold is checked from the folder and the table alone: each row of a file is there at most once, a file is
there as a whole or not at all, and a file that is not there was forgotten for a reason, or was deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from lading.commit.protocols import Stager
from lading.model.batch import Limits
from lading.plan.planner import Source
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.sources.files.window import read_window, seconds_of
from lading.testing.folder import PLACE, Folder, FolderStager, SimulatedFile
from lading.testing.source import Row
from lading.testing.verdict import CORRUPT, DUP, LOSS, PROGRESS_MISMATCH, STUCK, Findings
from lading.testing.world import JOB_ID, MAX_QUIET_STEPS, Setting, World

SETTLE_S = 60.0
"""Longer than any writer of the folder pauses."""
MAX_ACTORS = 3


@dataclass(slots=True)
class FilesWorld(World):
    """The installation."""

    folder: Folder = field(init=False)
    window: int = field(init=False)
    """How many files the job remembers."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.folder = Folder(self.rng, self.clock)
        self.window = self.rng.choice((3, 8, 1000))
        self.store.created_at = self.make_source().open(self.setting.start)

    def make_source(self) -> Source:
        place = Place(scheme="file", bucket="", pattern=f"{PLACE}*")
        spec = FilesSpec(place=place, format=Format.CSV, late_window=self.window, settle_s=SETTLE_S)
        return FilesSource(spec, store=self.folder, clock=self.clock)

    def make_stager(self) -> Stager:
        return FolderStager(self.folder, self.table.write_file, self.rng, faults=self.setting.faults / 3)

    def make_limits(self) -> Limits:
        return Limits(files=self.rng.randint(1, 5))

    def pass_time(self) -> None:
        """Writers go on, and a while passes."""
        self.folder.write_on()
        self.clock.sleep(self.rng.choice((1.0, 5.0, 20.0)))

    def finish(self) -> Findings:
        """Quiet time: all files become whole, and one incarnation loads what is left. Then look."""
        self.setting.faults = self.table.faults = 0.0
        self.table.drop_or_deliver_pending()
        self.actors.clear()
        self.folder.finish_writing()
        self.clock.sleep(2 * SETTLE_S)
        findings = Findings()
        findings.found += self.causes.found
        findings.expect(self._drain(), STUCK, f"not done after {MAX_QUIET_STEPS} quiet steps")
        self._check(findings)
        return findings

    def _check(self, findings: Findings) -> None:
        loaded: Counter[Row] = Counter()
        for path in self.table.versions[-1].files - self.table.strangers:
            loaded.update(self.table.file_rows(path) or ())
        rows: Counter[int] = Counter()
        for row, count in loaded.items():
            findings.expect(count == 1, DUP, f"row {row.number} of file {row.key} is there {count} times")
            rows[row.key] += 1
        for file in self.folder.all:
            text = f"of {file.rows} rows of {file.key} {rows[file.number]} are there"
            findings.expect(rows[file.number] in (0, file.rows), CORRUPT, text)
        taken = [file for file in self.folder.all if rows[file.number]]
        self._check_left_out(findings, taken)
        head = self.table.read_head_unchecked(JOB_ID)
        totals = self.bills.read(JOB_ID, head).totals if head is not None else None
        if totals is not None:
            counted = (totals.source_files, totals.rows.loaded)
            told = f"totals are {counted}, and {len(taken)} files with {sum(rows.values())} rows are there"
            findings.expect(counted == (len(taken), sum(rows.values())), PROGRESS_MISMATCH, told)

    def _check_left_out(self, findings: Findings, taken: list[SimulatedFile]) -> None:
        """A file that was not loaded is one that the job cannot tell from those it has forgotten."""
        head = self.table.read_head_unchecked(JOB_ID)
        if head is None:
            return
        (state,) = self.bills.read(JOB_ID, head).positions.partitions.values()
        remembered = read_window(state, self.clock.now()).keys
        forgotten = [file for file in taken if file.key not in remembered]
        findings.expect(len(remembered) >= min(len(taken), self.window), LOSS, "it remembers less than it may")
        for file in self.folder.files.values():
            if file not in taken:
                time_s = seconds_of(file.modified)
                alike = any(other.key >= file.key or seconds_of(other.modified) >= time_s for other in forgotten)
                findings.expect(alike, LOSS, f"{file.key} was never loaded, and nothing like it was forgotten")


def run_files_schedule(seed: int) -> tuple[FilesWorld, Findings]:
    """One schedule over files, from its seed alone."""
    rng = Random(seed)
    world = FilesWorld(rng, Setting(start="", faults=rng.choice([0.0, 0.05, 0.2, 0.4]), cleans=rng.random() < 0.25))
    events = _events(world)
    for _, event in rng.choices(events, [weight for weight, _ in events], k=rng.randint(40, 160)):
        event()
    return world, world.finish()


def _events(world: FilesWorld) -> list[tuple[int, Callable[[], None]]]:
    rng = world.rng

    def run_on() -> None:
        if not world.actors:
            world.spawn()
        actor = rng.choice(world.actors)
        for _ in range(rng.randint(1, 14)):
            if actor in world.actors:
                world.step(actor)

    def spawn() -> None:
        if len(world.actors) < MAX_ACTORS:
            world.spawn()

    def kill() -> None:
        if world.actors:
            world.kill(rng.choice(world.actors))

    def say_goodbye() -> None:
        if world.actors:
            world.say_goodbye(rng.choice(world.actors))

    return [
        (24, run_on),
        (10, world.folder.appear),
        (8, world.pass_time),
        (3, kill),
        (2, spawn),
        (1, world.folder.delete),
        (1, say_goodbye),
        (1, world.lose_store),
        (2, world.table.deliver_pending),
        (1 if world.setting.cleans else 0, world.clean_up),
    ]
