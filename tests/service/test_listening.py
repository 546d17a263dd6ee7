"""Nobody can reach a service from elsewhere before it is safe."""

from __future__ import annotations

import pytest

from lading.errors import ConfigError
from lading.service.security.users import check_listening

HERE = ["127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST", "::1", "[::1]", "::ffff:127.0.0.1"]
ELSEWHERE = ["0.0.0.0", "::", "", "10.0.0.1", "lading.example.org", "localhost.example.org", "::ffff:10.0.0.1"]


@pytest.mark.parametrize("host", HERE)
def test_this_machine_needs_nothing(host: str) -> None:
    check_listening(host, has_tls=False, insecure=False)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_elsewhere_needs_tls_or_the_word_of_somebody(host: str) -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        check_listening(host, has_tls=False, insecure=False, what="HTTP")
    check_listening(host, has_tls=True, insecure=False)
    check_listening(host, has_tls=False, insecure=True)
