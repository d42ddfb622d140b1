"""DoExchange: a tail sees every row once and in order, those that lie there and those that come, and ends when it is cancelled (I2, I3)."""

import threading
import time

import pyarrow as pa
import pyarrow.flight as fl

from .kit import close, comparison, mink as messages, refused, require, require_equal

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
COLUMNS = "n BIGINT, text STRING"
BATCHES = 300
ROWS = 7


def rows(batch):
    first = batch * ROWS
    return pa.record_batch([list(range(first, first + ROWS)), [f"row {n}" for n in range(first, first + ROWS)]], schema=SCHEMA)


class Tail(threading.Thread):
    """Follows a scan until it has `wanted` rows, then cancels; by bucket: numbers in the order of their arrival."""

    def __init__(self, mink, scan, wanted, skips=False):
        super().__init__(daemon=True)
        # Whether a filter leaves rows out, so that offsets have gaps.
        self.skips = skips
        self.wanted, self.found, self.count, self.error, self.columns = wanted, {}, 0, None, None
        self.writer, self.reader = mink.follow(scan, client=mink.another())
        self.start()

    def run(self):
        try:
            while self.count < self.wanted:
                chunk = self.reader.read_chunk()
                info = messages.BatchInfo.FromString(chunk.app_metadata.to_pybytes())
                self.take(chunk.data, info)
            self.reader.cancel()
            # What is under way may still come; then the call ends.
            while True:
                self.reader.read_chunk()
        except StopIteration:
            self.error = "the call ended by itself"
        except Exception as error:
            self.error = error

    def take(self, batch, info):
        self.columns = batch.schema.names
        numbers = self.found.setdefault(info.bucket, [])
        if numbers and not self.skips:
            require_equal(info.base_offset, numbers[-1][0] + 1, "offset of a batch that follows")
        numbers += [(info.base_offset + row, n) for row, n in enumerate(batch["n"].to_pylist())]
        self.count += batch.num_rows

    def end(self, seconds):
        self.join(seconds)
        require(not self.is_alive(), f"a tail is not done: {self.count} rows of {self.wanted}")
        close(self.writer)
        require_equal(self.count, self.wanted, f"rows of a tail ({self.error})")
        # A cancelled call ends so, at once; anything else is another end.
        require(isinstance(self.error, pa.ArrowCancelled) or "ancel" in str(self.error), f"a tail ended by {self.error!r}")

    def numbers(self):
        return {bucket: [n for _, n in numbers] for bucket, numbers in self.found.items()}


def follow(mink, options):
    mink.create("tailed", COLUMNS)
    put = mink.put("tailed", SCHEMA)
    for batch in range(20):
        put.send(rows(batch))
        put.ack()
    whole = Tail(mink, mink.scan("tailed"), BATCHES * ROWS)
    narrow = Tail(mink, mink.scan("tailed", columns=["n"], filter=[comparison("n", "GREATER", 3)]), BATCHES * ROWS - 4, skips=True)
    middle = Tail(mink, mink.scan("tailed", **{"from": messages.Position(offset=10)}), BATCHES * ROWS - 10)
    latest = Tail(mink, mink.scan("tailed", **{"from": messages.Position(latest=messages.Latest())}, limit=50), 50)
    tails = [whole, narrow, middle]
    for batch in range(20, BATCHES):
        put.send(rows(batch))
        put.ack()
    put.finish()
    everything = list(range(BATCHES * ROWS))
    for tail, first in zip(tails, [0, 4, 10]):
        tail.end(options.timeout)
        require_equal(tail.numbers(), {0: everything[first:]}, f"rows of a tail from {first} on")
    require_equal(whole.columns, ["n", "text"], "columns of the whole tail")
    require_equal(narrow.columns, ["n"], "columns of the narrow tail")
    # Its first row depends on when it began; they follow each other all the same, and the limit ends the call.
    latest.join(options.timeout)
    require(not latest.is_alive(), f"a tail with a limit has {latest.count} rows of 50")
    close(latest.writer)
    (numbers,) = latest.numbers().values()
    require_equal((len(numbers), numbers), (50, list(range(numbers[0], numbers[0] + 50))), "rows of a tail with a limit")
    require(numbers[0] >= 20 * ROWS, f"a tail from the latest place begins with row {numbers[0]}")
    several_buckets(mink, options)
    latency = seconds_until_seen(mink, options)
    grows(mink, options)
    ends(mink, options)
    return {"rows": BATCHES * ROWS, "seconds_until_seen": latency}


def several_buckets(mink, options):
    mink.create("spread", COLUMNS, buckets=4)
    tail = Tail(mink, mink.scan("spread"), BATCHES * ROWS)
    mink.append("spread", *[rows(batch) for batch in range(BATCHES)])
    tail.end(options.timeout)
    found = tail.numbers()
    require_equal(sorted(found), [0, 1, 2, 3], "buckets that have rows")
    require_equal(sorted(sum(found.values(), [])), list(range(BATCHES * ROWS)), "rows of all buckets")
    for bucket, numbers in found.items():
        require_equal(numbers, sorted(numbers), f"order in bucket {bucket}")


