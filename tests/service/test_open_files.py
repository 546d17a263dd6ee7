"""A process that was given few files takes what it may have."""

from __future__ import annotations

import subprocess
import sys

import pytest

STORY = """
import resource, sys
from lading.service.limits.rlimits import allow_many_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(allow_many_open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "then"), [(256, 2048, 2048), (300, 300, 300), (1024, 4096, 4096)], ids=["raised", "full", "shell"]
)
def test_the_limit_is_raised_as_far_as_it_goes(soft: int, hard: int, then: int) -> None:
    said = subprocess.run(
        [sys.executable, "-c", STORY.format(soft=soft, hard=hard)], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [str(then), str(then), str(hard)]
