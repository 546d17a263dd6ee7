"""A broker that tells its clients to go where the job must not: nothing is read there."""

from __future__ import annotations

import pytest

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.net.addresses import AddressRules
from lading.sources.kafka.listing import Cluster
from tests.sources.kafka.support import Topic


def test_a_topic_is_not_read_from_brokers_that_the_job_must_not_reach(topic: Topic) -> None:
    """The broker says that it is at 127.0.0.1, which only some may reach."""
    for rules in (AddressRules(), AddressRules(networks=("10.0.0.0/8",)), AddressRules(hosts=("broker.example",))):
        cluster = Cluster(topic.spec(addresses=rules), SystemClock())
        with pytest.raises(
            ConfigError, match=r"say that it is read from 127\.0\.0\.1, an address that this job must not"
        ):
            cluster.topic()
        cluster.close()
    allowed = Cluster(topic.spec(addresses=AddressRules(networks=("127.0.0.1/32",))), SystemClock())
    assert allowed.topic().partitions == (0,)
    allowed.close()
