"""Reads a topic under both of its names: ``python consumer.py CLIENT_FILE GROUP TOPIC --alias east --count 10``.

On the cluster where records were written the topic is ``orders``; a mirror with the default policy calls its copy
``east.orders``. A consumer that subscribes to both reads on wherever it runs. Commits what it has handled, and once more
before it leaves: that offset is what a failover translates.
"""

from __future__ import annotations

import argparse
import sys
import time

from client_settings import read_client_file
from confluent_kafka import Consumer, KafkaException

POLL_S = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client_file", help="how to reach the cluster, e.g. client_scram.properties")
    parser.add_argument("group")
    parser.add_argument("topic")
    parser.add_argument("--alias", action="append", default=[], help="a cluster that the topic may be mirrored from")
    parser.add_argument("--count", type=int, help="leave after so many records; else when interrupted")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="leave after so long without a record"
    )
    arguments = parser.parse_args()

    settings = {**read_client_file(arguments.client_file), "group.id": arguments.group}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.subscribe([arguments.topic, *(f"{alias}.{arguments.topic}" for alias in arguments.alias)])
    read, heard_at = 0, time.monotonic()
    try:
        while arguments.count is None or read < arguments.count:
            message = consumer.poll(POLL_S)
            if message is None or message.error() is not None:
                if message is not None and not message.error().retriable() and not _is_not_there_yet(message):
                    raise KafkaException(message.error())
                if time.monotonic() - heard_at >= arguments.patience:
                    break
                continue
            heard_at = time.monotonic()
            print(f"{message.topic()}-{message.partition()} {message.offset()} {message.value().decode()}", flush=True)
            read += 1
            consumer.commit(message, asynchronous=True)
    except KeyboardInterrupt:
        pass
    finally:
        if read:
            consumer.commit(asynchronous=False)
        consumer.close()
    return 0 if arguments.count in (None, read) else 1


def _is_not_there_yet(message: object) -> bool:
    """One of the two names does not exist on this cluster: that is as it should be."""
    return bool(message.error().name() == "UNKNOWN_TOPIC_OR_PART")  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
