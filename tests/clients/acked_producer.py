#!/usr/bin/env python3
"""A producer for crash tests: sends numbered records until it is told to stop, and writes down every ack.

  acked_producer.py --bootstrap HOST:PORT --topic T --log FILE [--idempotent] [--name NAME] [--first ID] [--stop-file FILE] [--count N] ...

Record ID has the value `NAME ID FLIGHT`, where FLIGHT is the value of record ID (modulo their number) of the flights, and its key,
headers and timestamp; with --timestamp-base MS the timestamp is MS + ID. (Against Apache Kafka an idempotent producer needs that: with
times of 2013 it was seen to store batches twice over a crash, as it then holds the producer for long expired.)

For each ack one line `ack PARTITION OFFSET ID` is appended to the log, for each refusal one line
`refused ID CODE`; both at once, so that killing this process loses at most acks that nobody has seen. It goes on over broker restarts
without a bound on time, and ends when the stop file appears, when N records are sent, or at SIGTERM: then it waits until all it sent is
answered (at most --drain seconds) and prints a summary. Exit code 0: all answered, none refused; 1 otherwise.
verify_acked.py reads the log.
"""

import argparse
import json
import os
import signal
import sys
import time

from confluent_kafka import Producer

import flights

# Stop file and rate are looked at once per this many records.
RECORDS_PER_TURN = 50


def timestamp_of(base, number, record):
    return record.timestamp_ms if base is None else base + number


def value_of(name, number, records):
    return f"{name} {number} ".encode() + records[number % len(records)].value


class AckedProducer:
    def __init__(self, options):
        self.options = options
        self.records = flights.records()
        self.log = open(options.log, "a", buffering=1)
        self.acked = self.refused = 0
        self.fatal = None
        self.stopping = False
        self.next = options.first
        signal.signal(signal.SIGTERM, self.stop)
        self.producer = Producer(
            {
                "bootstrap.servers": options.bootstrap,
                "acks": "all",
                "compression.type": options.codec,
                "enable.idempotence": options.idempotent,
                "linger.ms": options.linger_ms,
                "max.in.flight.requests.per.connection": 5,
                "queue.buffering.max.messages": options.outstanding,
                # Never give up: whether an unanswered record is stored is for the broker to decide, not for a clock here.
                "message.timeout.ms": 0,
                "socket.timeout.ms": 10_000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1000,
                "topic.metadata.propagation.max.ms": 60_000,
                "error_cb": self.on_error,
                # Broken connections are what this producer is made for: they are not worth a line each.
                "log_level": 2,
            }
        )

    def stop(self, *_):
        self.stopping = True

    def on_error(self, error):
        if error.fatal():
            self.fatal = str(error)

    def report(self, number):
        def answered(error, message):
            if error is None:
                self.acked += 1
                self.log.write(f"ack {message.partition()} {message.offset()} {number}\n")
            else:
                self.refused += 1
                self.log.write(f"refused {number} {error.name()}\n")

        return answered

    def send(self, number):
        record = self.records[number % len(self.records)]
        value = value_of(self.options.name, number, self.records)
        while not self.stopping and self.fatal is None:
            try:
                self.producer.produce(
                    self.options.topic,
                    value=value,
                    key=record.key,
                    headers=record.headers,
                    timestamp=timestamp_of(self.options.timestamp_base, number, record),
                    on_delivery=self.report(number),
                )
                return True
            except BufferError:
                # The queue is full, so --outstanding records wait for their acks: the broker is away or slow.
                self.producer.poll(0.05)
                self.look_for_stop()
        return False

    def look_for_stop(self):
        if self.options.stop_file and os.path.exists(self.options.stop_file):
            self.stopping = True

    def run(self):
        begun = time.monotonic()
        last = None if self.options.count is None else self.options.first + self.options.count
        while not self.stopping and self.fatal is None and self.next != last:
            if not self.send(self.next):
                break
            self.next += 1
            self.producer.poll(0)
            if self.next % RECORDS_PER_TURN == 0:
                self.look_for_stop()
                if self.options.rate:
                    due = begun + (self.next - self.options.first) / self.options.rate
                    # A poll returns with the first ack it reports, so it takes several to wait.
                    while (early := due - time.monotonic()) > 0:
                        self.producer.poll(early)
        deadline = time.monotonic() + self.options.drain
        while self.producer.flush(0.2) and self.fatal is None and time.monotonic() < deadline:
            pass
        sent = self.next - self.options.first
        summary = {"sent": sent, "acked": self.acked, "refused": self.refused, "fatal": self.fatal}
        summary["seconds"] = round(time.monotonic() - begun, 3)
        print(json.dumps(summary))
        return self.fatal is None and self.refused == 0 and self.acked == sent


def main():
    parser = argparse.ArgumentParser(prog="acked_producer")
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--log", required=True, help="acks are appended here")
    parser.add_argument("--name", default="p", help="tells several producers of one topic apart; no spaces")
    parser.add_argument("--idempotent", action="store_true")
    parser.add_argument("--codec", choices=flights.CODECS, default="none")
    parser.add_argument("--first", type=int, default=0, help="first id, for a producer that takes over from an earlier one")
    parser.add_argument("--count", type=int, help="stop after this many records")
    parser.add_argument("--timestamp-base", type=int, metavar="MS", help="the timestamp of record ID is MS + ID")
    parser.add_argument("--rate", type=float, help="records per second (default: as fast as acks allow)")
    parser.add_argument("--outstanding", type=int, default=2000, help="at most this many records wait for an ack")
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--stop-file", help="stop when this file exists")
    parser.add_argument("--drain", type=float, default=60, metavar="SECONDS", help="bound of the wait for the last acks")
    sys.exit(0 if AckedProducer(parser.parse_args()).run() else 1)


if __name__ == "__main__":
    main()
