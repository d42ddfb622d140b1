"""An idempotent writer that may be killed at any time, and the check of what it wrote (I1, I2, I6).

It is the table's only one: row n has the sequence n and lies at offset n. All that it remembers is its id, in a file.
"""

import collections
import os
import pathlib
import time

import pyarrow as pa
import pyarrow.flight as fl

from .kit import Difference, close, mink as messages, require, require_equal

TABLE = "numbered"
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])
# Batches that wait for their acks.
PIPELINED = 20


def rows(first):
    """A batch whose size depends on where it begins, so that one that goes on has other bounds than the one before it."""
    numbers = range(first, first + 1 + first * 31 % 47)
    return pa.record_batch([list(numbers), [text(n) for n in numbers]], schema=SCHEMA)


def text(number):
    return f"row {number} " + "x" * (number % 90)


class Numbered:
    """The writer, over any number of calls."""

    def __init__(self, mink, options):
        self.mink, self.options = mink, options
        self.acks = open(options.acks, "a", buffering=1) if options.acks else None
        self.errors = collections.Counter()
        self.acked = self.calls = 0
        self.writer = self.own_id()

    def own_id(self):
        file = pathlib.Path(self.options.file)
        if file.exists():
            return messages.Writer(id=int(file.read_text()), epoch=0)
        self.mink.sql(f'CREATE DATABASE IF NOT EXISTS "{self.mink.database}"')
        self.mink.sql(f"CREATE TABLE IF NOT EXISTS {self.mink.name(TABLE)} (n BIGINT NOT NULL, text STRING NOT NULL)")
        writer = self.mink.open_writer()
        # Whole or not at all: a writer that is killed here begins anew.
        beside = file.with_suffix(".new")
        with beside.open("w") as new:
            new.write(str(writer.id))
            new.flush()
            os.fsync(new.fileno())
        beside.rename(file)
        return writer

    def next_number(self):
        state = self.mink.writer_state(TABLE, self.writer.id).get(0)
        return 0 if state is None else state.last_sequence + 1

    def stopping(self):
        return self.options.stop_file and os.path.exists(self.options.stop_file)

    def call(self):
        """Writes until the call breaks or the stop file is there."""
        number = self.next_number()
        client = self.mink.another()
        put = self.mink.put(TABLE, SCHEMA, client=client, options=fl.FlightCallOptions(), bucket=0, writer=self.writer)
        self.calls += 1
        waiting = collections.deque()
        begun, sent = time.monotonic(), 0
        try:
            while not self.stopping():
                batch = rows(number)
                put.send(batch, sequence=number)
                waiting.append((number, batch.num_rows))
                number += batch.num_rows
                sent += 1
                if len(waiting) >= PIPELINED:
                    self.ack(put, waiting)
                time.sleep(max(0.0, begun + sent / self.options.rate - time.monotonic()))
            while waiting:
                self.ack(put, waiting)
            put.finish()
        finally:
            close(put.writer)

    def ack(self, put, waiting):
        (placed,) = put.ack()
        first, count = waiting.popleft()
        require_equal((placed.bucket, placed.base_offset, placed.rows), (0, first, count), "place of an ack")
        self.acked += 1
        if self.acks:
            self.acks.write(f"{first} {count}\n")

    def run(self):
        broken_at = last = None
        while not self.stopping():
            before = self.acked
            try:
                self.call()
            except Difference as difference:
                # The call ended without a word, as one does whose node is gone.
                if "the call ended" not in str(difference):
                    raise
                self.errors["ended"] += 1
                last = difference
            except (pa.ArrowException, OSError) as error:
                # A batch of a writer that was killed may have come in behind what the node was asked. Else nothing that is sent is wrong.
                is_late = "precondition failed" in str(error)
                if isinstance(error, pa.ArrowInvalid) and not is_late:
                    raise
                self.errors["sequence" if is_late else type(error).__name__] += 1
                last = error
            if self.acked > before:
                broken_at = None
            elif not self.stopping():
                broken_at = broken_at or time.monotonic()
                require(time.monotonic() - broken_at < self.options.timeout, f"no ack for {self.options.timeout} s: {last}")
                time.sleep(0.05)
        return {"batches": self.acked, "calls": self.calls, "errors": dict(self.errors)}


def writer(mink, options):
    require(options.file is not None and options.database is not None, "give --file and --database")
    deadline = time.monotonic() + options.timeout
    while True:
        try:
            return Numbered(mink, options).run()
        except (fl.FlightUnavailableError, pa.ArrowCancelled) as error:
            # The node may be away when the writer starts.
            require(time.monotonic() < deadline, f"no node for {options.timeout} s: {error}")
            time.sleep(0.05)


def verify(mink, options):
    require(options.database is not None, "give --database")
    number = 0
    for batch, info in mink.chunks(mink.scan(TABLE)):
        require_equal(info.base_offset, number, "offset of a batch")
        wanted = list(range(number, number + batch.num_rows))
        require_equal(batch["n"].to_pylist(), wanted, f"numbers from offset {number} on")
        require_equal(batch["text"].to_pylist(), [text(n) for n in wanted], f"texts from offset {number} on")
        number += batch.num_rows
    acked = 0
    if options.acks:
        for line in pathlib.Path(options.acks).read_text().splitlines():
            parts = line.split()
            # A writer that was killed may have left half a line.
            if len(parts) == 2:
                acked = max(acked, sum(map(int, parts)))
        require(acked <= number, f"{acked} rows were acked, {number} are there")
    return {"rows": number, "acked": acked}
