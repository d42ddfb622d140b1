#!/usr/bin/env python3
"""What all clients here share: the flights as Kafka records, the command line, and the comparison.

  flights.py digest                  the SHA-256 of all records (tests/data/README.md records it)
  flights.py csv                     the decoded rows on stdout
  flights.py kcat-files DIR COUNT    the first COUNT records as input files of kcat
  flights.py compare CLIENT COUNT FLOOR_MS|- PARTITION=END...    compares what kcat printed (stdin) with the first COUNT records
"""

import argparse
import datetime
import functools
import hashlib
import json
import os
import pathlib
import struct
import sys
import time
from typing import NamedTuple, Optional

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "flights.csv.zst"
COLUMNS = "time_hour carrier flight tailnum origin dest dep_delay arr_delay air_time distance".split()
NUMBERS = {"flight", "dep_delay", "arr_delay", "air_time", "distance"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# How far a broker's or a client's clock may be off when a client can't set timestamps.
CLOCK_SLACK_MS = 60_000


class Record(NamedTuple):
    key: Optional[bytes]
    value: bytes
    headers: list
    timestamp_ms: int


class Difference(Exception):
    """The first place where what was read is not what was written."""


def csv_text():
    """The decoded file; MINK_FLIGHTS_CSV names a copy that is decoded already."""
    decoded = os.environ.get("MINK_FLIGHTS_CSV")
    if decoded:
        return pathlib.Path(decoded).read_text()
    import zstandard

    with DATA.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read().decode()


@functools.cache
def milliseconds(time_hour):
    stamp = datetime.datetime.strptime(time_hour, "%Y-%m-%dT%H:%M:%SZ")
    return int(stamp.replace(tzinfo=datetime.timezone.utc).timestamp()) * 1000


# One encoder for all rows: json.dumps with options of its own would make one per call.
to_json = json.JSONEncoder(separators=(",", ":")).encode


def record(row):
    """The record of one row: the definition stands in tests/data/README.md."""
    fields = {}
    for column, text in zip(COLUMNS, row):
        fields[column] = None if text == "" else int(text) if column in NUMBERS else text
    return Record(
        key=fields["tailnum"].encode() if fields["tailnum"] is not None else None,
        value=to_json(fields).encode(),
        headers=[("carrier", fields["carrier"].encode()), ("origin", fields["origin"].encode())],
        timestamp_ms=milliseconds(fields["time_hour"]),
    )


def records(count=None):
    """The first `count` records of the set, or all of them."""
    lines = csv_text().splitlines()
    if lines[0].split(",") != COLUMNS:
        sys.exit("flights: the columns of the data file are not the expected ones")
    rows = lines[1:]
    if count is not None and not 0 < count <= len(rows):
        sys.exit(f"flights: --count must lie in 1..{len(rows)}")
    return [record(line.split(",")) for line in rows[:count]]


def digest():
    """SHA-256 over key, value, timestamp and headers of each record, each field behind its length."""
    total = hashlib.sha256()
    field = lambda data: struct.pack(">i", len(data)) + data
    for each in records():
        total.update(struct.pack(">i", -1) if each.key is None else field(each.key))
        total.update(field(each.value) + struct.pack(">q", each.timestamp_ms))
        for name, data in each.headers:
            total.update(field(name.encode()) + field(data))
    return total.hexdigest()


class Comparison:
    """Finds the first loss, duplicate, reordering or changed byte among records that are read in offset order per partition.

    Each value occurs once in the set, so a value tells which record it must be. `positions`, where the client reported them
    (record number -> (partition, offset) of its ack), must be where the record is found.
    """

    def __init__(self, expected, positions=None, timestamp_floor_ms=None, grouped=False):
        """`timestamp_floor_ms`: timestamps are of the run, from this moment on, not of the records.
        `grouped`: records of equal headers were produced together, one group after another (kcat)."""
        self.expected = expected
        self.numbers = {each.value: number for number, each in enumerate(expected)}
        self.positions = positions or {}
        self.timestamp_floor_ms = timestamp_floor_ms
        self.grouped = grouped
        self.seen = {}
        self.next_offset = {}
        self.last_number = {}

    def add(self, partition, offset, key, value, headers, timestamp_ms):
        place = f"partition {partition} offset {offset}"
        wanted = self.next_offset.get(partition, 0)
        if offset != wanted:
            raise Difference(f"{place}: offset {wanted} was expected")
        self.next_offset[partition] = wanted + 1
        number = self.numbers.get(value)
        if number is None:
            raise Difference(f"{place}: a value that was never produced: {value!r:.300}")
        if number in self.seen:
            raise Difference(f"{place}: record {number} again, it is at {self.seen[number]} already")
        self.seen[number] = (partition, offset)
        line = (partition, *headers) if self.grouped else partition
        if number < self.last_number.get(line, -1):
            raise Difference(f"{place}: record {number} after record {self.last_number[line]}")
        self.last_number[line] = number
        if number in self.positions and self.positions[number] != (partition, offset):
            raise Difference(f"{place}: record {number}, which was acked at {self.positions[number]}")
        record = self.expected[number]
        self.same(place, number, "key", key, record.key)
        self.same(place, number, "headers", headers, record.headers)
        if self.timestamp_floor_ms is None:
            self.same(place, number, "timestamp", timestamp_ms, record.timestamp_ms)
        elif not self.timestamp_floor_ms <= timestamp_ms <= time.time() * 1000 + CLOCK_SLACK_MS:
            raise Difference(f"{place}: record {number}: timestamp {timestamp_ms} is not of this run")

    @staticmethod
    def same(place, number, what, got, expected):
        if got != expected:
            raise Difference(f"{place}: record {number}: {what} {got!r} instead of {expected!r}")

    def finish(self, end_offsets):
        """`end_offsets`: partition -> end offset as the broker tells it."""
        for partition, end in sorted(end_offsets.items()):
            read = self.next_offset.get(partition, 0)
            if read != end:
                raise Difference(f"partition {partition}: read up to offset {read}, the end is {end}")
        for number in range(len(self.expected)):
            if number not in self.seen:
                acked = self.positions.get(number)
                raise Difference(f"record {number} is missing (acked at {acked})")


def options(client):
    """The command line that every client script understands."""
    parser = argparse.ArgumentParser(prog=client, description="Drives one Kafka client with the flights data set.")
    parser.add_argument("operation", choices=["create", "produce", "consume", "roundtrip"])
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--codec", choices=CODECS, default="none")
    parser.add_argument("--count", type=int, default=1000, help="the first N records of the set")
    parser.add_argument("--partitions", type=int, help="make the topic first, with P partitions (else: first use makes it)")
    parser.add_argument("--idempotent", action="store_true")
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="don't wait for a new topic's leaders before producing to it")
    parser.add_argument("--any-timestamp", action="store_true", help="the producer could not set timestamps (kcat)")
    parser.add_argument("--grouped", action="store_true", help="records of equal headers were produced together (kcat)")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="bound of the whole run")
    chosen = parser.parse_args()
    if chosen.operation == "create" and not chosen.partitions:
        parser.error("create needs --partitions")
    return chosen


