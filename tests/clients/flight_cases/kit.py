"""What all cases share: the connection, Mink's messages (compiled from the repository's .proto), SQL, tables, appends and scans."""

import functools
import importlib
import json
import pathlib
import secrets
import sys
import tempfile
import time
import urllib.request

import pyarrow as pa
import pyarrow.flight as fl

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROTO = ROOT / "core" / "mink-proto" / "proto" / "mink" / "v1" / "flight.proto"


class Difference(Exception):
    """The first thing that is not as it must be."""


def require(holds, what):
    if not holds:
        raise Difference(what)


def require_equal(found, wanted, what):
    if found != wanted:
        raise Difference(f"{what}: found {found!r:.2000}; wanted {wanted!r:.2000}")


def until(what, seconds, condition):
    """Waits until the condition gives something true."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        require(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.01)


@functools.cache
def compiled(proto):
    """The Python module of a .proto file."""
    from grpc_tools import protoc

    proto = pathlib.Path(proto)
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["protoc", f"-I{proto.parent}", f"--python_out={folder}", str(proto)]
        require_equal(protoc.main(arguments), 0, f"protoc of {proto}")
        sys.path.insert(0, folder)
        try:
            return importlib.import_module(f"{proto.stem}_pb2")
        finally:
            sys.path.remove(folder)


mink = compiled(PROTO)


def comparison(column, operator, value=""):
    return mink.Comparison(column=column, operator=mink.Operator.Value(operator), value=str(value))


def refused(kind, what, call, *words):
    """Expects that a call is refused with an error of pyarrow's class `kind` whose text has all these words; gives the text."""
    try:
        call()
    except kind as error:
        text = str(error)
        missing = [word for word in words if word not in text]
        require(not missing, f"{what}: the error does not say {missing}: {text}")
        return text
    except Exception as error:
        raise Difference(f"{what}: refused by {type(error).__name__}, not {kind}: {error}") from error
    raise Difference(f"{what}: not refused")


def close(writer):
    """Ends a call that was cancelled or refused; left to itself, pyarrow tells of it on stderr."""
    try:
        writer.close()
    except (pa.ArrowException, OSError):
        pass


class Put:
    """A DoPut call: batches go out at once, acks are taken in order."""

    def __init__(self, client, descriptor, schema, options):
        self.writer, self.reader = client.do_put(descriptor, schema, options)
        self.sent = self.acked = 0

    def send(self, batch, sequence=None):
        if sequence is None:
            self.writer.write_batch(batch)
        else:
            told = mink.PutBatch(sequence=sequence).SerializeToString()
            self.writer.write_with_metadata(batch, told)
        self.sent += 1

    def ack(self):
        """The next ack: its places. Raises what the node refused with."""
        answer = self.reader.read()
        if answer is None:
            # The call has ended: closing it gives the reason.
            self.writer.close()
            raise Difference(f"the call ended after {self.acked} acks of {self.sent}")
        ack = mink.PutAck.FromString(answer.to_pybytes())
        require_equal(ack.batch, self.acked, "number of the ack")
        self.acked += 1
        return list(ack.placed)

    def finish(self):
        """Says that all is sent and takes the acks that are left, then the end."""
        self.writer.done_writing()
        places = [self.ack() for _ in range(self.sent - self.acked)]
        require(self.reader.read() is None, "an ack too many")
        self.writer.close()
        return places

    def abandon(self):
        """Ends a call that was refused."""
        close(self.writer)


