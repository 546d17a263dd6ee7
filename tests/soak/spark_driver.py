"""The service of a soak, without its faces: jobs run by themselves on Spark, and each line of input is SQL."""

from __future__ import annotations

import json
import sys

from lading.errors import LadingError
from lading.failpoints import arm_from_text
from lading.service.facade import Lading
from lading.service.scheduling.scheduler import Scheduler


def main(home: str, tasks: str, failpoints: str) -> None:
    """Until it is killed, or its input ends."""
    arm_from_text(failpoints)
    with Lading(home, spark={"spark.master": f"local[{tasks}]"}) as lading:
        lading.spark()
        scheduler = Scheduler(lading)
        scheduler.start()
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            try:
                lading.sql(line)
                print(json.dumps(""), flush=True)
            except LadingError as error:
                print(json.dumps(str(error)), flush=True)
        scheduler.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
