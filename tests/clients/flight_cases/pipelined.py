"""Many small batches without waiting, and writers whose batches have sequences (I6)."""

import pyarrow as pa

from .kit import Difference, dense, refused, require, require_equal

BATCHES = 1_000
SCHEMA = pa.schema([("n", pa.int64()), ("who", pa.string())])
COLUMNS = "n BIGINT NOT NULL, who STRING"


def rows(first, count, who="a"):
    return pa.record_batch([list(range(first, first + count)), [who] * count], schema=SCHEMA)


def pipelined(mink, options):
    mink.create("plain", COLUMNS)
    sizes = [1 + number % 7 for number in range(BATCHES)]
    firsts = [sum(sizes[:number]) for number in range(BATCHES)]
    batches = [rows(first, size) for first, size in zip(firsts, sizes)]
    places = mink.append("plain", *batches)
    require_equal(dense(places), sum(sizes), "rows that were acked")
    require_equal([len(placed) for placed in places], [1] * BATCHES, "places of each batch")
    require_equal(mink.read("plain")["n"].to_pylist(), list(range(sum(sizes))), "rows")
    several_buckets(mink)
    with_sequences(mink)
    wrong_sequences(mink)
    two_writers(mink)
    repeats_of_a_large_message(mink)
    return {"batches": BATCHES, "rows": sum(sizes)}


def several_buckets(mink):
    """Batches of a call are spread; in each bucket offsets are dense, and a row is where its ack says."""
    mink.create("spread", COLUMNS, buckets=4)
    places = mink.append("spread", *[rows(10 * number, 10) for number in range(100)])
    by_bucket = {}
    for number, placed in enumerate(places):
        for run in placed:
            require_equal(run.base_offset, len(by_bucket.setdefault(run.bucket, [])), f"offset in bucket {run.bucket}")
            by_bucket[run.bucket] += range(10 * number, 10 * number + run.rows)
    require_equal(sorted(by_bucket), [0, 1, 2, 3], "buckets that have rows")
    for bucket, numbers in by_bucket.items():
        require_equal(mink.read("spread", bucket=bucket)["n"].to_pylist(), numbers, f"rows of bucket {bucket}")
    placed = mink.append("spread", rows(0, 5), bucket=2)
    require_equal((placed[0][0].bucket, placed[0][0].base_offset), (2, len(by_bucket[2])), "a named bucket")
    writer = mink.open_writer()
    refused(pa.ArrowInvalid, "a writer without a bucket", lambda: mink.append("spread", rows(0, 1), writer=writer), "bucket")


def with_sequences(mink):
    """I6: what is sent again has one place, also from another call."""
    mink.create("once", COLUMNS)
    writer = mink.open_writer()
    put = mink.put("once", SCHEMA, writer=writer)
    put.send(rows(0, 10), sequence=0)
    put.send(rows(0, 10), sequence=0)
    put.send(rows(10, 5))
    first, again, third = put.finish()
    require_equal((first[0].base_offset, again[0].base_offset, third[0].base_offset), (0, 0, 10), "places")
    require_equal(mink.writer_state("once", writer.id)[0].last_sequence, 14, "last sequence")
    put = mink.put("once", SCHEMA, writer=writer)
    put.send(rows(10, 5), sequence=10)
    put.send(rows(15, 5), sequence=15)
    repeated, new = put.finish()
    require_equal((repeated[0].base_offset, new[0].base_offset), (10, 15), "places of another call")
    require_equal(mink.read("once")["n"].to_pylist(), list(range(20)), "rows")


