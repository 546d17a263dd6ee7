"""`lading jobs`, `status`, `logs`, `pause` and `resume`: the same with a running service as without."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from lading.cli.homes import HOME, STORE, require_home
from lading.cli.options import DEFAULTS
from lading.cli.output import OutputFormat, new_console, show
from lading.clock import SystemClock
from lading.service.result import Result, table
from lading.service.runtime.address_file import find_address

if TYPE_CHECKING:
    from lading.service.facade import Lading

NAME = Annotated[str, typer.Argument(help="The job: name, or database.name of a routine load.")]
FORM = Annotated[OutputFormat, typer.Option("--format", help="How rows are shown.")]
LOOK_S = 1.0
_COLUMNS = ("Job", "State", "Health", "Source", "Target", "Rows", "Bad", "Behind", "LastCommit", "Message")


class JobDesk(Protocol):
    """What these commands ask of a home, as the HTTP API answers it."""

    def jobs(self) -> list[dict[str, Any]]: ...
    def job(self, name: str) -> dict[str, Any]: ...
    def batches(self, name: str, limit: int) -> list[dict[str, Any]]: ...
    def control(self, name: str, verb: str) -> None: ...


class LocalDesk:
    """The same of a home that no service has."""

    def __init__(self, lading: Lading) -> None:
        from lading.service.views.jobs import JobViews

        self._lading = lading
        self._views = JobViews(lading)

    def jobs(self) -> list[dict[str, Any]]:
        return [_plain(view) for view in self._views.list_jobs()]

    def job(self, name: str) -> dict[str, Any]:
        return _plain(self._views.one_job(name))

    def batches(self, name: str, limit: int) -> list[dict[str, Any]]:
        return [_plain(view) for view in self._views.batches(name, limit=limit)]

    def control(self, name: str, verb: str) -> None:
        from lading.service import operations

        session = self._lading.session(getpass.getuser(), is_trusted=True)
        operations.control(session, self._views.record(name), "PAUSE" if verb == "pause" else "RESUME")


def _plain(view: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from lading.http.json_values import plain

    shown: dict[str, Any] = plain(asdict(view))
    return shown


@contextmanager
def opened_desk(home: Path, store: str) -> Iterator[JobDesk]:
    """The jobs of a home, from the service that runs for it or from the home itself."""
    address = find_address(require_home(home))
    if address is not None:
        from lading.cli.remote import RemoteLading

        yield RemoteLading(address)
        return
    from lading.service.facade import Lading

    with Lading(home, store_url=store) as lading:
        yield LocalDesk(lading)


def jobs(form: FORM = OutputFormat.TABLE, home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """List the jobs: state, rows, how far behind."""
    with opened_desk(home, store) as desk:
        found = desk.jobs()
    show(table(_COLUMNS, [_row(job) for job in found]), form, new_console())


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    rows, lag = job["totals"]["rows"], job["lag"] or {}
    behind = None if lag.get("behind") is None else f"{lag['behind']:,} {lag['unit']}"
    said = (job["reason"] or {}).get("message") or job["message"]
    place = (job["name"], job["state"], job["health"]["state"], job["source"], job["target"])
    return (*place, rows["loaded"], rows["error"], behind, job["last_commit_at"], said)


def status(job: NAME, form: FORM = OutputFormat.VERTICAL, home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Show one job: state, reason, totals, positions. Exit status 3 when it is PAUSED."""
    with opened_desk(home, store) as desk:
        detail = desk.job(job)
    shown = detail["job"]
    facts: dict[str, Any] = dict(zip(_COLUMNS, _row(shown), strict=True))
    facts |= {
        "Comment": shown["comment"],
        "Definer": shown["definer"],
        "Created": shown["created_at"],
        "Commits": shown["totals"]["commits"],
        "LastError": shown["last_error"],
        "Watermark": shown["watermark"],
        "Epoch": detail["epoch"],
        "Positions": "\n".join(f"{each['partition']}: {each['at']}" for each in detail["positions"]),
    }
    show(Result(columns=tuple(facts), rows=(tuple(facts.values()),)), form, new_console())
    if shown["state"] == "PAUSED":
        raise typer.Exit(3)


def logs(
    job: NAME,
    *,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what comes, until Ctrl-C.")] = False,
    lines: Annotated[str, typer.Option("-n", "--lines", help="How many of the newest batches to begin with.")] = "20",
    home: HOME = DEFAULTS.home,
    store: STORE = "",
) -> None:
    """Tell the batches of a job, oldest first: rows, seconds, errors."""
    if not lines.isdecimal() or not 1 <= int(lines) <= 1000:
        msg = "It is a number from 1 to 1000."
        raise typer.BadParameter(msg, param_hint="--lines")
    clock, told, limit = SystemClock(), dict[int, str](), int(lines)
    try:
        while True:
            with opened_desk(home, store) as desk:  # Not kept open: without a service, another may want the home.
                found = desk.batches(job, limit)
            _tell_new(found, told)
            if not follow:
                return
            limit = 1000
            clock.sleep(LOOK_S)
    except KeyboardInterrupt:
        if not follow:
            raise


def _tell_new(found: Sequence[dict[str, Any]], told: dict[int, str]) -> None:
    for batch in reversed(found):
        line = _line(batch)
        if told.get(batch["batch_id"]) != line:
            told[batch["batch_id"]] = line
            typer.echo(line)


def _line(batch: dict[str, Any]) -> str:
    at = batch["finished_at"] or batch["started_at"] or batch["created_at"]
    words = [f"{at} batch {batch['batch_id']} {batch['state']}"]
    if rows := batch["rows"]:
        words.append(f"{rows['loaded']:,} rows loaded, {rows['error']:,} bad, {rows['unselected']:,} not selected")
    if batch["seconds"] is not None:
        words.append(f"{batch['seconds']:.1f} s")
    if batch["attempt"] > 1:
        words.append(f"attempt {batch['attempt']}")
    return "; ".join([*words, *([batch["error"]] if batch["error"] else [])])


def pause(job: NAME, home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Pause a job, as PAUSE JOB and PAUSE ROUTINE LOAD do."""
    with opened_desk(home, store) as desk:
        desk.control(job, "pause")
        typer.echo(f"{job}: {desk.job(job)['job']['state']}")


def resume(job: NAME, home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Let a paused job go on, as RESUME JOB and RESUME ROUTINE LOAD do."""
    with opened_desk(home, store) as desk:
        desk.control(job, "resume")
        typer.echo(f"{job}: {desk.job(job)['job']['state']}")
