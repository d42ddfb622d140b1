"""Arrow Flight without pyarrow: messages of gRPC whose every byte is ours."""

import pathlib
import tempfile

import grpc
import pyarrow as pa

from .kit import compiled

# What of Arrow's Flight.proto is needed here; names and numbers are Arrow's.
FLIGHT = """
syntax = "proto3";
package arrow.flight.protocol;
message FlightDescriptor { int32 type = 1; bytes cmd = 2; repeated string path = 3; }
message FlightData {
  FlightDescriptor flight_descriptor = 1;
  bytes data_header = 2;
  bytes app_metadata = 3;
  bytes data_body = 1000;
}
message PutResult { bytes app_metadata = 1; }
message Ticket { bytes ticket = 1; }
message Action { string type = 1; bytes body = 2; }
message Bytes { bytes body = 1; }
"""

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "flight_raw.proto"
    file.write_text(FLIGHT)
    flight = compiled(file)

SERVICE = "/arrow.flight.protocol.FlightService/"
STREAMS_IN = {"DoPut", "DoExchange", "Handshake"}
STREAMS_OUT = STREAMS_IN | {"DoGet", "DoAction", "ListFlights", "ListActions"}
OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A connection for each channel; else channels to one address share one, and its bound of calls.
    ("grpc.use_local_subchannel_pool", 1),
]


class Raw:
    """A connection on which any bytes can be sent; every call ends with its status, or times out."""

    def __init__(self, address, timeout):
        self.channel = grpc.insecure_channel(address, options=OPTIONS)
        self.timeout = timeout

    def call(self, name, *messages, within=None, metadata=()):
        """(status code, its text, the answers as bytes)."""
        kind = ("stream" if name in STREAMS_IN else "unary") + "_" + ("stream" if name in STREAMS_OUT else "unary")
        # Without a serializer, messages are bytes already.
        stub = getattr(self.channel, kind)(SERVICE + name)
        sent = [message if isinstance(message, bytes) else message.SerializeToString() for message in messages]
        request = iter(sent) if name in STREAMS_IN else sent[0]
        answers = []
        try:
            answer = stub(request, timeout=within or self.timeout, metadata=metadata)
            answers.extend(answer if name in STREAMS_OUT else [answer])
        except grpc.RpcError as error:
            return error.code(), error.details() or "", answers
        return grpc.StatusCode.OK, "", answers


def parts(message):
    """Metadata and body of an encapsulated IPC message, as FlightData holds them."""
    raw = message.to_pybytes()
    length = int.from_bytes(raw[4:8], "little")
    return raw[8 : 8 + length], raw[8 + length :]


def command(cmd):
    return flight.FlightDescriptor(type=2, cmd=cmd)


def path(*names):
    return flight.FlightDescriptor(type=1, path=names)


def schema_data(schema, descriptor=None):
    return flight.FlightData(flight_descriptor=descriptor, data_header=parts(schema.serialize())[0])


def batch_data(batch, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    found = [message for message in pa.ipc.MessageReader.open_stream(sink.getvalue()) if message.type == "record batch"]
    (message,) = found
    return flight.FlightData(data_header=message.metadata.to_pybytes(), data_body=message.body.to_pybytes())
