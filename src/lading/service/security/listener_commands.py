"""Programs that listeners may run on the machine of the service: those that its owner names, and no others.

A program is a shell for everybody who can choose it. So a statement only has a name, the setting has the path, and the
program gets no argument, nothing of the environment of the service, and no open file but its input.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lading.errors import ConfigError, SqlError, UnavailableError

SETTING = "LADING_LISTENER_COMMANDS"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def parse_commands(text: str) -> dict[str, Path]:
    """What the setting says: `name=/path`, with commas between them. Raises ConfigError."""
    found: dict[str, Path] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, path = part.partition("=")
        if not _NAME.fullmatch(name.strip()) or not Path(path.strip()).is_absolute() or name.strip() in found:
            msg = f"{SETTING} has an item that is not name=/path, or a name twice: {part!r}"
            raise ConfigError(msg, left="Nothing was started.", todo="Write for example notify=/opt/etl/notify.")
        found[name.strip()] = Path(path.strip())
    return found


def check_commands(commands: Mapping[str, Path], properties: Mapping[str, str]) -> None:
    """Refuse a statement that names another command. Raises SqlError."""
    for name, value in properties.items():
        if name.startswith("listener.") and name.endswith(".command") and value not in commands:
            msg = f"{name} is {value}, which is not the name of a command that jobs may run"
            todo = f"The owner of the service names commands and their programs in {SETTING}."
            raise SqlError(msg, property=name, todo=todo)


def run_command(commands: Mapping[str, Path], name: str, content: bytes, timeout_s: float) -> None:
    """Run a command with this input, and wait for its end. Raises UnavailableError unless it ends well and in time."""
    path = commands.get(name)
    if path is None:
        msg = f"{name} is not the name of a command that jobs may run"
        raise UnavailableError(msg, left="Nothing was run.", todo=f"Name it in {SETTING}.")
    try:
        process = subprocess.Popen(  # noqa: S603 - the owner of the service names the program; there is no argument
            [str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        msg = f"The command {name} could not be started: {error.strerror}"
        raise UnavailableError(msg, left="Nothing was run.", todo=f"Check its program in {SETTING}.") from error
    with process:
        try:
            process.communicate(content, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _end(process)
            msg = f"The command {name} did not end within {timeout_s:g} seconds, and was killed"
            raise UnavailableError(msg, left="It may have done a part.", todo="Make it quicker.") from error
    if process.returncode != 0:
        msg = f"The command {name} ended with status {process.returncode}"
        raise UnavailableError(msg, left="It may have done a part.", todo="See what it writes itself.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and what it has started: it is the first of its own session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
