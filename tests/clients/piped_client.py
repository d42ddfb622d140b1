#!/usr/bin/env python3
"""Produces and consumes the flights with a client that is no Python: `piped_client.py NAME PROGRAM... -- OPTIONS`, see README.md for these.

PROGRAM is asked to `create`, `produce` or `consume`; what goes through the pipes is one line per record, with tabs between:

  to `produce`      timestamp, length of the key (-1: none), key, headers (name=value, commas between), value
  from `produce`    number of the record, partition, offset: where its ack said that it is
  from `consume`    partition, offset, timestamp, length of the key, key, headers, value; then for each partition
                    "end", partition, end offset, offset that the group committed
  from each         "version" and the client's version, last
"""

import subprocess
import sys
import uuid

import flights


class Program:
    """One run of the program; its lines are read to the end, and a run that fails is a difference."""

    def __init__(self, client, command):
        self.client, self.command, self.version = client, command, "unknown"

    def lines(self, operation, options, deadline, *arguments, given=b""):
        command = [*self.command, operation, options.bootstrap, options.topic, *map(str, arguments)]
        try:
            done = subprocess.run(command, input=given, stdout=subprocess.PIPE, timeout=deadline.left(), check=False)
        except subprocess.TimeoutExpired as late:
            raise flights.Difference(f"timed out: {operation}") from late
        if done.returncode != 0:
            raise flights.Difference(f"{operation} ended with {done.returncode}")
        lines = done.stdout.splitlines()
        if not lines or not lines[-1].startswith(b"version\t"):
            raise flights.Difference(f"{operation} did not say all")
        self.version = lines.pop().split(b"\t")[1].decode()
        return lines


def line(record):
    """A record as `produce` reads it."""
    length = -1 if record.key is None else len(record.key)
    headers = b",".join(name.encode() + b"=" + data for name, data in record.headers)
    stamp = str(record.timestamp_ms).encode()
    return b"\t".join([stamp, str(length).encode(), record.key or b"", headers, record.value]) + b"\n"


def main():
    at = sys.argv.index("--")
    client, program = sys.argv[1], Program(sys.argv[1], sys.argv[2:at])
    sys.argv = [client, *sys.argv[at + 1 :]]

    def create(options, deadline):
        program.lines("create", options, deadline, options.partitions)

    def produce(options, records, deadline):
        given = b"".join(map(line, records))
        idempotent = "true" if options.idempotent else "false"
        acks = program.lines("produce", options, deadline, options.codec, idempotent, given=given)
        return {number: (partition, offset) for number, partition, offset in (map(int, ack.split(b"\t")) for ack in acks)}

    def consume(options, comparison, deadline):
        ends = {}
        group = f"{options.topic}-{uuid.uuid4()}"
        for said in program.lines("consume", options, deadline, int(deadline.left()), group):
            if not said.startswith(b"end\t"):
                comparison.add(*flights.parse_line(said))
                continue
            partition, end, committed = map(int, said.split(b"\t")[1:])
            if committed != end:
                raise flights.Difference(f"partition {partition}: {committed} committed, the end is {end}")
            ends[partition] = end
        return ends

    flights.run(client, lambda: program.version, create, produce, consume)


if __name__ == "__main__":
    main()
