"""Tables with columns as topics of Kafka's clients: JSON in, rows out, and the other way round."""

import datetime
import decimal
import json
import shutil
import subprocess
import time

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from .kit import require, require_equal, until

COLUMNS = "id BIGINT NOT NULL, customer STRING, amount DECIMAL(12, 2) DEFAULT 0, at TIMESTAMP_LTZ(3), tags ARRAY<STRING>"
PARTITIONS = 2
ROWS = 5_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
FIRST = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def row(number):
    """A row as Arrow gives it."""
    return {
        "id": number,
        "customer": None if number % 5 == 0 else f"Käufer {number} \"x\"\n",
        "amount": decimal.Decimal(number) / 4,
        "at": None if number % 7 == 0 else FIRST + datetime.timedelta(milliseconds=number * 1001),
        "tags": None if number % 3 == 0 else [f"t{tag}" for tag in range(number % 4)],
    }


def written(number):
    """The one form in which it is given as JSON."""
    told = row(number)
    texts = {
        "id": str(number),
        "customer": json.dumps(told["customer"], ensure_ascii=False),
        "amount": f"{told['amount']:.2f}",
        "at": "null" if told["at"] is None else json.dumps(told["at"].strftime("%Y-%m-%dT%H:%M:%S.") + f"{told['at'].microsecond // 1000:03}Z"),
        "tags": json.dumps(told["tags"], separators=(",", ":")),
    }
    return "{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}"


def sent(number):
    """The same as a client may send it: another order, blanks, nulls left out, the instant with an offset."""
    told = row(number)
    fields = {"amount": str(told["amount"]), "id": number}
    if told["at"] is not None:
        fields["at"] = told["at"].astimezone(datetime.timezone(datetime.timedelta(hours=2))).isoformat(timespec="milliseconds")
    fields |= {name: told[name] for name in ["tags", "customer"] if told[name] is not None}
    return json.dumps(fields)


def topics(mink, options):
    require(options.kafka is not None, "give --kafka")
    mink.create("orders", COLUMNS, buckets=PARTITIONS)
    topic = f"{mink.database}.orders"
    ends = {partition: 0 for partition in range(PARTITIONS)}
    stored = {partition: [] for partition in range(PARTITIONS)}
    by_kcat = kcat_writes(options, topic, stored)
    confluent_writes(options, topic, stored)
    pyarrow_writes(mink, stored)
    for partition, numbers in stored.items():
        found = mink.read("orders", bucket=partition).to_pylist()
        require_equal(found, [row(number) for number in numbers], f"rows of partition {partition}")
        ends[partition] = len(numbers)
    before = json_read(options, topic, ends)
    for partition, numbers in stored.items():
        require_equal(before[partition], [written(number) for number in numbers], f"JSON of partition {partition}")
    kcat_reads(options, topic, stored)
    refused_alone(mink, options, topic, ends)
    by_time(options, topic, ends)
    altered(mink, options, topic, ends, before)
    rows = group(options, topic, ends)
    return {"rows": rows, "kcat": by_kcat}


def kcat_writes(options, topic, stored):
    """Lines of JSON, as one types them; how many."""
    if shutil.which("kcat") is None:
        return 0
    numbers = range(100)
    lines = "".join(sent(number) + "\n" for number in numbers)
    command = ["kcat", "-P", "-q", "-b", options.kafka, "-t", topic, "-p", "0", "-X", "acks=all"]
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=options.timeout)
    require_equal((done.returncode, done.stderr.decode()), (0, ""), "kcat that writes")
    stored[0] += numbers
    return len(numbers)


def kcat_reads(options, topic, stored):
    if shutil.which("kcat") is None:
        return
    command = ["kcat", "-C", "-q", "-e", "-b", options.kafka, "-t", topic, "-p", "0", "-o", "beginning", "-f", "%o %K %s\n"]
    done = subprocess.run(command, capture_output=True, timeout=options.timeout)
    require_equal((done.returncode, done.stderr.decode()), (0, ""), "kcat that reads")
    wanted = [f"{offset} -1 {written(number)}" for offset, number in enumerate(stored[0])]
    require_equal(done.stdout.decode().splitlines(), wanted, "what kcat reads")


