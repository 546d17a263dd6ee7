"""A whole installation in memory: one job, any number of incarnations, and everything that can happen to them.

Both the simulator and the property tests drive this. Every method is one event; all chance comes from one seeded
generator, so a schedule replays exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts as Outside
from lading.commit.protocols import Stager
from lading.commit.rollback import RollbackSight, newest_proved
from lading.commit.steps import Steps
from lading.errors import FencedError, HeadLostError, LadingError, RolledBackError, TrimmedError, UnknownOutcomeError
from lading.ids import Incarnation, JobId, Token
from lading.model.batch import Limits
from lading.model.bill import Bill, Head
from lading.model.job import Job, WatermarkRule
from lading.model.notices import ListenRule
from lading.model.positions import Positions
from lading.model.tally import Tally
from lading.plan.planner import Planner, Source
from lading.tables.memory import MemoryBills
from lading.testing.clock import ManualClock
from lading.testing.faulty import FaultyTable
from lading.testing.merger import ScriptedMerger, StateObjects
from lading.testing.source import Row, ScriptedSource
from lading.testing.stager import ScriptedStager
from lading.testing.verdict import STOPPED, STUCK, Findings
from lading.testing.verifier import Evidence, Promises, Version, check_all_read, verify
from lading.testing.window_counter import WindowCounter

JOB_ID = JobId("00000000-0000-4000-8000-000000000001")
MAX_QUIET_STEPS = 4000


@dataclass(slots=True)
class Counts:
    """What happened in a schedule."""

    commits: int = 0
    crashes: int = 0
    edits: int = 0


@dataclass(slots=True)
class Store:
    """The metadata store: hints and views, none of which may matter for correctness."""

    last_seen: Head | None = None
    goodbye: Head | None = None
    totals: Tally | None = None
    seq: int | None = None
    followed: list[int] = field(default_factory=list)
    created_at: Positions | None = None
    """Where CREATE resolved the start to, until the job is open."""

    def followed_seq(self, _job_id: JobId) -> int | None:
        return self.seq

    def follow(self, bill: Bill) -> None:
        self.last_seen, self.totals, self.seq = bill.head, bill.totals, bill.seq
        self.followed.append(bill.seq)


@dataclass(slots=True)
class Actor:
    """One incarnation and what it is doing now."""

    coordinator: Coordinator
    work: Steps[Bill | None] | None = None
    is_open: bool = False
    then: Callable[[], None] | None = None
    """What to note when the work is done: users are told only then."""
    idle: bool = False


@dataclass(slots=True)
class Setting:
    """What kind of schedule this is."""

    start: str = "LATEST"
    on_data_loss: str = "PAUSE"
    faults: float = 0.1
    trims: bool = False
    rolls_back: bool = False
    prunes: bool = False
    cleans: bool = False
    """Other engines remove the bills, which no table format knows, as orphans."""
    watermark: WatermarkRule | None = None
    horizon: int | None = None
    """Rows with the same keys are loaded once, within so much event time. None: all are."""
    window: int | None = None
    """Rows are counted by key and windows of so much event time. None: they are loaded."""
    has_neighbour: bool = False
    """A second job loads into the same table."""
    has_poison: bool = False
    """Some rows end every worker that reads them, and go to quarantine."""

    @property
    def listens(self) -> bool:
        """Somebody is told after each commit. Without a draw of its own, so that seeds keep their schedules."""
        return self.has_neighbour

    @property
    def keeps_state(self) -> bool:
        return self.horizon is not None or self.window is not None


@dataclass(slots=True)
class World:
    """The installation."""

    rng: Random
    setting: Setting
    job_id: JobId = JOB_ID
    clock: ManualClock = field(default_factory=ManualClock)
    store: Store = field(default_factory=Store)
    promises: Promises = field(default_factory=Promises)
    counts: Counts = field(default_factory=Counts)
    actors: list[Actor] = field(default_factory=list)
    source: ScriptedSource = field(init=False)
    table: FaultyTable = field(init=False)
    bills: MemoryBills = field(init=False)
    oldest_bill: int = 0
    cleaned: set[int] = field(default_factory=set)
    """Seqs of bills that another engine removed."""
    tasks: int = 1
    """How many of them merge the rows of a batch."""
    objects: StateObjects = field(default_factory=StateObjects)
    """What the job keeps between batches."""
    causes: Findings = field(default_factory=Findings)
    """Reasons for stopping that were not so."""

    def __post_init__(self) -> None:
        self.source = ScriptedSource(self.rng, shards=self.rng.randint(1, 3), knows_ends=self.rng.random() < 0.4)
        self.source.now = lambda: self.clock.now()
        self.table = FaultyTable(self.rng, faults=self.setting.faults)
        self.bills = MemoryBills(self.table)
        self.source.produce(self.rng.randint(0, 10))
        self.store.created_at = self.source.open(self.setting.start)
        self.promises.created = self.store.created_at.partitions

    # What an incarnation works with.

    def make_source(self) -> Source:
        """The driver's side of the source."""
        return self.source

    def make_stager(self) -> Stager:
        """What reads it."""
        stager = ScriptedStager(self.source, self.table.write_file, self.rng, faults=self.setting.faults / 3)
        stager.spool = self.objects if self.setting.keeps_state else None
        return stager

    def make_merger(self, write_file: Callable[[str, Sequence[Row]], None]) -> ScriptedMerger | None:
        """What merges its rows with the state, for jobs that have one."""
        if not self.setting.keeps_state:
            return None
        made = ScriptedMerger if self.setting.window is None else WindowCounter
        merger = made(self.objects, write_file, self.rng)
        merger.horizon, merger.faults = self.setting.horizon or 0, self.setting.faults / 6
        merger.tasks = lambda: self.tasks
        if isinstance(merger, WindowCounter):
            merger.size = self.setting.window or 1
        return merger

    def make_job(self, limits: Limits) -> Job:
        return Job(
            job_id=self.job_id,
            name="simulated",
            start=self.setting.start,
            limits=limits,
            on_data_loss=self.setting.on_data_loss,
            watermark=self.setting.watermark,
            keeps_state=self.setting.keeps_state,
            listening=ListenRule(listeners=("hook",), idle_s=0.05) if self.setting.listens else None,
        )

    def make_limits(self) -> Limits:
        """How large batches are."""
        return Limits(rows=8)

    # Events.

    def spawn(self) -> None:
        """Start an incarnation, whether or not another one is running."""
        job = self.make_job(self.make_limits())
        outside = Outside(
            table=self.table,
            bills=self.bills,
            planner=Planner(self.make_source(), self.clock, on_data_loss=job.on_data_loss),
            stager=self.make_stager(),
            merger=self.make_merger(self.table.write_file),
            clock=self.clock,
            new_token=lambda: Token(self.rng.randrange(1, 2**63)),
            followers=(self.store,),
        )
        actor = Actor(Coordinator(job, outside, Incarnation(f"incarnation-{self.rng.getrandbits(32):08x}")))
        self._begin(actor, self._start(actor), partial(self._note_open, actor))
        self.actors.append(actor)

    def step(self, actor: Actor) -> None:
        """Let one incarnation go on to its next step."""
        if actor.work is None:
            self._begin(actor, actor.coordinator.run_batch(), None)
        self.clock.sleep(0.01)
        try:
            next(actor.work)  # type: ignore[arg-type]  # set by _begin
        except StopIteration as stop:
            self._done(actor, stop.value)
        except LadingError as error:
            self._failed(actor, error)

    def kill(self, actor: Actor) -> None:
        """The process is gone, wherever it was."""
        self.counts.crashes += 1
        self._remove(actor)

    def say_goodbye(self, actor: Actor) -> None:
        """The process ends cleanly between two batches."""
        if actor.work is None and actor.coordinator.bill is not None:
            self.store.goodbye = actor.coordinator.bill.head
            self._remove(actor)

    def edit(self, actor: Actor) -> None:
        """An operator moves one partition to a random place."""
        bill = actor.coordinator.bill
        if actor.work is not None or bill is None or not bill.positions.partitions:
            return
        name = self.rng.choice(sorted(bill.positions.partitions))
        shard = self.source.shards[name]
        self._ask(actor, {name: str(self.rng.randint(shard.horizon, len(shard.rows)))})

    def lose_store(self) -> None:
        """The metadata store is gone; the job must not care."""
        self.store.last_seen = self.store.goodbye = self.store.seq = self.store.totals = None
        self.store.followed.clear()
        self.store.created_at = None
        if self.table.read_head_unchecked(self.job_id) is None:
            self.promises.created = None

    def roll_back(self) -> None:
        """Somebody restores an older version of the table."""
        self.table.restore_random({self.job_id: self.oldest_bill}, self.rng)

    def prune(self) -> None:
        """The retention policy removes old bills."""
        head = self.table.read_head_unchecked(self.job_id)
        if head is not None and not self.table.is_behind(self.job_id):
            self.oldest_bill = max(self.oldest_bill, self.bills.prune(self.job_id, head=head, keep_commits=3))

    def clean_up(self) -> None:
        """Another engine's clean-up removes every bill; the job must go on from what is inside its last commit."""
        self.cleaned |= {seq for _, seq in self.bills.clean()}

    # The end of a schedule.

    def finish(self) -> Findings:
        """Quiet time: no more faults, one incarnation, until nothing is left to read. Then look."""
        self.setting.faults = self.table.faults = 0.0
        self.source.listing_fails = self.source.old_listings = 0
        self.table.drop_or_deliver_pending()
        self.actors.clear()
        findings = Findings()
        findings.found += self.causes.found
        findings.expect(self._drain(), STUCK, f"not done after {MAX_QUIET_STEPS} quiet steps")
        head = self.table.read_head_unchecked(self.job_id)
        findings.found += verify(self.evidence()).found
        if head is not None and not findings.found:
            check_all_read(self.source, self.bills.read(self.job_id, head), findings)
        return findings

    def evidence(self, *, with_views: bool = True) -> Evidence:
        """What the verifier may look at. Views lag behind the table until a job is started again."""
        versions = [
            Version(files=v.files - self.table.strangers, head=v.heads.get(self.job_id), restored=v.restored)
            for v in self.table.versions
        ]
        return Evidence(
            versions=versions,
            read_bill=partial(self.bills.read_ever, self.job_id),
            file_rows=self.table.file_rows,
            source=self.source,
            promises=self.promises,
            followed=tuple(self.store.followed) if with_views else (),
            shown_totals=self.store.totals if with_views else None,
            oldest_bill=self.oldest_bill,
            cleaned=frozenset(self.cleaned),
            watermark=self.setting.watermark,
            horizon=self.setting.horizon,
            window=self.setting.window,
            state_rows=self.objects.rows,
        )

    def _drain(self) -> bool:
        for _ in range(MAX_QUIET_STEPS):
            if not self.actors:
                self.spawn()
            actor = self.actors[0]
            self.step(actor)
            if actor.idle:
                return True
        return False

    # Inside.

    def _start(self, actor: Actor) -> Steps[Bill | None]:
        store = self.store
        return actor.coordinator.start(
            last_seen=store.last_seen, said_goodbye=store.goodbye, created_at=store.created_at
        )

    def _begin(self, actor: Actor, work: Steps[Bill | None], then: Callable[[], None] | None) -> None:
        actor.work, actor.then, actor.idle = work, then, False

    def _done(self, actor: Actor, result: Bill | None) -> None:
        actor.work = None
        actor.idle = result is None
        self.counts.commits += result is not None
        if actor.then is not None:
            actor.then()
            actor.then = None

    def _note_open(self, actor: Actor) -> None:
        actor.is_open = True
        if self.promises.opened is None and actor.coordinator.bill is not None:
            self.promises.opened = actor.coordinator.bill.positions.partitions

    def _failed(self, actor: Actor, error: LadingError) -> None:
        actor.work = actor.then = None
        self._check_cause(actor, error)
        match error:
            case FencedError() | UnknownOutcomeError():
                self._remove(actor)
            case RolledBackError():
                self._accept_rollback(actor)
            case TrimmedError():
                self._ask(actor, {error.facts["partition"]: error.facts["horizon"]})
            case _ if not actor.is_open:
                self._begin(actor, self._start(actor), partial(self._note_open, actor))

    def _check_cause(self, actor: Actor, error: LadingError) -> None:
        """What a job says when it stops must be so."""
        head = self.table.read_head_unchecked(self.job_id)
        was_restored = any(version.restored for version in self.table.versions)
        if isinstance(error, FencedError) and head is not None and not was_restored:
            other = self.bills.read_ever(self.job_id, head).incarnation
            told = f"{actor.coordinator.incarnation} says that it was fenced, by its own commit {head.bill_name}"
            self.causes.expect(other != actor.coordinator.incarnation, STOPPED, told)
        if isinstance(error, TrimmedError) and error.facts["horizon"] is None:
            shard = self.source.shards[error.facts["partition"]]
            self.causes.expect(shard.expired, STOPPED, f"{shard.name} was called lost, and the source has it")
        if isinstance(error, RolledBackError):
            told = "the job says that the table was rolled back, and it never was"
            self.causes.expect(was_restored, STOPPED, told)

    def _accept_rollback(self, actor: Actor) -> None:
        """The operator says that the rollback was meant, and where the table now ends."""
        head, restored = self.table.read_head_unchecked(self.job_id), self.table.ends_with(self.job_id)
        if head is None or restored is None:
            self._remove(actor)
            return
        above = [self.bills.read(self.job_id, other) for other in self.bills.heads(self.job_id) if other.seq > head.seq]
        newest = newest_proved(head, self.store.last_seen, above) or head
        goes_on = newest if self.rng.random() < 0.5 and self._has_bill(newest) else restored
        if not self._has_bill(restored):
            self._remove(actor)
            return
        sight = RollbackSight(head=head, restored=restored, goes_on=goes_on, version=self.table.version())
        reason = f"accept-{self.rng.getrandbits(32):08x}"
        known = self.bills.read(self.job_id, goes_on)
        self.promises.accepted[reason] = (known.positions.partitions, known.state)
        self._begin(actor, actor.coordinator.accept_rollback(sight, reason=reason), partial(self._note_open, actor))

    def _has_bill(self, head: Head) -> bool:
        try:
            self.bills.read(self.job_id, head)
        except HeadLostError:
            return False
        return True

    def _ask(self, actor: Actor, changes: dict[str, str | None]) -> None:
        reason = f"edit-{self.rng.getrandbits(32):08x}"
        self.promises.edits_asked[reason] = changes
        self.counts.edits += 1
        steps: Steps[Bill | None] = actor.coordinator.edit(changes, reason=reason)
        self._begin(actor, steps, lambda: self.promises.edits_done.add(reason))

    def _remove(self, actor: Actor) -> None:
        if actor.work is not None:
            actor.work.close()
        self.actors = [other for other in self.actors if other is not actor]
