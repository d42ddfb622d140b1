"""Messages of Arrow whose bytes lie: order, metadata, bodies, lengths, dictionaries, what they inflate to."""

import threading

import grpc
import pyarrow as pa

from . import raw
from .hostile_kit import BATCH, INVALID, OK, SCHEMA, TYPED
from .kit import require
from .raw import Raw, batch_data, flight, schema_data

def order_of_messages(tried):
    """Messages out of their order, and calls that say nothing."""
    database = tried.mink.database
    sound, batch = schema_data(SCHEMA, raw.path(database, "target")), batch_data(BATCH)
    tried.call("no message", "DoPut", allowed={INVALID})
    tried.call("no descriptor", "DoPut", schema_data(SCHEMA), allowed={INVALID})
    tried.call("no schema", "DoPut", flight.FlightData(flight_descriptor=raw.path(database, "target")), allowed={INVALID})
    first = flight.FlightData(flight_descriptor=raw.path(database, "target"), data_header=batch.data_header, data_body=batch.data_body)
    tried.call("a batch for a schema", "DoPut", first, allowed={INVALID})
    tried.call("a schema alone", "DoPut", sound, allowed={OK})
    other = schema_data(pa.schema([("n", pa.string())]))
    tried.call("another schema in the middle", "DoPut", sound, batch, other, batch, allowed=TYPED | {OK})
    for metadata in [b"\xff" * 20, b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"x" * 100_000]:
        told = flight.FlightData(data_header=batch.data_header, data_body=batch.data_body, app_metadata=metadata)
        tried.call(f"app_metadata {metadata!r:.50}", "DoPut", sound, told, allowed={INVALID})
    # A batch of a table that is dropped while the call is open.
    tried.mink.create("gone", "n BIGINT")
    tried.mink.append("gone", pa.record_batch([pa.array([1])], names=["n"]))

    def sent():
        schema = pa.schema([("n", pa.int64())])
        yield schema_data(schema, raw.path(database, "gone")).SerializeToString()
        tried.mink.sql(f"DROP TABLE {tried.mink.name('gone')}")
        yield batch_data(pa.record_batch([pa.array([2])], schema=schema)).SerializeToString()

    stub = tried.raw.channel.stream_stream(raw.SERVICE + "DoPut")
    try:
        list(stub(sent(), timeout=tried.options.timeout))
        require(False, "a batch for a table that is gone is acked")
    except grpc.RpcError as error:
        require(error.code() in TYPED | {grpc.StatusCode.UNAVAILABLE}, f"a batch for a table that is gone: {error.code()}: {error.details()}")


def flipped_bytes(tried):
    """Each byte of the metadata of a schema and of a batch, changed in two ways: what is taken is sound, the rest is refused."""
    first = schema_data(SCHEMA, raw.path(tried.mink.database, "target"))
    taken = 0
    for compression in [None, "zstd"]:
        batch = batch_data(BATCH, compression)
        for at in range(len(batch.data_header)):
            for change in [0xFF, 1 << tried.random.randrange(8)]:
                header = bytearray(batch.data_header)
                header[at] ^= change
                changed = flight.FlightData(data_header=bytes(header), data_body=batch.data_body)
                code, _, _ = tried.put(f"byte {at} of a batch's metadata changed by {change}", changed, allowed=TYPED | {OK})
                taken += code == OK
    batch = batch_data(BATCH)
    for at in range(len(first.data_header)):
        header = bytearray(first.data_header)
        header[at] ^= 1 << tried.random.randrange(8)
        changed = flight.FlightData(flight_descriptor=first.flight_descriptor, data_header=bytes(header))
        tried.call(f"byte {at} of the schema changed", "DoPut", changed, batch, allowed=TYPED | {OK})
    for length in range(0, len(batch.data_header), 7):
        cut = flight.FlightData(data_header=batch.data_header[:length], data_body=batch.data_body)
        tried.put(f"metadata of {length} bytes", cut, allowed=TYPED | {OK})


def flipped_bodies(tried):
    """Bytes of the body: offsets and lengths of compressed buffers among them."""
    for table in ["target", "target_lz4"]:
        for compression in [None, "lz4", "zstd"]:
            batch = batch_data(BATCH, compression)
            for at in range(len(batch.data_body)):
                body = bytearray(batch.data_body)
                body[at] ^= tried.random.choice([0xFF, 0x80, 1])
                changed = flight.FlightData(data_header=batch.data_header, data_body=bytes(body))
                tried.put(f"byte {at} of a body ({compression}) changed", changed, table=table, allowed=TYPED | {OK})
            for length in range(0, len(batch.data_body), 5):
                cut = flight.FlightData(data_header=batch.data_header, data_body=batch.data_body[:length])
                tried.put(f"a body of {length} bytes of {len(batch.data_body)}", cut, table=table, allowed=TYPED)


def replaced(header, old, new):
    """The metadata with a number of 8 bytes replaced everywhere; it must be there."""
    old, new = old.to_bytes(8, "little", signed=True), new.to_bytes(8, "little", signed=True)
    require(old in header, "the number is not there")
    return header.replace(old, new)