def wrong_sequences(mink):
    """A gap is refused, nothing behind it is stored, and what was before it is acked."""
    mink.create("gaps", COLUMNS)
    writer = mink.open_writer()
    put = mink.put("gaps", SCHEMA, writer=writer)
    put.send(rows(0, 10), sequence=0)
    put.send(rows(20, 10), sequence=20)
    put.send(rows(10, 10), sequence=10)
    put.writer.done_writing()
    require_equal(put.ack()[0].base_offset, 0, "place of what came before the gap")
    text = refused(pa.ArrowException, "a gap", put.ack)
    # pyarrow has no class of its own for FAILED_PRECONDITION, but names the code.
    require("FAILED_PRECONDITION" in text or "Code: 9" in text or "sequence" in text, f"the error does not say why: {text}")
    put.abandon()
    require_equal(mink.read("gaps")["n"].to_pylist(), list(range(10)), "rows")
    unknown_writer(mink)
    put = mink.put("gaps", SCHEMA)
    put.send(rows(0, 1), sequence=0)
    put.writer.done_writing()
    refused(pa.ArrowInvalid, "a sequence without a writer", put.ack, "writer")
    put.abandon()
    for writer_id, epoch, sequence in [(-1, 0, 0), (writer.id, -1, 0), (writer.id, 40_000, 0), (writer.id, 0, -1)]:
        put = mink.put("gaps", SCHEMA, writer=type(writer)(id=writer_id, epoch=epoch))
        put.send(rows(0, 1), sequence=sequence)
        put.writer.done_writing()
        refused(pa.ArrowInvalid, f"writer {writer_id}, {epoch}, {sequence}", put.ack, "from 0 on")
        put.abandon()


def unknown_writer(mink):
    """I1: where others have rows, too, a writer begins with 0. Were it taken elsewhere, what comes below would be acked as a repeat."""
    writer = mink.open_writer()
    put = mink.put("gaps", SCHEMA, writer=writer)
    put.send(rows(105, 3), sequence=5)
    put.writer.done_writing()
    refused(pa.ArrowException, "a writer that begins with 5", put.ack, "begins with 0")
    put.abandon()
    put = mink.put("gaps", SCHEMA, writer=writer)
    put.send(rows(100, 5), sequence=0)
    put.send(rows(105, 3), sequence=5)
    require_equal([placed[0].base_offset for placed in put.finish()], [10, 15], "places of all its rows")
    require_equal(mink.read("gaps")["n"].to_pylist(), [*range(10), *range(100, 108)], "rows")


def two_writers(mink):
    """Writers count apart, also in one bucket."""
    mink.create("two", COLUMNS)
    writers = [mink.open_writer() for _ in range(2)]
    require(writers[0].id != writers[1].id, "two writers with one id")
    puts = [mink.put("two", SCHEMA, client=mink.another(), writer=writer) for writer in writers]
    for number in range(100):
        for who, put in enumerate(puts):
            put.send(rows(10 * number, 10, who=str(who)))
    for put in puts:
        require_equal(len(put.finish()), 100, "acks")
    found = mink.read("two")
    for who in "01":
        own = [n for n, name in zip(found["n"].to_pylist(), found["who"].to_pylist()) if name == who]
        require_equal(own, list(range(1_000)), f"rows of writer {who}")


def repeats_of_a_large_message(mink):
    """I6: a message that became many batches is stored once as well."""
    mink.create("parts", COLUMNS, **{"max.message.bytes": 4_096, "table.log.arrow.compression": "none"})
    writer = mink.open_writer()
    put = mink.put("parts", SCHEMA, writer=writer)
    put.send(rows(0, 5_000), sequence=0)
    (first,) = put.finish()
    require_equal((first[0].base_offset, first[0].rows), (0, 5_000), "place of the message")
    put = mink.put("parts", SCHEMA, writer=writer)
    put.send(rows(0, 5_000), sequence=0)
    try:
        (again,) = put.finish()
    except pa.ArrowException as error:
        raise Difference(f"a message of several batches that is sent again is refused: {error}") from error
    # Of its first batches the node knows that they are stored, of its last ones also where.
    require_equal(again[-1].base_offset + again[-1].rows, 5_000, "end of the message that was sent again")
    require_equal(mink.read("parts").num_rows, 5_000, "rows")