def confluent_writes(options, topic, stored):
    """Idempotent, each codec its share; offsets follow each other."""
    found = {partition: {} for partition in range(PARTITIONS)}

    def acked(number):
        def told(error, message):
            require(error is None, f"record {number}: {error}")
            found[message.partition()][message.offset()] = number

        return told

    for turn, codec in enumerate(CODECS):
        settings = {"bootstrap.servers": options.kafka, "compression.type": codec, "linger.ms": 5, "enable.idempotence": True}
        producer = Producer(settings)
        for number in range(turn, ROWS, len(CODECS)):
            producer.produce(topic, partition=number % PARTITIONS, value=sent(number), on_delivery=acked(number))
        require_equal(producer.flush(options.timeout), 0, f"records with {codec} that were not acked")
    for partition, numbers in found.items():
        first = len(stored[partition])
        require_equal(sorted(numbers), list(range(first, first + len(numbers))), f"offsets of partition {partition}")
        stored[partition] += [numbers[offset] for offset in sorted(numbers)]


def pyarrow_writes(mink, stored):
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("customer", pa.string()),
            pa.field("amount", pa.decimal128(12, 2)),
            pa.field("at", pa.timestamp("ms", "UTC")),
            pa.field("tags", pa.list_(pa.string())),
        ]
    )
    for partition in range(PARTITIONS):
        numbers = range(10_000 * (partition + 1), 10_000 * (partition + 1) + 3_000)
        batch = pa.RecordBatch.from_pylist([row(number) for number in numbers], schema=schema)
        mink.append("orders", batch, bucket=partition)
        stored[partition] += numbers


def consumer(options, group="unused", **more):
    settings = {"bootstrap.servers": options.kafka, "group.id": group, "auto.offset.reset": "earliest", "check.crcs": True}
    return Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": group == "unused", **more})


def json_read(options, topic, ends):
    """By partition: the values, whose offsets are dense from 0 to the end."""
    reader = consumer(options)
    reader.assign([TopicPartition(topic, partition, 0) for partition in ends])
    found, left = {partition: [] for partition in ends}, set(ends)
    deadline = time.monotonic() + options.timeout
    while left:
        require(time.monotonic() < deadline, f"read {[len(values) for values in found.values()]} of {ends}")
        for message in reader.consume(5_000, timeout=0.5):
            if message.error() is not None:
                require_equal(message.error().code(), KafkaError._PARTITION_EOF, "a fetch")
                left.discard(message.partition())
                continue
            values = found[message.partition()]
            require_equal(message.offset(), len(values), "offset of a record")
            values.append(message.value().decode())
    reader.close()
    require_equal({partition: len(values) for partition, values in found.items()}, ends, "records")
    return found


def refused_alone(mink, options, topic, ends):
    """A value that does not fit refuses its record, and nothing of its batch is stored."""
    told = {}
    producer = Producer({"bootstrap.servers": options.kafka, "linger.ms": 200, "batch.num.messages": 3, "enable.idempotence": True})
    for place, value in enumerate(['{"id": 1}', '{"id": 2, "amount": "much"}', '{"id": "three"}']):
        producer.produce(topic, partition=0, value=value, on_delivery=lambda error, _, place=place: told.update({place: error}))
    require_equal(producer.flush(options.timeout), 0, "records without an answer")
    codes = [told[place] and told[place].code() for place in range(3)]
    # Librdkafka has no text of the broker's for a record, and tells the others apart only if two at least are named.
    require_equal(codes, [KafkaError._INVALID_DIFFERENT_RECORD, KafkaError.INVALID_RECORD, KafkaError.INVALID_RECORD], "what does not fit")
    named_field(options, topic)
    require_equal(mink.read("orders", bucket=0).num_rows, ends[0], "rows after a refusal")
    for place, value in enumerate([None, "", "[1]", '{"id": 1, "id": 1}', '{"no": 1}']):
        producer.produce(topic, partition=1, value=value, on_delivery=lambda error, _, place=place: told.update({place: error}))
        require_equal(producer.flush(options.timeout), 0, "records without an answer")
        require(told[place] is not None and told[place].code() == KafkaError.INVALID_RECORD, f"{value!r}: {told[place]}")
    producer.produce(topic, partition=0, key="any", value='{"id": 1}', on_delivery=lambda error, _: told.update({"key": error}))
    require_equal(producer.flush(options.timeout), 0, "records without an answer")
    require_equal(told["key"].code(), KafkaError.INVALID_RECORD, "a key for a table without key columns")
    require_equal(mink.read("orders").num_rows, sum(ends.values()), "rows after refusals")


