"""What the hostile cases share: how a call may end, and the connection that checks it."""

import random
import re

import grpc
import pyarrow as pa

from . import raw
from .kit import require, require_equal
from .raw import Raw, schema_data

OK = grpc.StatusCode.OK
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
# How a call may end that a client got wrong. UNKNOWN, INTERNAL, UNAVAILABLE and DATA_LOSS would blame the node.
TYPED = {INVALID, NOT_FOUND, PRECONDITION, UNIMPLEMENTED, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.ALREADY_EXISTS}
TYPED |= {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED}
# What no error's text may carry to a terminal: control characters, and those that turn the direction of text.
HARMFUL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COLUMNS = "n BIGINT, t STRING, l ARRAY<INT>"
SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.int32()))])
BATCH = pa.record_batch([[1, None, 3], ["a", "", None], [[1], None, [2, None]]], schema=SCHEMA)


class Hostile:
    def __init__(self, mink, options):
        self.mink, self.options = mink, options
        self.raw = Raw(options.flight, options.timeout)
        self.random = random.Random(20_260_131)
        self.calls = 0

    def call(self, what, name, *sent, allowed=TYPED, **more):
        """A call that may end only as allowed; its code, text and answers."""
        code, text, answers = self.raw.call(name, *sent, **more)
        self.calls += 1
        require(code in allowed, f"{what}: ended with {code.name}: {text:.500}")
        harmful = HARMFUL.search(text)
        require(harmful is None, f"{what}: the error's text has {harmful and harmful.group()!r}: {text[:500]!r}")
        require(len(text) < 8_192, f"{what}: the error's text has {len(text)} characters")
        return code, text, answers

    def put(self, what, *data, table="target", allowed=TYPED, schema=SCHEMA):
        first = schema_data(schema, raw.path(self.mink.database, table))
        code, text, answers = self.call(what, "DoPut", first, *data, allowed=allowed)
        require(code != OK or len(answers) == len(data), f"{what}: the call ends well with {len(answers)} acks of {len(data)}")
        return code, text, answers

    def lives(self, what):
        """The node answers, and all that is stored in the table is sound."""
        for table in ["target", "target_lz4"]:
            self.mink.read(table).validate(full=True)
        code, _, _ = self.raw.call("ListActions", b"")
        require_equal(code, OK, f"a call after {what}")
