"""Logins with MySQL's own driver for Python, in a process of its own: its C part brings an OpenSSL along.

    python -m tests.mysql.connector < logins.json

Says for each login who it is, or the number of the error.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from typing import Any


def main() -> None:
    import _mysql_connector as first  # Before Python's own ssl: the C part needs the OpenSSL that came with it.

    import mysql.connector

    assert first is not None
    for login in json.load(sys.stdin):
        becomes = login.pop("becomes", None)
        try:
            with closing(mysql.connector.connect(host="127.0.0.1", **login)) as link:
                if becomes:
                    link.cmd_change_user(*becomes)
                cursor = link.cursor()
                cursor.execute("SELECT USER()")
                print(*cursor.fetchall()[0])
        except mysql.connector.Error as error:
            print(error.errno)


def log_in(*logins: dict[str, Any]) -> list[str]:
    """What it says."""
    command = [sys.executable, "-m", "tests.mysql.connector"]
    done = subprocess.run(command, input=json.dumps(logins), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
