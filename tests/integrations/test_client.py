"""A service is asked over its URL, with a token; jobs are waited for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lading.errors import AuthError, ConfigError, DeniedError, JobNotFoundError, JobStateError, RequestError
from lading.integrations.client import ServiceClient
from tests.integrations.conftest import Serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "orchestrators.md").read_text()


def snippet(title: str) -> str:
    """The Python of one section of the page."""
    [part] = [part for part in PAGE.split("\n## ") if part.startswith(title)]
    [found] = re.findall(r"^```py\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_page_waits_for_a_job(serving: Serving) -> None:
    exec(compile(snippet("From any other"), "page", "exec"), {"URL": serving.url, "TOKEN": serving.token})


def test_a_job_that_is_paused_is_not_waited_for(serving: Serving) -> None:
    client = ServiceClient(serving.url, serving.token)
    client.pause("orders")
    assert (client.progress("orders").state, client.progress("orders").is_caught_up) == ("PAUSED", False)
    with pytest.raises(JobStateError, match="Job orders is PAUSED"):
        client.wait_until_caught_up("orders")
    client.resume("orders")
    assert client.wait_until_caught_up("orders", quiet_s=0, poll_s=0.1, timeout_s=120).table == "shop.orders"


def test_errors_are_those_of_the_service(serving: Serving) -> None:
    client = ServiceClient(serving.url, serving.token)
    with pytest.raises(JobNotFoundError):
        client.progress("nobody")
    with pytest.raises(DeniedError):
        client.sql("CREATE DATABASE other")
    with pytest.raises(AuthError):
        ServiceClient(serving.url, "lading_wrong").progress("orders")
    with pytest.raises(RequestError, match=r"The service does not answer on http://127\.0\.0\.1:1:"):
        ServiceClient("http://127.0.0.1:1", "t").progress("orders")


@pytest.mark.parametrize("url", ["lading.example:8030", "ftp://lading.example", "http://lading.example:8030"])
def test_the_token_goes_nowhere_in_the_clear(url: str) -> None:
    with pytest.raises(ConfigError, match="Nobody was asked"):
        ServiceClient(url, "t")


def test_it_needs_nothing_but_python() -> None:
    """Who has Airflow installs Lading with --no-deps."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import lading.integrations.client"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)
