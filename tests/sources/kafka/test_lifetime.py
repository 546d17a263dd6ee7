"""librdkafka ends the process when a client is destroyed by one of its own threads."""

from __future__ import annotations

import subprocess
import sys

from tests.sources.kafka.support import Topic

SCRIPT = """
import gc, sys, threading
from confluent_kafka import TopicCollection
from lading.clock import SystemClock
from lading.sources.kafka.listing import Cluster
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.records.spec import RecordFormat

gc.disable()
answered = threading.Event()

def collect(future):
    # Answers are delivered by a thread of the client; what Python collects there is destroyed there.
    gc.collect()
    answered.set()

def ask():
    cluster = Cluster(KafkaSpec(brokers=sys.argv[1], topic=sys.argv[2], format=RecordFormat(columns=())), SystemClock())
    cluster.itself = cluster
    future = cluster._client().describe_topics(TopicCollection([sys.argv[2]]))[sys.argv[2]]
    future.add_done_callback(collect)

ask()
assert answered.wait(30)
"""


def test_garbage_that_is_collected_by_a_clients_own_thread_does_not_end_the_process(topic: Topic) -> None:
    command = [sys.executable, "-c", SCRIPT, topic.broker.bootstrap, topic.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
