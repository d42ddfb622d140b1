#!/usr/bin/env python3
"""Produces and consumes the flights with kafka-python. See README.md for the command line."""

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

import flights


def create(options, deadline):
    admin = KafkaAdminClient(bootstrap_servers=options.bootstrap)
    try:
        admin.create_topics([NewTopic(options.topic, options.partitions, 1)])
    finally:
        admin.close()


def await_leaders(options, producer):
    """Waits until every partition answers as a leader (confluent_client.py says why)."""
    places = [TopicPartition(options.topic, partition) for partition in producer.partitions_for(options.topic)]
    consumer = KafkaConsumer(bootstrap_servers=options.bootstrap, group_id=None)
    consumer.end_offsets(places)
    consumer.close()


def produce(options, records, deadline):
    producer = KafkaProducer(
        bootstrap_servers=options.bootstrap,
        acks="all",
        compression_type=None if options.codec == "none" else options.codec,
        enable_idempotence=options.idempotent,
        linger_ms=options.linger_ms,
    )
    if not options.cold:
        await_leaders(options, producer)
    sent = []
    for record in records:
        deadline.check(f"{len(sent)} of {len(records)} records sent")
        sent.append(
            producer.send(
                options.topic,
                value=record.value,
                key=record.key,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
        )
    positions = {}
    for number, future in enumerate(sent):
        try:
            acked = future.get(timeout=deadline.left())
        except kafka.errors.KafkaError as error:
            raise flights.Difference(f"record {number} was refused: {error!r}") from error
        positions[number] = (acked.partition, acked.offset)
    producer.close(timeout=deadline.left())
    return positions


def consume(options, comparison, deadline):
    consumer = KafkaConsumer(bootstrap_servers=options.bootstrap, group_id=None, auto_offset_reset="none")
    partitions = consumer.partitions_for_topic(options.topic)
    if not partitions:
        raise flights.Difference(f"topic {options.topic} has no partitions")
    places = [TopicPartition(options.topic, partition) for partition in sorted(partitions)]
    for place, low in consumer.beginning_offsets(places).items():
        if low != 0:
            raise flights.Difference(f"partition {place.partition} begins at offset {low}")
    ends = {place.partition: end for place, end in consumer.end_offsets(places).items()}
    consumer.assign(places)
    for place in places:
        consumer.seek(place, 0)
    while any(comparison.next_offset.get(partition, 0) < end for partition, end in ends.items()):
        deadline.check(f"read {len(comparison.seen)} records")
        for batch in consumer.poll(timeout_ms=500, max_records=5000).values():
            for message in batch:
                comparison.add(
                    message.partition,
                    message.offset,
                    message.key,
                    message.value,
                    list(message.headers),
                    message.timestamp,
                )
    consumer.close()
    return ends


if __name__ == "__main__":
    flights.run("kafka-python", kafka.__version__, create, produce, consume)
