"""Messages and headers beyond their limits, and clients that hold what others need."""

import collections
import socket
import sys
import threading
import time

import grpc
import pyarrow as pa

from . import raw
from .hostile_kit import BATCH, INVALID, OK, SCHEMA
from .kit import mink as messages, require, until
from .raw import Raw, batch_data, flight, schema_data

# Two small scans beside forty that are not read: a turn each.
LIVES_WITHIN = 3

def sizes(tried):
    """A message beyond the limit is refused by its length, with the flag's name; one row beyond the batch's limit too."""
    most = tried.options.message_bytes_max
    before = tried.mink.counted("mink_flight_too_large")
    big = flight.FlightData(data_body=bytes(most))
    code, text, _ = tried.call("a message beyond the limit", "DoPut", schema_data(SCHEMA, raw.path(tried.mink.database, "target")), big)
    require("flight-message-bytes-max" in text, f"the error does not name the limit: {code.name}: {text}")
    require(tried.mink.counted("mink_flight_too_large") > before, "the message is not counted")
    row = batch_data(pa.record_batch([[1], ["x" * (2 << 20)], [None]], schema=SCHEMA))
    code, text, _ = tried.put("a row beyond a batch's limit", row, allowed={INVALID})
    statement = flight.Action(type="sql", body=b"x" * (most + 1))
    tried.call("an action beyond the limit", "DoAction", statement)


def headers(tried):
    """Headers beyond what a call may have."""
    for metadata in [[("x-long", "y" * 60_000)], [(f"x-{n}", "y" * 100) for n in range(400)]]:
        code, _, _ = Raw(tried.options.flight, tried.options.timeout).call("ListActions", b"", metadata=metadata)
        require(code != OK, "headers of 40 KiB and more are taken")
        tried.calls += 1


def idle_calls(tried):
    """Calls that begin and say no more hold up nobody: more than one connection may have, on several."""
    stop = threading.Event()

    def silent():
        yield schema_data(SCHEMA, raw.path(tried.mink.database, "target")).SerializeToString()
        stop.wait(tried.options.timeout)

    connections = [Raw(tried.options.flight, tried.options.timeout) for _ in range(4)]
    calls = [
        connection.channel.stream_stream(raw.SERVICE + name)(silent(), timeout=tried.options.timeout)
        for connection in connections
        for name in ["DoPut", "DoExchange"] * 40
    ]
    try:
        tried.lives("320 silent calls")
    finally:
        stop.set()
        for call in calls:
            call.cancel()
        for connection in connections:
            connection.channel.close()


def slow_readers(tried):
    """I20: clients that take nothing of what they asked for hold up no other reader, and none of their answers ends as if it were whole."""
    tried.mink.create("large", "n BIGINT, t STRING", **{"table.log.arrow.compression": "none"})
    rows = pa.record_batch([list(range(5_000)), ["x" * 150] * 5_000], names=["n", "t"])
    tried.mink.append("large", *[rows] * 40)
    ticket = messages.Ticket(scan=tried.mink.scan("large")).SerializeToString()
    asked = flight.Ticket(ticket=ticket).SerializeToString()
    connections = [Raw(tried.options.flight, tried.options.timeout) for _ in range(40)]
    calls = [connection.channel.unary_stream(raw.SERVICE + "DoGet")(asked, timeout=600) for connection in connections]
    try:
        for turn in range(3):
            for call in calls:
                # The schema, then nothing more.
                turn or next(call)
            begun = time.monotonic()
            tried.lives("readers that do not read")
            took = time.monotonic() - begun
            print(f"beside {len(calls)} readers that do not read: {took:.1f} s", file=sys.stderr)
            require(took < LIVES_WITHIN, f"two small scans beside readers that do not read took {took:.1f} s")
        begun = time.monotonic()
        require(len(tried.mink.read("large")) == 200_000, "a scan beside readers that do not read lacks rows")
        print(f"a large scan beside them: {time.monotonic() - begun:.1f} s", file=sys.stderr)
        ends = collections.Counter(end_of(call, 40) for call in calls)
        print(f"how theirs end: {dict(ends)}", file=sys.stderr)
    finally:
        for call, connection in zip(calls, connections):
            call.cancel()
            connection.channel.close()


def end_of(call, whole):
    """How the rest of a scan ends that nobody read: whole, or with a reason."""
    batches = 0
    try:
        for _ in call:
            batches += 1
    except grpc.RpcError as error:
        told = error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "go on behind the last row" in (error.details() or "")
        require(told, f"a reader that did not read is told {error.code().name}: {error.details()}")
        return error.code().name
    require(batches == whole, f"a scan ends well after {batches} batches of {whole}")
    return "OK"


class Stalling:
    """A way to the node that passes the first bytes of each connection on, and then nothing more."""

    def __init__(self, address, passed):
        self.host, self.port = address.rsplit(":", 1)
        self.passed, self.sockets = passed, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            node = socket.create_connection((self.host, int(self.port)))
            self.sockets += [client, node]
            for source, sink, most in [(client, node, self.passed), (node, client, 1 << 62)]:
                threading.Thread(target=self.pass_on, args=(source, sink, most), daemon=True).start()

    def pass_on(self, source, sink, most):
        try:
            while piece := source.recv(65_536):
                if most > 0:
                    sink.sendall(piece)
                most -= len(piece)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for each in self.sockets:
            each.close()


def stalled_messages(tried):
    """I20: clients that begin large messages and stop in their middle hold up no other writer for longer than a message may take."""
    first = schema_data(SCHEMA, raw.path(tried.mink.database, "target")).SerializeToString()
    large = flight.FlightData(data_body=bytes(tried.options.message_bytes_max * 9 // 10)).SerializeToString()
    stop = threading.Event()

    def sent():
        yield first
        yield large
        stop.wait(600)

    stalling = Stalling(tried.options.flight, 300_000)
    channels = [grpc.insecure_channel(stalling.address, options=raw.OPTIONS) for _ in range(4)]
    calls = [channel.stream_stream(raw.SERVICE + "DoPut")(sent(), timeout=600) for channel in channels]
    try:
        until("the large messages have begun", tried.options.timeout, lambda: len(stalling.sockets) == 2 * len(channels))
        for _ in range(20):
            tried.put("a batch beside messages that stall", batch_data(BATCH), allowed={OK})
    finally:
        stop.set()
        for call, channel in zip(calls, channels):
            call.cancel()
            channel.close()
        stalling.close()