def frames(tried):
    """A compressed buffer that has more than its frame: other readers of Arrow refuse it, so it may not be stored as it was sent."""
    schema = pa.schema([("n", pa.int64())])
    batch = pa.record_batch([list(range(100))], schema=schema)
    for compression in ["lz4", "zstd"]:
        sent = batch_data(batch, compression)
        lengths = [n for n in range(len(sent.data_body) - 7, len(sent.data_body) + 1) if n.to_bytes(8, "little") in sent.data_header]
        table = f"frames_{compression}"
        tried.mink.create(table, "n BIGINT", **{"table.log.arrow.compression": compression})
        buffer = sent.data_body[: lengths[0]]
        for more in [bytes(8), b"\xff" * 8, buffer[8:], b"\x50\x2a\x4d\x18" + bytes(4)]:
            body = buffer + more
            body += bytes(-len(body) % 8)
            header = replaced(sent.data_header, len(buffer), len(buffer) + len(more))
            if len(buffer) != len(sent.data_body):
                header = replaced(header, len(sent.data_body), len(body))
            changed = flight.FlightData(data_header=header, data_body=body)
            tried.put(f"{len(more)} bytes behind a frame of {compression}", changed, table=table, schema=schema, allowed=TYPED | {OK})
            for found in tried.mink.read(table).to_batches():
                require(found.equals(batch), f"rows behind a frame of {compression} differ")


def lies(tried):
    """Counts and lengths that are not those of the message."""
    # A count of rows that stands nowhere else.
    schema = pa.schema([("n", pa.int64())])
    tried.mink.create("lies", "n BIGINT NOT NULL", **{"table.log.arrow.compression": "none"})
    batch = batch_data(pa.record_batch([list(range(12_345))], schema=schema))
    for count in [0, 12_344, 12_346, 2**20, 2**31, 2**40, 2**63 - 1, -1, -(2**63)]:
        changed = flight.FlightData(data_header=replaced(batch.data_header, 12_345, count), data_body=batch.data_body)
        # Fewer rows than the buffers hold, or none, is no lie.
        code, text, _ = tried.put(f"a batch that says it has {count} rows", changed, table="lies", schema=schema, allowed=TYPED | {OK})
        require(code != OK or 0 <= count <= 12_345, f"a batch that says it has {count} rows is taken")
    for length in [12_345 * 8 + 8, 2**31, 2**62, -8]:
        changed = flight.FlightData(data_header=replaced(batch.data_header, 12_345 * 8, length), data_body=batch.data_body)
        tried.put(f"a buffer that says it has {length} bytes", changed, table="lies", schema=schema)
    tried.put("no body", flight.FlightData(data_header=batch.data_header), table="lies", schema=schema)
    numbers = tried.mink.read("lies")["n"].to_pylist()
    require(set(numbers) <= set(range(12_345)), "rows that nobody sent")


def bombs(tried):
    """Buffers that inflate to more than a node may hold, and some that say so and do not."""
    schema = pa.schema([("n", pa.int64())])
    tried.mink.create("bombs", "n BIGINT", **{"table.log.arrow.compression": "zstd"})
    rows = 1 << 20
    zeros = pa.record_batch([pa.repeat(pa.scalar(0, pa.int64()), rows)], schema=schema)
    for compression in ["lz4", "zstd"]:
        sound = batch_data(zeros, compression)
        for stated in [2**31, 2**40, 2**63 - 1, -2, -(2**63), 8, 0]:
            body = stated.to_bytes(8, "little", signed=True) + sound.data_body[8:]
            changed = flight.FlightData(data_header=sound.data_header, data_body=body)
            tried.put(f"a buffer ({compression}) that says it has {stated} bytes", changed, table="bombs", schema=schema)
    wide = pa.schema([(f"n{column}", pa.int64()) for column in range(64)])
    tried.mink.create("wide", ", ".join(f"n{column} BIGINT" for column in range(64)))
    bomb = batch_data(pa.record_batch(zeros.columns * 64, schema=wide), "zstd")
    require(len(bomb.data_body) < 1 << 20, "the bomb is no bomb")
    outcomes = []

    def throw():
        other = Raw(tried.options.flight, tried.options.timeout)
        first = schema_data(wide, raw.path(tried.mink.database, "wide"))
        outcomes.append(other.call("DoPut", first, bomb))

    threads = [threading.Thread(target=throw, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(tried.options.timeout)
        require(not thread.is_alive(), "a bomb is not answered")
    for code, text, _ in outcomes:
        require(code in TYPED, f"a bomb of 512 MiB: {code.name}: {text}")


def dictionaries(tried):
    """Dictionaries that no column has, that are not there, of the wrong type, and too large in sum."""
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("t", kind)])
    tried.mink.create("words", "t STRING")
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array(["a", "b", "a"]).dictionary_encode()], schema=schema)
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(batch)
    first, dictionary, rows = [
        flight.FlightData(data_header=message.metadata.to_pybytes(), data_body=message.body.to_pybytes() if message.body else b"")
        for message in pa.ipc.MessageReader.open_stream(sink.getvalue())
    ]
    first.flight_descriptor.CopyFrom(raw.path(tried.mink.database, "words"))
    tried.call("a sound dictionary", "DoPut", first, dictionary, rows, allowed={OK})
    tried.call("indices without a dictionary", "DoPut", first, rows, allowed=TYPED)
    tried.call("a dictionary of a table that asks for none", "DoPut", schema_data(SCHEMA, raw.path(tried.mink.database, "target")), dictionary)
    for data in [dictionary, rows]:
        for at in range(len(data.data_header)):
            header = bytearray(data.data_header)
            header[at] ^= 1 << tried.random.randrange(8)
            changed = flight.FlightData(data_header=bytes(header), data_body=data.data_body)
            sent = [changed, rows] if data is dictionary else [dictionary, changed]
            tried.call(f"byte {at} of a dictionary's message changed", "DoPut", first, *sent, allowed=TYPED | {OK})
    indices = bytearray(rows.data_body)
    for value in [2, 2**31 - 1, -1]:
        indices[0:4] = value.to_bytes(4, "little", signed=True)
        changed = flight.FlightData(data_header=rows.data_header, data_body=bytes(indices))
        tried.call(f"the index {value} of a dictionary of two", "DoPut", first, dictionary, changed)
    tried.mink.read("words").validate(full=True)
