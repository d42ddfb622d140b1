#!/usr/bin/env python3
"""Arrow Flight as users have it: pyarrow against a node.

  flight.py CASE --flight HOST:PORT [--http HOST:PORT] [--kafka HOST:PORT] [--database NAME] ...

  types        every type there and back: nulls, bounds, nesting, names, other layouts of Arrow, each compression
  large        one message of 256 MiB, split into batches of the table
  projection   two columns of twenty cost two columns' bytes; filters, places, limits, a scan by its protobuf ticket
  pipelined    1,000 batches without waiting; writers with sequences
  follow       a tail sees every row once and in order, and ends when it is cancelled
  drained      says `open` when it has calls open, and expects that they end with UNAVAILABLE when the node is stopped then
  alter        writers of two schemas at once; two ALTERs at once
  kafka        a topic's records as Arrow (needs --kafka)
  topics       a table with columns as a topic of Kafka's clients, both ways (needs --kafka)
  topics_table makes the table of `topics` alone
  hostile      wrong and lying messages get typed errors, and the node lives (needs --http)
  unharmed     asks only that a node answers after all that: no panic, no task that died (needs --http)
  writer       appends numbered rows until it is killed or the stop file appears; goes on behind what is stored (needs --file)
  verify       reads what `writer` wrote: dense from 0, none twice
  files        files of pyarrow go in by `mink write`, tables come out by `mink read` (needs --mink and --folder)
  docs         runs the code blocks of docs/flight.md as they stand

Each makes a database of its own, `--database` or one with a random name, and prints one line of JSON at its end. Exit code 0, or 1 with
the first difference on stderr.
"""

import argparse
import importlib
import json
import sys

from flight_cases.kit import Difference, Mink

CASES = {
    "types": "types",
    "large": "large",
    "projection": "projection",
    "pipelined": "pipelined",
    "follow": "follow",
    "drained": "follow",
    "alter": "alter",
    "kafka": "kafka",
    "topics": "typed_topics",
    "topics_table": "typed_topics",
    "hostile": "hostile",
    "unharmed": "hostile",
    "writer": "writer",
    "verify": "writer",
    "files": "files",
    "docs": "docs",
}


def main():
    parser = argparse.ArgumentParser(prog="flight", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--flight", required=True, metavar="HOST:PORT")
    parser.add_argument("--kafka", metavar="HOST:PORT")
    parser.add_argument("--http", metavar="HOST:PORT")
    parser.add_argument("--database", help="default: one with a random name")
    parser.add_argument("--file", help="writer: holds its id; made at its first start")
    parser.add_argument("--acks", help="writer: a byte is appended for each ack")
    parser.add_argument("--stop-file", help="writer: it ends when this file exists")
    parser.add_argument("--rate", type=float, default=200, help="writer: batches per second at most")
    parser.add_argument("--rows", type=int, help="large: rows of the message (default: 8,000,000)")
    parser.add_argument("--message-bytes-max", type=int, default=257 << 20, help="hostile: the node's flight-message-bytes-max")
    parser.add_argument("--mink", help="files: the mink binary")
    parser.add_argument("--folder", help="files: where its files lie")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="bound of each wait")
    options = parser.parse_args()
    case = importlib.import_module(f"flight_cases.{CASES[options.case]}")
    try:
        summary = getattr(case, options.case)(Mink(options), options)
    except Difference as difference:
        sys.exit(f"{options.case}: {difference}")
    print(json.dumps({"case": options.case, **summary}))


if __name__ == "__main__":
    main()