class Mink:
    """A node, and a database of the case's own."""

    def __init__(self, options):
        self.address, self.http = options.flight, options.http
        self.client = fl.connect(f"grpc://{options.flight}")
        self.database = options.database or f"case_{secrets.token_hex(4)}"
        self.timeout = options.timeout

    def sql(self, statement):
        """The rows of a statement."""
        results = self.client.do_action(fl.Action("sql", statement.encode()), self.call())
        return [json.loads(result.body.to_pybytes()) for result in results]

    def call(self):
        return fl.FlightCallOptions(timeout=self.timeout)

    def another(self):
        """A connection of its own."""
        return fl.connect(f"grpc://{self.address}")

    def create(self, table, columns, buckets=1, **options):
        """A table; option names are written with `_` for `.`, but for those given as a dict `more`."""
        options = {"bucket.num": buckets, **options.pop("more", {}), **options}
        told = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        self.sql(f'CREATE DATABASE IF NOT EXISTS "{self.database}"')
        self.sql(f'CREATE TABLE {self.name(table)} ({columns}) WITH ({told})')

    def name(self, table):
        return f'"{self.database}"."{table}"'

    def path(self, table):
        return fl.FlightDescriptor.for_path(self.database, table)

    def scan(self, table, **fields):
        return mink.Scan(database=self.database, table=table, **fields)

    def put(self, table, schema, client=None, options=None, **fields):
        """A call that appends; it ends in time unless `options` say otherwise."""
        if fields:
            append = mink.Append(database=self.database, table=table, **fields)
            descriptor = fl.FlightDescriptor.for_command(mink.Command(append=append).SerializeToString())
        else:
            descriptor = self.path(table)
        return Put(client or self.client, descriptor, schema, options or self.call())

    def append(self, table, *batches, **fields):
        """Appends batches by one call; their places."""
        put = self.put(table, batches[0].schema, **fields)
        for batch in batches:
            put.send(batch)
        return put.finish()

    def get(self, scan, client=None):
        ticket = mink.Ticket(scan=scan).SerializeToString()
        return (client or self.client).do_get(fl.Ticket(ticket), self.call())

    def chunks(self, scan):
        """The batches of a scan, each with its BatchInfo."""
        reader = self.get(scan)
        for chunk in reader:
            yield chunk.data, mink.BatchInfo.FromString(chunk.app_metadata.to_pybytes())

    def read(self, table, **fields):
        """All rows of a scan as a table."""
        return self.get(self.scan(table, **fields)).read_all()

    def follow(self, scan, client=None):
        """A DoExchange call that follows; the writer must live as long as the reader."""
        command = mink.Command(scan=scan).SerializeToString()
        descriptor = fl.FlightDescriptor.for_command(command)
        writer, reader = (client or self.client).do_exchange(descriptor)
        # The descriptor goes out with the first message.
        writer.write_metadata(b"")
        return writer, reader

    def open_writer(self):
        (result,) = self.client.do_action(fl.Action("writer.open", b""), self.call())
        return mink.Writer.FromString(result.body.to_pybytes())

    def writer_state(self, table, writer_id):
        """By bucket: the states that are remembered of a writer."""
        asked = mink.FindWriter(database=self.database, table=table, id=writer_id).SerializeToString()
        results = self.client.do_action(fl.Action("writer.state", asked), self.call())
        states = [mink.WriterState.FromString(result.body.to_pybytes()) for result in results]
        return {state.bucket: state for state in states}

    def describe(self, table):
        asked = mink.DescribeTable(database=self.database, table=table).SerializeToString()
        (result,) = self.client.do_action(fl.Action("table.describe", asked), self.call())
        return mink.TableDescription.FromString(result.body.to_pybytes())

    def metrics(self):
        """Samples of /metrics, summed over their labels but for those of one name and label set: {name: {labels: value}}."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                sample, value = line.rsplit(" ", 1)
                name, _, labels = sample.partition("{")
                found.setdefault(name, {})["{" + labels if labels else ""] = float(value)
        return found

    def counted(self, name, labels=""):
        """One counter, whatever suffix its text has."""
        metrics = self.metrics()
        samples = metrics.get(name, metrics.get(f"{name}_total"))
        require(samples is not None, f"/metrics has no {name}")
        return sum(value for label, value in samples.items() if labels in label)


def dense(places, bucket=0):
    """Checks that the rows of acks follow each other from offset 0 in one bucket; how many they are."""
    next_offset = 0
    for placed in places:
        for run in placed:
            require_equal((run.bucket, run.base_offset), (bucket, next_offset), "bucket and offset of an ack")
            next_offset += run.rows
    return next_offset
