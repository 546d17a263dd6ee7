"""`lading simulate`: the proof, on your machine."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from lading.clock import SystemClock
from lading.errors import ConfigError

if TYPE_CHECKING:
    from lading.testing.simulator import Summary


def simulate(
    seeds: Annotated[int, typer.Option(min=1, help="How many schedules.")] = 1000,
    start: Annotated[int, typer.Option("--from", min=0, help="The first seed; a printed seed replays exactly.")] = 0,
    mutant: Annotated[str, typer.Option(help="Break this law first; the run must then fail.")] = "",
    list_mutants: Annotated[bool, typer.Option("--list-mutants", help="List the laws that can be broken.")] = False,
    is_rescaling: Annotated[
        bool,
        typer.Option("--rescaling", help="Only jobs with state, merged by 7 tasks, then 2, then any number."),
    ] = False,
    is_loading: Annotated[
        bool,
        typer.Option(
            "--rescaling-loads",
            help="Only loads from topics, streams and files, whose tasks, partitions, shards and files go from 7 to 2, "
            "from 2 to 7, or from any number to any, and then to any number.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run seeded schedules of crashes, lost answers, reshards and edits against the real coordinator.

    Exit status 1 when any row was lost, doubled, reordered or corrupted, or when progress and rows disagree.
    """
    from lading.testing.catalogue import MUTANTS, applied
    from lading.testing.rescaled_loads import rescale_loads
    from lading.testing.rescaling import rescale
    from lading.testing.simulator import simulate as simulate_all

    if list_mutants:
        _print_mutants(as_json)
        return
    if mutant and mutant not in MUTANTS:
        msg = f"There is no mutant named {mutant!r}"
        raise ConfigError(msg, left="Nothing was run.", todo="See lading simulate --list-mutants.")
    clock = SystemClock()
    began = clock.monotonic_s()
    with applied(MUTANTS[mutant]) if mutant else nullcontext():
        run = rescale_loads if is_loading else rescale if is_rescaling else simulate_all
        summary = run(range(start, start + seeds), stop_at_first=bool(mutant))
    more = " --rescaling-loads" if is_loading else " --rescaling" if is_rescaling else ""
    _print_summary(summary, clock.monotonic_s() - began, as_json, more=more)
    if not summary.is_clean:
        raise typer.Exit(1)


def _print_mutants(as_json: bool) -> None:
    from lading.testing.catalogue import MUTANTS

    if as_json:
        typer.echo(json.dumps({name: mutant.law for name, mutant in MUTANTS.items()}))
        return
    table = Table("mutant", "the law it breaks", box=None)
    for name, mutant in MUTANTS.items():
        table.add_row(name, mutant.law)
    Console().print(table)


def _print_summary(summary: Summary, seconds: float, as_json: bool, *, more: str) -> None:
    facts: dict[str, object] = {
        "schedules": summary.schedules,
        "commits": summary.commits,
        "crashes": summary.crashes,
        "edits": summary.edits,
        "seconds": round(seconds, 1),
        "schedules_per_minute": round(summary.schedules / max(seconds, 1e-9) * 60),
        **summary.more,
        **summary.classes,
    }
    seed, findings = summary.first_failure or (None, None)
    if as_json:
        found = [f"{finding.kind}: {finding.text}" for finding in findings.found] if findings else []
        typer.echo(json.dumps({**facts, "failing_seed": seed, "findings": found}))
        return
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
    Console().print(table)
    if findings is not None:
        console = Console(highlight=False)
        console.print(f"[red]seed {seed} failed[/red]; replay it with: lading simulate --seeds 1 --from {seed}{more}")
        for finding in findings.found[:10]:
            console.print(f"  {finding.kind}: {finding.text}", soft_wrap=True)
