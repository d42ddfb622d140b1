#!/usr/bin/env python3
"""Produces and consumes the flights with confluent-kafka (librdkafka). See README.md for the command line."""

import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import flights


def create(options, deadline):
    admin = AdminClient({"bootstrap.servers": options.bootstrap})
    made = admin.create_topics([NewTopic(options.topic, options.partitions, 1)], request_timeout=deadline.left())
    made[options.topic].result()


def await_leaders(options, deadline):
    """Waits until every partition answers as a leader. Kafka itself refuses the first requests to a young topic, and a producer
    that is not idempotent and has several requests in flight then stores its records in another order."""
    consumer = Consumer({"bootstrap.servers": options.bootstrap, "group.id": "unused"})
    producer = Producer({"bootstrap.servers": options.bootstrap})
    last = None
    while True:
        deadline.check(f"waiting for the leaders of {options.topic}: {last}")
        try:
            # A producer's metadata request makes the topic, if need be.
            topic = producer.list_topics(options.topic, timeout=deadline.left()).topics[options.topic]
            if topic.error is None and topic.partitions:
                for partition in topic.partitions:
                    consumer.get_watermark_offsets(TopicPartition(options.topic, partition), timeout=1)
                break
        except KafkaException as error:
            last = error
        time.sleep(0.05)
    consumer.close()


def produce(options, records, deadline):
    if not options.cold:
        await_leaders(options, deadline)
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap,
            "acks": "all",
            "compression.type": options.codec,
            "enable.idempotence": options.idempotent,
            "linger.ms": options.linger_ms,
            "queue.buffering.max.messages": len(records) + 1,
            "topic.metadata.propagation.max.ms": 30000,
        }
    )
    positions = {}

    def report(number):
        def acked(error, message):
            if error is not None:
                raise flights.Difference(f"record {number} was refused: {error}")
            positions[number] = (message.partition(), message.offset())

        return acked

    for number, record in enumerate(records):
        producer.produce(
            options.topic,
            value=record.value,
            key=record.key,
            headers=record.headers,
            timestamp=record.timestamp_ms,
            on_delivery=report(number),
        )
        producer.poll(0)
    while producer.flush(0.5):
        deadline.check(f"{len(positions)} of {len(records)} records acked")
    return positions


def consume(options, comparison, deadline):
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            # librdkafka asks for a group name even when nobody subscribes.
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    topic = consumer.list_topics(options.topic, timeout=deadline.left()).topics[options.topic]
    ends = {}
    for partition in topic.partitions:
        place = TopicPartition(options.topic, partition)
        low, ends[partition] = consumer.get_watermark_offsets(place, timeout=deadline.left())
        if low != 0:
            raise flights.Difference(f"partition {partition} begins at offset {low}")
    consumer.assign([TopicPartition(options.topic, partition, 0) for partition in ends])
    open_partitions = set(ends)
    while open_partitions:
        deadline.check(f"read {len(comparison.seen)} records")
        for message in consumer.consume(5000, timeout=0.5):
            error = message.error()
            if error is None:
                comparison.add(
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.headers() or [],
                    message.timestamp()[1],
                )
            elif error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(message.partition())
            else:
                raise flights.Difference(f"partition {message.partition()}: {error}")
    consumer.close()
    return ends


if __name__ == "__main__":
    version = f"{confluent_kafka.__version__} librdkafka {confluent_kafka.libversion()[0]}"
    flights.run("confluent-kafka", version, create, produce, consume)