def named_field(options, topic):
    """A client that shows what the broker says of a record."""
    from kafka import KafkaProducer
    from kafka.errors import InvalidRecordError, KafkaError as AnyError

    producer = KafkaProducer(bootstrap_servers=options.kafka, linger_ms=200)
    values = [b'{"id": 1}', b'{"id": 2, "amount": "much"}', b'{"id": 3}']
    futures = [producer.send(topic, value, partition=0) for value in values]
    errors = []
    for future in futures:
        try:
            errors.append(future.get(options.timeout))
        except AnyError as error:
            errors.append(error)
    require([isinstance(error, InvalidRecordError) for error in errors] == [False, True, False], f"what does not fit: {errors}")
    require("amount: found the text `much`" in str(errors[1]), f"the field of what does not fit: {errors[1]}")
    require(all(isinstance(error, AnyError) for error in errors), f"the others of its batch: {errors}")
    producer.close()


def by_time(options, topic, ends):
    """Rows have the time at which they were appended."""
    reader = consumer(options)
    asked = [TopicPartition(topic, 0, 0)]
    require_equal(reader.offsets_for_times(asked, timeout=options.timeout)[0].offset, 0, "the first record from 1970 on")
    later = [TopicPartition(topic, 0, int(time.time() * 1000) + 3_600_000)]
    require_equal(reader.offsets_for_times(later, timeout=options.timeout)[0].offset, -1, "a record an hour from now")
    require_equal(reader.get_watermark_offsets(TopicPartition(topic, 1)), (0, ends[1]), "ends")
    reader.close()


def altered(mink, options, topic, ends, before):
    """Rows that were written before an ALTER have null or the default in new columns, and lack those that were dropped."""
    changes = "ADD COLUMN note STRING, ADD COLUMN count INT DEFAULT 42, DROP COLUMN tags, RENAME COLUMN customer TO who"
    mink.sql(f"ALTER TABLE {mink.name('orders')} {changes}")
    producer = Producer({"bootstrap.servers": options.kafka})
    told = []
    new = '{"id":1,"who":"new","amount":0.00,"at":null,"note":"n","count":7}'
    producer.produce(topic, partition=0, value=new, on_delivery=lambda error, _: told.append(error))
    require_equal((producer.flush(options.timeout), told), (0, [None]), "a row of the new schema")
    ends[0] += 1
    found = json_read(options, topic, ends)
    require_equal(found[0].pop(), new, "the row of the new schema")

    def as_now(text):
        fields = json.loads(text, parse_float=decimal.Decimal)
        fields["who"] = fields.pop("customer")
        del fields["tags"]
        return {**fields, "note": None, "count": 42}

    for partition in ends:
        rows = [json.loads(text, parse_float=decimal.Decimal) for text in found[partition]]
        require_equal(rows, [as_now(text) for text in before[partition]], f"older rows of partition {partition}")


def group(options, topic, ends):
    """Two members read every record once; who comes after them has nothing left."""
    name = f"{topic}.readers"
    members = [consumer(options, name) for _ in range(2)]
    seen = set()

    def read():
        for member in members:
            for message in member.consume(2_000, timeout=0.1):
                require(message.error() is None, f"a member's fetch: {message.error()}")
                seen.add((message.partition(), message.offset()))
        assigned = [member.position(member.assignment()) for member in members if member.assignment()]
        positions = {place.partition: place.offset for places in assigned for place in places}
        return len(seen) == sum(ends.values()) and positions == ends

    for member in members:
        member.subscribe([topic])
    until("the group has read all", options.timeout, read)
    for member in members:
        if member.assignment():
            places = member.position(member.assignment())
            member.commit(offsets=[place for place in places if place.offset >= 0], asynchronous=False)
        member.close()
    last = consumer(options, name)
    committed = last.committed([TopicPartition(topic, partition) for partition in ends], timeout=options.timeout)
    require_equal({place.partition: place.offset for place in committed}, ends, "the group's commits")
    last.close()
    return len(seen)


def topics_table(mink, options):
    """Makes the table alone, for who writes to it by other means."""
    mink.create("orders", COLUMNS)
    return {"topic": f"{mink.database}.orders"}
