"""Writes numbered records to a topic: ``python producer.py CLIENT_FILE TOPIC COUNT``.

Idempotent, so that a retry writes nothing twice. Ends when every record is acknowledged: only then may a failover begin.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from client_settings import read_client_file
from confluent_kafka import KafkaError, Message, Producer

FLUSH_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client_file", help="how to reach the cluster, e.g. client_scram.properties")
    parser.add_argument("topic")
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first record's number")
    arguments = parser.parse_args()

    refused: list[KafkaError] = []

    def settled(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer({**read_client_file(arguments.client_file), "enable.idempotence": True})
    for number in range(arguments.first, arguments.first + arguments.count):
        order = {"number": number, "made": time.time()}
        producer.produce(arguments.topic, json.dumps(order), key=f"customer-{number % 7}", on_delivery=settled)
        producer.poll(0)
    left = producer.flush(FLUSH_S)
    print(f"{arguments.count - left - len(refused)} records are on {arguments.topic}")
    for error in refused[:1]:
        print(f"{len(refused)} were refused, the first: {error}", file=sys.stderr)
    return 1 if left or refused else 0


if __name__ == "__main__":
    sys.exit(main())
