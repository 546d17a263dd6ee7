"""What `make torture` runs, in three lanes at once that take less than an hour on two cores.

Each step is a proof of its own. The minutes are what it took beside the other lanes; what takes longer than its share,
or shows the same once more, is in `make marathon`. A lane alone does not fill a core: what is killed has to start
again, and the others wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_MINUTES = 60
LADING = "from lading.cli.main import main; main()"
CHANGING = ("tests/cluster/test_streams.py", "tests/cluster/test_workers.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command."""

    name: str
    words: tuple[str, ...]
    minutes: float
    """It is ended after three times as long."""
    variables: dict[str, str] = field(default_factory=dict)


def simulated(name: str, minutes: float, *words: str) -> Step:
    return Step(name=name, words=("-c", LADING, "simulate", *words), minutes=minutes)


def tested(name: str, minutes: float, *words: str, **variables: str) -> Step:
    """Tests whose prints are kept: they say what was counted."""
    return Step(
        name=name, words=("-m", "pytest", "-v", "-s", "--no-header", *words), minutes=minutes, variables=variables
    )


def soaked(form: str, minutes: float) -> Step:
    """The quiet end and the verifier take some minutes more than the kills."""
    hours = f"{0.7 * minutes / 60:.3f}"
    return Step(name=f"soak, {form}", words=("-m", "tests.soak", "--form", form, "--hours", hours), minutes=minutes)


PLAIN = (
    simulated("bad days in memory", 7, "--seeds", "6000"),
    simulated("rescales of state in memory", 1, "--seeds", "1500", "--rescaling"),
    simulated("rescales of loads in memory", 2, "--seeds", "1500", "--rescaling-loads"),
    tested("mutants and the state machine", 6, "-m", "slow or not slow", "tests/proof", LADING_TEST_EXAMPLES="500"),
    tested(
        "faults of S3, streams, topics, stores, catalogs, disks and clocks",
        12,
        *("-m", "slow or not slow", "tests/faults", "--ignore=tests/faults/test_spark_faults.py"),
        *("--ignore=tests/faults/test_serve_faults.py", "--ignore=tests/faults/test_silent_servers.py"),
        LADING_TEST_FAULT_SEEDS="6",
    ),
    tested("kills of writers without Spark", 3, "-m", "slow", "tests/crash/test_kill.py"),
    tested("races of writers", 1, "tests/tables", "-k", "race", LADING_TEST_RACE_ROUNDS="60"),
    tested("the vector path against Spark", 8, "-m", "slow", "tests/service/test_vector_expressions.py"),
    soaked("plain", 8),
)
LOCAL_SPARK = (
    tested("a backlog and fifty kills", 14, "-m", "slow", "tests/crash/test_kill_backlog.py"),
    tested("loads that change their size", 4, "-m", "slow", "tests/crash/test_rescale.py", "-k", "random-0"),
    tested(
        "state that is killed at every step",
        4,
        *("-m", "slow", "tests/crash/test_kill_state.py", "-k", "step and delta or seven_tasks_then"),
    ),
    tested(
        "routine loads that are killed twice",
        2,
        *("-m", "slow", "tests/crash/test_kill_kafka.py", "tests/crash/test_kill_kinesis.py", "-k", "twice"),
    ),
    tested(
        "faults on Spark", 5, "-m", "slow", "tests/faults/test_spark_faults.py", "tests/faults/test_serve_faults.py"
    ),
    tested("records that kill workers", 3, "-m", "slow", "tests/service/test_poison_records.py"),
    tested(
        "services that take over, are stopped, and clean",
        8,
        *("-m", "slow or not slow", "tests/service/test_leases.py", "tests/service/test_stopped_service.py"),
        *("tests/service/test_clean_beside.py", "tests/service/test_bad_week.py", "tests/crash/test_takeover.py"),
    ),
    soaked("spark", 6),
    soaked("services", 7),
)
CLUSTERS = (
    tested("a cluster that is killed", 29, "-m", "slow", "tests/cluster/test_kills.py"),
    tested("a cluster that loses shuffles and tasks", 6, "-m", "slow", "tests/cluster/test_retries.py"),
    tested("streams on a cluster, and workers that come and go", 8, "-m", "slow", *CHANGING),
)
LANES = {"plain": PLAIN, "Spark": LOCAL_SPARK, "clusters": CLUSTERS}
