"""`python -m bench.peers.serve <module>`: one contender in a process and an environment of its own.

It reads one order a line, loads, and answers with one line of JSON. Whatever its libraries print goes to its errors.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module

from bench.peers.order import read_order


def main(name: str) -> None:
    """Answer until there are no more orders."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        module = import_module(f"bench.peers.{name}")
        for line in sys.stdin:
            try:
                order = read_order(line)
                answer = {"seconds": module.follow(order) if order.until else module.load(order)}
            except Exception:  # noqa: BLE001 - told to the one who asked
                answer = {"error": traceback.format_exc()[-3000:]}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