def seconds_until_seen(mink, options):
    """A tail that waits is woken by an append, not by a clock: the slowest of some."""
    mink.create("quiet", COLUMNS)
    writer, reader = mink.follow(mink.scan("quiet"), client=mink.another())
    slowest = 0.0
    for batch in range(20):
        begun = time.monotonic()
        mink.append("quiet", rows(batch))
        require_equal(reader.read_chunk().data.num_rows, ROWS, "rows that were waited for")
        slowest = max(slowest, time.monotonic() - begun)
    require(slowest < 5, f"a tail saw a row only after {slowest:.1f} s")
    # The end of the client's side ends the call.
    writer.done_writing()
    ended = threading.Thread(target=lambda: list(reader), daemon=True)
    ended.start()
    ended.join(options.timeout)
    require(not ended.is_alive(), "the call goes on when the client's side has ended")
    return round(slowest, 3)


def grows(mink, options):
    """T-37: buckets and partitions that are made while a table is followed are read from their first row; one that is dropped leaves."""
    columns = pa.schema([("n", pa.int64()), pa.field("day", pa.int32(), nullable=False)])

    def day(number, first, count):
        return pa.record_batch([list(range(first, first + count)), [number] * count], schema=columns)

    def put(number, first, count):
        mink.sql(f"ALTER TABLE {mink.name('days')} ADD IF NOT EXISTS PARTITION (day = {number})")
        mink.append("days", day(number, first, count), partition=[messages.PartitionValue(column="day", value=str(number))])

    mink.sql(f"CREATE TABLE {mink.name('days')} (n BIGINT, day INT NOT NULL) PARTITIONED BY (day)")
    writer, reader = mink.follow(mink.scan("days", **{"from": messages.Position(latest=messages.Latest())}), client=mink.another())
    # The schema has come: the scan has begun, without a partition.
    require_equal(reader.schema.names, ["n", "day"], "columns")

    def read(count):
        found = []
        while len(found) < count:
            found += reader.read_chunk().data["n"].to_pylist()
        return sorted(found)

    put(1, 0, 10)
    require_equal(read(10), list(range(10)), "rows of the first partition")
    put(2, 10, 10)
    require_equal(read(10), list(range(10, 20)), "rows of the second partition")
    mink.sql(f"ALTER TABLE {mink.name('days')} DROP PARTITION (day = 1)")
    put(2, 20, 1)
    require_equal(read(1), [20], "rows behind a drop")
    put(1, 30, 2)
    require_equal(read(2), [30, 31], "rows of a partition that was made anew")
    reader.cancel()
    close(writer)


def ends(mink, options):
    """What cannot be followed is refused; a dropped table ends its tails."""
    def read(scan):
        writer, reader = mink.follow(scan)
        try:
            reader.read_chunk()
        finally:
            reader.cancel()
            close(writer)

    refused(pa.ArrowInvalid, "a tail with an end", lambda: read(mink.scan("tailed", until=5)), "until")
    refused(pa.ArrowKeyError, "a tail of no table", lambda: read(mink.scan("nothing")), "does not exist")
    refused(pa.ArrowInvalid, "a tail of no column", lambda: read(mink.scan("tailed", columns=["x"])), "no column")
    mink.create("dropped", COLUMNS)
    mink.append("dropped", rows(0))
    writer, reader = mink.follow(mink.scan("dropped"), client=mink.another())
    require_equal(reader.read_chunk().data.num_rows, ROWS, "rows before the drop")
    mink.sql(f"DROP TABLE {mink.name('dropped')}")
    outcome = []

    def wait():
        try:
            reader.read_chunk()
        except Exception as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(options.timeout)
    require(not waiting.is_alive(), "a tail of a table that was dropped goes on")
    close(writer)
    require(not isinstance(outcome[0], StopIteration), "a tail of a table that was dropped ended as if all were well")


def drained(mink, options):
    """Calls that are open when the node stops end with UNAVAILABLE, which clients try again, and hold up nobody."""
    mink.create("open", COLUMNS)
    put = mink.put("open", SCHEMA, client=mink.another())
    put.send(rows(0))
    put.ack()
    writer, reader = mink.follow(mink.scan("open"), client=mink.another())
    require_equal(reader.read_chunk().data.num_rows, ROWS, "rows of the tail")
    # Whoever started this stops the node now.
    print("open", flush=True)
    outcomes = {}

    def wait(name, read):
        try:
            outcomes[name] = read()
        except BaseException as error:
            outcomes[name] = error

    def end_of_put():
        # pyarrow's reader of acks ends without a word; what the call ended with, its writer tells.
        while put.reader.read() is not None:
            pass
        put.writer.close()

    waits = [("the tail", reader.read_chunk), ("the writer", end_of_put)]
    threads = [threading.Thread(target=wait, args=each, daemon=True) for each in waits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(options.timeout)
        require(not thread.is_alive(), "a call does not end with its node")
    for name, outcome in outcomes.items():
        require(isinstance(outcome, fl.FlightUnavailableError), f"{name} is told {outcome!r:.300}")
    close(writer)
    put.abandon()
    return {}
