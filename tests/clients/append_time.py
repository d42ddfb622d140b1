#!/usr/bin/env python3
"""Records whose times are those of appending, and records without a key, by confluent-kafka (librdkafka).

  append_time.py write --bootstrap HOST:PORT --topic T [--count N]   makes the topic, writes, and prints what the acks say
  append_time.py read --bootstrap HOST:PORT --topic T --count N      prints the times that a consumer sees
  append_time.py keyless --bootstrap HOST:PORT --topic T             a compacted topic takes a key and refuses none

Prints one line of JSON: `times` by offset. Exit code 0, or 1 with what went wrong on stderr.
"""

import argparse
import json
import sys
import time

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT = 60
# What the producer says, which nobody must see.
LONG_AGO = 1_000_000_000_000


def require(holds, what):
    if not holds:
        sys.exit(what)


def create(options, config):
    admin = AdminClient({"bootstrap.servers": options.bootstrap})
    admin.create_topics([NewTopic(options.topic, 1, 1, config=config)])[options.topic].result(TIMEOUT)


def stamped(message):
    kind, at = message.timestamp()
    require(kind == TIMESTAMP_LOG_APPEND_TIME, f"offset {message.offset()} has a time of kind {kind}")
    return at


def write(options):
    create(options, {"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": options.bootstrap, "enable.idempotence": True, "linger.ms": 2})
    times = {}

    def acked(error, message):
        require(error is None, f"refused: {error}")
        times[message.offset()] = stamped(message)

    begun = int(time.time() * 1000)
    for number in range(options.count):
        producer.produce(options.topic, str(number), timestamp=LONG_AGO + number, on_delivery=acked)
        # Several batches: their times may differ.
        if number % 50 == 49:
            require(producer.flush(TIMEOUT) == 0, "not all was acked in time")
    require(producer.flush(TIMEOUT) == 0, "not all was acked in time")
    ended = int(time.time() * 1000)
    require(all(begun <= at <= ended for at in times.values()), f"times outside of {begun} to {ended}: {times}")
    return times


def read(options):
    consumer = Consumer({"bootstrap.servers": options.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(options.topic, 0, 0)])
    times = {}
    until = time.monotonic() + TIMEOUT
    while len(times) < options.count:
        require(time.monotonic() < until, f"{len(times)} of {options.count} records in {TIMEOUT} s")
        message = consumer.poll(1)
        if message is not None:
            require(message.error() is None, f"{message.error()}")
            times[message.offset()] = stamped(message)
    found = consumer.offsets_for_times([TopicPartition(options.topic, 0, times[options.count - 1])], timeout=TIMEOUT)
    first = min(offset for offset, at in times.items() if at == times[options.count - 1])
    require(found[0].offset == first, f"by time: {found[0].offset} instead of {first}")
    consumer.close()
    return times


def keyless(options):
    create(options, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": options.bootstrap})
    seen = []

    def told(error, message):
        seen.append((message.key(), error and error.code()))

    for key in [b"k", None]:
        producer.produce(options.topic, "v", key, on_delivery=told)
        require(producer.flush(TIMEOUT) == 0, "not all was answered in time")
    expected = [(b"k", None), (None, KafkaError.INVALID_RECORD)]
    require(seen == expected, f"{seen} instead of {expected}")
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operation", choices=["write", "read", "keyless"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    times = {"write": write, "read": read, "keyless": keyless}[options.operation](options)
    print(json.dumps({"times": [at for _, at in sorted(times.items())]}))


if __name__ == "__main__":
    main()
