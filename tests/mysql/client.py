"""The `mysql` program of Debian's mariadb-client."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest


@functools.cache
def find_mysql() -> str:
    """Where it is; installed when that can be done here, and the test is skipped loudly when not."""
    found = shutil.which("mysql") or shutil.which("mariadb")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "mariadb-client"], capture_output=True, check=False)
        found = shutil.which("mysql") or shutil.which("mariadb")
    if found is None:
        pytest.skip("THE MYSQL CLIENT IS NOT TESTED: install mariadb-client")
    return found


def run_mysql(
    port: int, text: str, *options: str, user: str = "root", password: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run statements with it, over TCP."""
    variables = {**os.environ, "MYSQL_PWD": password} if password else None
    command = [find_mysql(), "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}", *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False, env=variables)
