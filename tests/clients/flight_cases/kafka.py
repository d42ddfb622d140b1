"""A topic's records, written over the Kafka protocol, as Arrow: key, value, headers, timestamp."""

import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .kit import close, comparison, mink as messages, refused, require, require_equal

RECORDS = 2_000
PARTITIONS = 3
HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
SCHEMA = {"key": pa.binary(), "value": pa.binary(), "headers": pa.list_(pa.field("element", HEADER)), "timestamp": pa.timestamp("ms", "UTC")}
# Codecs of the batches, one after the other.
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
FIRST_MS = 1_700_000_000_000


def record(number):
    """Every kind that a record can be: with and without key, value and headers."""
    return {
        "key": None if number % 3 == 0 else f"key {number}".encode(),
        "value": None if number % 5 == 0 else b"" if number % 7 == 0 else bytes([number % 256]) * (number % 50),
        "headers": [("größe", b"\xff"), ("größe", None), ("", b"")] if number % 2 else [],
        "timestamp": FIRST_MS + number,
    }


def kafka(mink, options):
    require(options.kafka is not None, "give --kafka")
    topic = f"{mink.database}.records"
    admin = AdminClient({"bootstrap.servers": options.kafka})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(options.timeout)
    by_partition = produce(options, topic)
    mink.database = "kafka"
    total = 0
    for partition, wanted in by_partition.items():
        total += len(wanted)
        same(mink.read(topic, bucket=partition), wanted, f"partition {partition}")
    require_equal(total, RECORDS, "records of all partitions")
    require_equal(mink.read(topic).num_rows, RECORDS, "rows of the topic")
    parts(mink, topic, by_partition[0])
    tail(mink, topic, len(by_partition[1]), options)
    # Rows are not written to it, nor are its columns changed.
    row = pa.record_batch([pa.array([b"x"])], names=["value"])
    refused(pa.ArrowException, "rows for a topic", lambda: mink.append(topic, row), "kafka format")
    refused(pa.ArrowException, "ALTER of a topic's columns", lambda: mink.sql(f"ALTER TABLE {mink.name(topic)} ADD COLUMN x INT"), "kafka format")
    require_equal(mink.describe(topic).schema, 0, "schema of a topic")
    return {"records": RECORDS, "partitions": PARTITIONS}


def produce(options, topic):
    """Writes the records, each codec its share; by partition: the numbers, where their offsets say."""
    found = {partition: {} for partition in range(PARTITIONS)}

    def acked(number):
        def told(error, message):
            require(error is None, f"record {number}: {error}")
            found[message.partition()][message.offset()] = number

        return told

    for turn, codec in enumerate(CODECS):
        producer = Producer({"bootstrap.servers": options.kafka, "compression.type": codec, "linger.ms": 5, "enable.idempotence": True})
        for number in range(turn, RECORDS, len(CODECS)):
            told = record(number)
            producer.produce(
                topic,
                partition=number % PARTITIONS,
                key=told["key"],
                value=told["value"],
                headers=told["headers"],
                timestamp=told["timestamp"],
                on_delivery=acked(number),
            )
        require_equal(producer.flush(options.timeout), 0, f"records with {codec} that were not acked")
    for partition, numbers in found.items():
        require_equal(sorted(numbers), list(range(len(numbers))), f"offsets of partition {partition}")
    return {partition: [numbers[offset] for offset in range(len(numbers))] for partition, numbers in found.items()}


def same(found, numbers, what):
    require_equal({field.name: field.type for field in found.schema}, SCHEMA, f"{what}: columns")
    columns = {name: found[name].to_pylist() for name in ["key", "value"]}
    columns["timestamp"] = found["timestamp"].cast(pa.int64()).to_pylist()
    columns["headers"] = [[(header["key"], header["value"]) for header in headers] for headers in found["headers"].to_pylist()]
    for name, values in columns.items():
        require_equal(values, [record(number)[name] for number in numbers], f"{what}: {name}")


def parts(mink, topic, numbers):
    """Columns, places, filters and limits, as for a table with columns."""
    middle = {"from": messages.Position(offset=7), "until": 450}
    found = mink.read(topic, bucket=0, columns=["value", "key"], **middle)
    require_equal(found.schema.names, ["value", "key"], "columns of a part")
    require_equal(found["key"].to_pylist(), [record(number)["key"] for number in numbers[7:450]], "keys of a part")
    met = [comparison("timestamp", "GREATER_OR_EQUAL", "2023-11-14 22:13:21+00:00"), comparison("key", "IS_NOT_NULL")]
    found = mink.read(topic, bucket=0, filter=met, columns=["timestamp"])["timestamp"].cast(pa.int64()).to_pylist()
    wanted = [FIRST_MS + number for number in numbers if number >= 1_000 and number % 3]
    require_equal(found, wanted, "times by a filter")
    require_equal(mink.read(topic, bucket=0, limit=10).num_rows, 10, "rows with a limit")


def tail(mink, topic, end, options):
    """A record that is produced is seen by who follows."""
    scan = mink.scan(topic, bucket=1, **{"from": messages.Position(offset=end)}, columns=["value"])
    writer, reader = mink.follow(scan, client=mink.another())
    producer = Producer({"bootstrap.servers": options.kafka})
    for number in range(50):
        producer.produce(topic, partition=1, value=f"new {number}".encode())
    require_equal(producer.flush(options.timeout), 0, "records that were not acked")
    found = []
    while len(found) < 50:
        found += reader.read_chunk().data["value"].to_pylist()
    require_equal(found, [f"new {number}".encode() for number in range(50)], "records of the tail")
    reader.cancel()
    close(writer)
