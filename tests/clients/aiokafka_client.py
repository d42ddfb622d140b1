#!/usr/bin/env python3
"""Produces and consumes the flights with aiokafka. See README.md for the command line."""

import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import flights

# Sends awaiting their ack at a time: aiokafka's own queue has no bound.
SENDS_IN_FLIGHT = 20_000


async def create_async(options):
    admin = AIOKafkaAdminClient(bootstrap_servers=options.bootstrap)
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(options.topic, options.partitions, 1)])
        for _, code, *message in answer.topic_errors:
            if code:
                raise flights.Difference(f"topic {options.topic} was refused: error {code} {message}")
    finally:
        await admin.close()


async def produce_async(options, records, deadline):
    producer = AIOKafkaProducer(
        bootstrap_servers=options.bootstrap,
        acks="all",
        compression_type=None if options.codec == "none" else options.codec,
        enable_idempotence=options.idempotent,
        linger_ms=options.linger_ms,
    )
    await producer.start()
    positions = {}
    try:
        for begin in range(0, len(records), SENDS_IN_FLIGHT):
            sent = [
                await producer.send(
                    options.topic,
                    value=record.value,
                    key=record.key,
                    headers=record.headers,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records[begin : begin + SENDS_IN_FLIGHT]
            ]
            for number, future in enumerate(sent, begin):
                try:
                    acked = await asyncio.wait_for(future, deadline.left())
                except (aiokafka.errors.KafkaError, TimeoutError) as error:
                    raise flights.Difference(f"record {number} was not acked: {error!r}") from error
                positions[number] = (acked.partition, acked.offset)
    finally:
        await producer.stop()
    return positions


async def consume_async(options, comparison, deadline):
    consumer = AIOKafkaConsumer(bootstrap_servers=options.bootstrap, group_id=None, auto_offset_reset="none")
    await consumer.start()
    try:
        # The topic has to be in the client's metadata before its partitions can be assigned.
        metadata = await consumer._client.fetch_all_metadata()
        partitions = metadata.partitions_for_topic(options.topic)
        if not partitions:
            raise flights.Difference(f"topic {options.topic} has no partitions")
        places = [TopicPartition(options.topic, partition) for partition in sorted(partitions)]
        consumer.assign(places)
        for place, low in (await consumer.beginning_offsets(places)).items():
            if low != 0:
                raise flights.Difference(f"partition {place.partition} begins at offset {low}")
        ends = {place.partition: end for place, end in (await consumer.end_offsets(places)).items()}
        for place in places:
            consumer.seek(place, 0)
        while any(comparison.next_offset.get(partition, 0) < end for partition, end in ends.items()):
            deadline.check(f"read {len(comparison.seen)} records")
            for batch in (await consumer.getmany(timeout_ms=500, max_records=5000)).values():
                for message in batch:
                    comparison.add(
                        message.partition,
                        message.offset,
                        message.key,
                        message.value,
                        list(message.headers),
                        message.timestamp,
                    )
        return ends
    finally:
        await consumer.stop()


def create(options, deadline):
    asyncio.run(asyncio.wait_for(create_async(options), deadline.left()))


def produce(options, records, deadline):
    return asyncio.run(produce_async(options, records, deadline))


def consume(options, comparison, deadline):
    return asyncio.run(consume_async(options, comparison, deadline))


if __name__ == "__main__":
    flights.run("aiokafka", aiokafka.__version__, create, produce, consume)
