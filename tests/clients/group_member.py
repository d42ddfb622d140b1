#!/usr/bin/env python3
"""A consumer that is a member of a group, until it is told to go (SIGTERM): over any number of crashes of the server and rebalances.

  group_member.py --client confluent|kafka_python|kcat --bootstrap HOST:PORT --topic T --group G --log FILE
                  [--session-ms MS] [--instance ID] [--cooperative]

Appends a line `PARTITION OFFSET VALUE` to the log for each record before its offset may be committed, and commits as it goes (at least once:
whoever dies between log and commit leaves records that another reads again). A group that has committed nothing begins at the earliest
offset. On SIGTERM it commits, leaves the group and exits with 0.
"""

import argparse
import os
import signal

COMMIT_MS = 100
POLL_MS = 200


class Stop:
    """Whether it has been told to go."""

    def __init__(self):
        self.told = False
        signal.signal(signal.SIGTERM, self)

    def __call__(self, *_):
        self.told = True


def confluent(options, log, stop):
    from confluent_kafka import Consumer, KafkaException

    settings = {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "client.id": "member",
        "session.timeout.ms": options.session_ms,
        "heartbeat.interval.ms": options.session_ms // 6,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
        "enable.auto.offset.store": False,
        "reconnect.backoff.max.ms": 500,
    }
    if options.instance:
        settings["group.instance.id"] = options.instance
    if options.cooperative:
        settings["partition.assignment.strategy"] = "cooperative-sticky"
    consumer = Consumer(settings)
    consumer.subscribe([options.topic])
    while not stop.told:
        message = consumer.poll(POLL_MS / 1000)
        if message is None:
            continue
        if message.error() is not None:
            # The client gets over what passes by itself.
            if message.error().fatal():
                raise KafkaException(message.error())
            print("told", message.error(), flush=True)
            continue
        log(message.partition(), message.offset(), message.value())
        try:
            consumer.store_offsets(message)
        except KafkaException as error:
            # The partition was taken away in between: the next owner reads it again.
            print("not stored", error, flush=True)
    consumer.close()


def kafka_python(options, log, stop):
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id="member",
        group_instance_id=options.instance,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=options.session_ms // 6,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        reconnect_backoff_max_ms=500,
    )
    # A leader that joins before it knows the topic joins again at once, and 3.0.12 may then turn in a loop without a heartbeat.
    consumer.partitions_for_topic(options.topic)
    while not stop.told:
        batches = consumer.poll(timeout_ms=POLL_MS)
        for batch in batches.values():
            for message in batch:
                log(message.partition, message.offset, message.value)
        if batches:
            try:
                consumer.commit()
            except KafkaError as error:
                # A rebalance came first, or the server is away: what was not committed is read again.
                print("not committed", repr(error), flush=True)
    consumer.close(autocommit=False)


def kcat(options, path):
    settings = [
        f"session.timeout.ms={options.session_ms}",
        f"heartbeat.interval.ms={options.session_ms // 6}",
        "auto.offset.reset=earliest",
        f"auto.commit.interval.ms={COMMIT_MS}",
        "client.id=member",
        "reconnect.backoff.max.ms=500",
    ]
    if options.instance:
        settings.append(f"group.instance.id={options.instance}")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    line = ["kcat", "-b", options.bootstrap, "-u", "-E", "-f", "%p %o %s\\n"]
    for setting in settings:
        line += ["-X", setting]
    os.execvp("kcat", line + ["-G", options.group, options.topic])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", required=True, choices=["confluent", "kafka_python", "kcat"])
    for name in ["--bootstrap", "--topic", "--group", "--log"]:
        parser.add_argument(name, required=True)
    parser.add_argument("--session-ms", type=int, default=10_000)
    parser.add_argument("--instance")
    parser.add_argument("--cooperative", action="store_true", help="of confluent: partitions move one by one")
    options = parser.parse_args()
    if options.client == "kcat":
        return kcat(options, options.log)
    with open(options.log, "ab", buffering=0) as file:

        def log(partition, offset, value):
            file.write(b"%d %d %s\n" % (partition, offset, value))

        {"confluent": confluent, "kafka_python": kafka_python}[options.client](options, log, Stop())


if __name__ == "__main__":
    main()