class Deadline:
    """The bound of a run: every wait asks it."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def check(self, doing):
        if time.monotonic() > self.end:
            raise Difference(f"timed out: {doing}")

    def left(self):
        return max(0.0, self.end - time.monotonic())


def run(client, version, create, produce, consume):
    """Runs one operation and prints its summary: the body of every client script in Python.

    `version`: the client's, or what gives it once the operation is done;
    create(options, deadline) makes the topic;
    produce(options, records, deadline) gives {record number: (partition, offset)} of the acks;
    consume(options, comparison, deadline) feeds `comparison.add` from offset 0 to the ends and gives {partition: end offset}.
    """
    chosen = options(client)
    expected = records(chosen.count)
    deadline = Deadline(chosen.timeout)
    floor = 0 if chosen.any_timestamp else None
    summary = {"client": client, "version": None if callable(version) else version, "operation": chosen.operation, "topic": chosen.topic}
    summary |= {"codec": chosen.codec, "idempotent": chosen.idempotent, "records": chosen.count}
    summary["value_bytes"] = sum(len(each.value) for each in expected)
    try:
        positions = {}
        if chosen.operation == "create" or (chosen.partitions and chosen.operation != "consume"):
            create(chosen, deadline)
        if chosen.operation in ("produce", "roundtrip"):
            begun = time.monotonic()
            positions = produce(chosen, expected, deadline)
            summary["produce_seconds"] = round(time.monotonic() - begun, 3)
            if len(positions) != chosen.count:
                raise Difference(f"{len(positions)} of {chosen.count} records were acked")
        if chosen.operation in ("consume", "roundtrip"):
            begun = time.monotonic()
            comparison = Comparison(expected, positions, floor, chosen.grouped)
            ends = consume(chosen, comparison, deadline)
            summary["consume_seconds"] = round(time.monotonic() - begun, 3)
            comparison.finish(ends)
            summary["partitions"] = len(ends)
        if callable(version):
            summary["version"] = version()
    except Difference as difference:
        print(f"{client} {chosen.operation} {chosen.topic}: {difference}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps(summary))


def kcat_files(folder, count):
    """One file per pair of headers, since kcat sets the same headers on all it sends: name CARRIER-ORIGIN, lines KEY tab VALUE."""
    groups = {}
    for each in records(count):
        name = "-".join(data.decode() for _, data in each.headers)
        groups.setdefault(name, []).append((each.key or b"") + b"\t" + each.value + b"\n")
    for name, lines in groups.items():
        pathlib.Path(folder, name).write_bytes(b"".join(lines))


def parse_line(line):
    """One record as kcat prints it: partition, offset, timestamp, key length, key, headers, value, between tabs."""
    partition, offset, stamp, key_length, key, headers, value = line.rstrip(b"\n").split(b"\t")
    pairs = [pair.split(b"=", 1) for pair in headers.split(b",") if pair]
    headers = [(name.decode(), data) for name, data in pairs]
    return int(partition), int(offset), None if key_length == b"-1" else key, value, headers, int(stamp)


def compare_lines(client, count, floor_ms, ends):
    """Compares what kcat read (on stdin); `ends` are PARTITION=END."""
    comparison = Comparison(records(int(count)), None, None if floor_ms == "-" else int(floor_ms), grouped=True)
    try:
        for line in sys.stdin.buffer:
            comparison.add(*parse_line(line))
        comparison.finish({int(partition): int(end) for partition, end in (pair.split("=") for pair in ends)})
    except Difference as difference:
        sys.exit(f"{client}: {difference}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["digest"]:
            print(digest())
        case ["csv"]:
            sys.stdout.write(csv_text())
        case ["kcat-files", folder, count]:
            kcat_files(folder, int(count))
        case ["compare", client, count, floor_ms, *ends]:
            compare_lines(client, count, floor_ms, ends)
        case _:
            sys.exit(__doc__)
