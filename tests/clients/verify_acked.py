#!/usr/bin/env python3
"""Reads a topic that acked_producer.py wrote from its earliest offset to its end, and holds it against the log of acks.

  verify_acked.py --bootstrap HOST:PORT --topic T --log FILE [--log FILE ...] [--name NAME ...] [--idempotent] [--running] [--timestamp-base MS] [--timeout SECONDS]

Checked, for every partition: offsets begin at 0 and are dense; each record's value, key, headers and timestamp are those of its id;
each acked id is at its acked offset; no offset was acked for two ids. With --idempotent also: no id is stored twice, and the ids of one
producer ascend. One --name per --log, in the same order (default: p). Prints a summary; exit code 1 with the first difference.
Ids that were never acked may be there or not: nobody was told. With --running the producers may go on meanwhile: what they were told
before the start is checked, up to the ends at the start.
"""

import argparse
import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

import flights
from acked_producer import timestamp_of, value_of


class Logs:
    """What the producers were told."""

    def __init__(self, paths, names):
        self.acked = {}
        self.refused = 0
        for path, name in zip(paths, names):
            for line in open(path):
                # The last line of a killed producer may be cut: that ack was not written down, so it is not claimed.
                if not line.endswith("\n"):
                    break
                match line.split():
                    case ["ack", partition, offset, number]:
                        place, who = (int(partition), int(offset)), (name, int(number))
                        if self.acked.setdefault(place, who) != who:
                            raise flights.Difference(f"partition {partition} offset {offset}: acked for {self.acked[place]} and {who}")
                    case ["refused", *_]:
                        self.refused += 1
                    case _:
                        sys.exit(f"verify_acked: {path}: not a line of acked_producer: {line!r}")


class Verification:
    def __init__(self, logs, names, options):
        self.logs, self.names = logs, set(names)
        self.idempotent, self.timestamp_base = options.idempotent, options.timestamp_base
        self.records = flights.records()
        self.next_offset = {}
        self.places = {}
        self.last = {}
        self.duplicates = 0

    def add(self, message):
        partition, offset = message.partition(), message.offset()
        place = f"partition {partition} offset {offset}"
        wanted = self.next_offset.get(partition, 0)
        if offset != wanted:
            raise flights.Difference(f"{place}: offset {wanted} was expected")
        self.next_offset[partition] = wanted + 1
        who = self.identity(place, message)
        acked = self.logs.acked.get((partition, offset))
        if acked is not None and acked != who:
            raise flights.Difference(f"{place}: acked for {acked}, holds {who}")
        if who in self.places:
            self.duplicates += 1
            if self.idempotent:
                raise flights.Difference(f"{place}: {who} again, it is at {self.places[who]} already")
        self.places[who] = (partition, offset)
        if self.idempotent and who[1] < self.last.get((partition, who[0]), -1):
            raise flights.Difference(f"{place}: {who} after id {self.last[partition, who[0]]}")
        self.last[partition, who[0]] = who[1]

    def identity(self, place, message):
        """(producer, id) of a record, once all of it is what that producer sent."""
        parts = message.value().split(b" ", 2)
        if len(parts) != 3 or parts[0].decode(errors="replace") not in self.names or not parts[1].isdigit():
            raise flights.Difference(f"{place}: not a record of these producers: {message.value()!r:.300}")
        name, number = parts[0].decode(), int(parts[1])
        record = self.records[number % len(self.records)]
        same = flights.Comparison.same
        same(place, number, "value", message.value(), value_of(name, number, self.records))
        same(place, number, "key", message.key(), record.key)
        same(place, number, "headers", message.headers() or [], record.headers)
        same(place, number, "timestamp", message.timestamp()[1], timestamp_of(self.timestamp_base, number, record))
        return name, number

    def finish(self, ends):
        for partition, end in sorted(ends.items()):
            read = self.next_offset.get(partition, 0)
            if read != end:
                raise flights.Difference(f"partition {partition}: read up to offset {read}, the end is {end}")
        # Whatever lies below the read end was compared in `add`; above it an acked record is lost.
        for (partition, offset), who in sorted(self.logs.acked.items()):
            if offset >= self.next_offset.get(partition, 0):
                raise flights.Difference(f"partition {partition} offset {offset}: acked for {who}, lost: the end is {ends.get(partition)}")


def read(options, verification):
    deadline = flights.Deadline(options.timeout)
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    topic = consumer.list_topics(options.topic, timeout=deadline.left()).topics[options.topic]
    if topic.error is not None:
        raise flights.Difference(f"topic {options.topic}: {topic.error}")
    ends = {}
    for partition in topic.partitions:
        low, ends[partition] = consumer.get_watermark_offsets(TopicPartition(options.topic, partition), timeout=deadline.left())
        if low != 0:
            raise flights.Difference(f"partition {partition} begins at offset {low}")
    consumer.assign([TopicPartition(options.topic, partition, 0) for partition in ends])
    unread = set(ends)
    while unread:
        deadline.check(f"read {sum(verification.next_offset.values())} of {sum(ends.values())} records")
        for message in consumer.consume(5000, timeout=0.5):
            error = message.error()
            partition = message.partition()
            if error is None:
                if not options.running or message.offset() < ends[partition]:
                    verification.add(message)
                if options.running and message.offset() + 1 >= ends[partition]:
                    unread.discard(partition)
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(partition)
            else:
                raise flights.Difference(f"partition {partition}: {error}")
    consumer.close()
    return ends


def main():
    parser = argparse.ArgumentParser(prog="verify_acked")
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--log", required=True, action="append")
    parser.add_argument("--name", action="append")
    parser.add_argument("--idempotent", action="store_true")
    parser.add_argument("--running", action="store_true", help="the producers may go on meanwhile")
    parser.add_argument("--timestamp-base", type=int, metavar="MS", help="as the producers had it")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS")
    options = parser.parse_args()
    names = options.name or ["p"]
    if len(names) != len(options.log):
        parser.error("give one --name per --log")
    begun = time.monotonic()
    try:
        logs = Logs(options.log, names)
        verification = Verification(logs, names, options)
        ends = read(options, verification)
        verification.finish(ends)
    except flights.Difference as difference:
        sys.exit(f"verify_acked {options.topic}: {difference}")
    stored = sum(ends.values())
    summary = {"topic": options.topic, "partitions": len(ends), "stored": stored, "acked": len(logs.acked)}
    summary |= {"refused": logs.refused, "duplicates": verification.duplicates}
    summary |= {"not_acked_but_stored": stored - len(logs.acked) - verification.duplicates}
    summary["seconds"] = round(time.monotonic() - begun, 3)
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
