"""What `make torture` runs, in two lanes that are meant to take an hour on two cores that nobody else uses.

Each step is a proof of its own. The minutes are estimates for two free cores; what takes longer than its share, or
shows the same once more, is in `make marathon`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_MINUTES = 60
LADING = "from lading.cli.main import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command."""

    name: str
    words: tuple[str, ...]
    minutes: float
    """On free cores. It is ended after three times as long."""
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
    simulated("bad days in memory", 6, "--seeds", "10000"),
    simulated("rescales of state in memory", 3, "--seeds", "1500", "--rescaling"),
    simulated("rescales of loads in memory", 3, "--seeds", "1500", "--rescaling-loads"),
    tested("mutants and the state machine", 6, "-m", "slow or not slow", "tests/proof", LADING_TEST_EXAMPLES="500"),
    tested(
        "faults of S3, streams, topics, stores, disks and clocks",
        12,
        *("-m", "slow or not slow", "tests/faults", "--ignore=tests/faults/test_spark_faults.py"),
        LADING_TEST_FAULT_SEEDS="6",
    ),
    tested("kills of writers without Spark", 8, "-m", "slow", "tests/crash/test_kill.py"),
    tested("races of writers", 3, "tests/tables", "-k", "race", LADING_TEST_RACE_ROUNDS="60"),
    soaked("plain", 12),
)
ON_SPARK = (
    tested("a cluster that is killed", 16, "-m", "slow", "tests/cluster/test_kills.py"),
    tested("a backlog and fifty kills", 9, "-m", "slow", "tests/crash/test_kill_backlog.py"),
    tested("loads that change their size", 5, "-m", "slow", "tests/crash/test_rescale.py", "-k", "random-0"),
    tested(
        "state that is killed at every step", 4, "-m", "slow", "tests/crash/test_kill_state.py", "-k", "step and delta"
    ),
    tested("faults on Spark", 3, "-m", "slow", "tests/faults/test_spark_faults.py"),
    tested("records that kill workers", 3, "-m", "slow", "tests/service/test_poison_records.py"),
    tested("services that take over", 1, "-m", "slow or not slow", "tests/service/test_leases.py"),
    soaked("spark", 14),
)
LANES = {"plain": PLAIN, "Spark": ON_SPARK}
