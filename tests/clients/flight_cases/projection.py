"""What a scan asks for is what it costs: columns, filters, places, limits, schemas; by a ticket made of protobuf (I2)."""

import datetime
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl

from .kit import comparison, mink as messages, refused, require, require_equal

COLUMNS = 20
BATCHES = 20
ROWS = 2_000
SCHEMA = pa.schema([(f"c{column}", pa.int64()) for column in range(COLUMNS)])


def rows(batch):
    """Row n has n in each column, moved on by the column's number; batches follow each other."""
    numbers = pa.arange(batch * ROWS, (batch + 1) * ROWS)
    return pa.record_batch([pc.add(numbers, pa.scalar(column)) for column in range(COLUMNS)], schema=SCHEMA)


def projection(mink, options):
    share = {}
    for compression in ["none", "lz4", "zstd"]:
        table = f"wide_{compression}"
        mink.create(table, ", ".join(f"c{column} BIGINT" for column in range(COLUMNS)), **{"table.log.arrow.compression": compression})
        mink.append(table, *[rows(batch) for batch in range(BATCHES)])
        share[compression] = two_of_twenty(mink, table)
    filters(mink, "wide_none")
    filters_by_type(mink)
    places(mink, "wide_none")
    timestamps(mink)
    limits(mink, "wide_none")
    schemas(mink)
    endpoints(mink)
    partitions(mink)
    filter_and_limit(mink, "wide_none")
    return {"rows": BATCHES * ROWS, "bytes_by_columns_share": share}


class Counted:
    """How many bytes a call received, read from the node's counters of what it sent."""

    def __init__(self, mink):
        self.mink = mink

    def bytes(self, call):
        before = self.mink.counted("mink_flight_bytes", 'direction="out"')
        call()
        return self.mink.counted("mink_flight_bytes", 'direction="out"') - before


def two_of_twenty(mink, table):
    """Bytes of two columns in two columns' share of all: at most 1.2."""
    found = mink.read(table, columns=["c17", "c3"])
    require_equal(found.schema.names, ["c17", "c3"], "columns")
    whole = pa.Table.from_batches([rows(batch) for batch in range(BATCHES)])
    require(found.equals(whole.select(["c17", "c3"])), "rows of two columns differ")
    counted = Counted(mink)
    all_bytes = counted.bytes(lambda: mink.read(table))
    two_bytes = counted.bytes(lambda: mink.read(table, columns=["c17", "c3"]))
    require(all_bytes > 0, "nothing was counted")
    share = two_bytes / (all_bytes * 2 / COLUMNS)
    require(share <= 1.2, f"{two_bytes} bytes for 2 columns of {COLUMNS}, {all_bytes} for all: {share:.2f} times their share")
    return round(share, 3)


def filters(mink, table):
    """Only rows that meet all; batches whose bounds show that none can are not sent, nor read."""
    at = 7 * ROWS + 5
    for operator, wanted in [
        ("EQUAL", [at]),
        ("LESS", list(range(at))),
        ("LESS_OR_EQUAL", list(range(at + 1))),
        ("GREATER", list(range(at + 1, BATCHES * ROWS))),
        ("GREATER_OR_EQUAL", list(range(at, BATCHES * ROWS))),
        ("NOT_EQUAL", [n for n in range(BATCHES * ROWS) if n != at]),
        ("IS_NULL", []),
        ("IS_NOT_NULL", list(range(BATCHES * ROWS))),
    ]:
        found = mink.read(table, columns=["c1"], filter=[comparison("c0", operator, at)])
        require_equal(found["c1"].to_pylist(), [n + 1 for n in wanted], f"rows by {operator}")
    both = [comparison("c0", "GREATER_OR_EQUAL", at), comparison("c19", "LESS", at + 19 + 3)]
    chunks = list(mink.chunks(mink.scan(table, columns=["c0"], filter=both)))
    require_equal([batch["c0"].to_pylist() for batch, _ in chunks], [[at, at + 1, at + 2]], "rows between two bounds")
    require_equal(chunks[0][1].next_offset, 8 * ROWS, "offset behind the batch that was looked at")
    refused(pa.ArrowInvalid, "a filter on no column", lambda: mink.read(table, filter=[comparison("x", "EQUAL", 1)]), "no column", "x")
    refused(pa.ArrowInvalid, "a constant of another type", lambda: mink.read(table, filter=[comparison("c0", "EQUAL", "a")]), "c0")
    refused(pa.ArrowInvalid, "no operator", lambda: mink.read(table, filter=[comparison("c0", "OPERATOR_UNSPECIFIED", 1)]), "operator")
    refused(pa.ArrowInvalid, "257 comparisons", lambda: mink.read(table, filter=[comparison("c0", "EQUAL", 1)] * 257), "256")
    refused(pa.ArrowInvalid, "no such column", lambda: mink.read(table, columns=["c0", "C1"]), "C1", "c19")


def filters_by_type(mink):
    """Comparisons of each kind of scalar, with nulls beside; NaN is above all else."""
    mink.create("kinds", "b BOOLEAN, f DOUBLE, d DECIMAL(10, 2), s STRING, x BYTES, day DATE, t TIME(3), ts TIMESTAMP_LTZ(3), z TIMESTAMP(6)")
    day, utc = datetime.date(2026, 1, 31), datetime.timezone.utc
    time_of_day = pa.array([None, 36_000_500, 0], pa.int32()).cast(pa.time32("ms"))
    batch = pa.record_batch(
        [
            pa.array([None, True, False]),
            pa.array([None, 1.5, float("nan")]),
            pa.array([None, 150, 0]).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
            pa.array([None, "b", "ä"]),
            pa.array([None, b"\1", b""]),
            pa.array([None, day, datetime.date(1969, 12, 31)]),
            time_of_day,
            pa.array([None, datetime.datetime(2026, 1, 31, 9, tzinfo=utc), datetime.datetime(1970, 1, 1, tzinfo=utc)], pa.timestamp("ms", "UTC")),
            pa.array([None, datetime.datetime(2026, 1, 31, 9), datetime.datetime(1970, 1, 1)], pa.timestamp("us")),
        ],
        names=["b", "f", "d", "s", "x", "day", "t", "ts", "z"],
    )
    mink.append("kinds", batch)
    for column, operator, value, wanted in [
        ("b", "EQUAL", "true", [1]),
        ("f", "GREATER", "1.5", [2]),
        ("f", "LESS_OR_EQUAL", "1.5", [1]),
        ("d", "EQUAL", "150.00", [1]),
        ("d", "LESS", "0.01", [2]),
        ("s", "GREATER", "b", [2]),
        ("s", "NOT_EQUAL", "b", [2]),
        ("day", "EQUAL", "2026-01-31", [1]),
        ("day", "LESS", "1970-01-01", [2]),
        ("t", "EQUAL", "10:00:00.5", [1]),
        ("ts", "EQUAL", "2026-01-31 10:00:00+01:00", [1]),
        ("z", "EQUAL", "2026-01-31 09:00:00", [1]),
        ("s", "IS_NULL", "", [0]),
        ("s", "IS_NOT_NULL", "", [1, 2]),
    ]:
        found = mink.read("kinds", filter=[comparison(column, operator, value)])
        wanted = pa.Table.from_batches([batch]).take(wanted)
        for name in ["s", "day"]:
            require_equal(found[name].to_pylist(), wanted[name].to_pylist(), f"{column} {operator} {value}")


def places(mink, table):
    """Scans begin at any offset, end at any, and say where their rows lie."""
    end = BATCHES * ROWS
    for first, until in [(0, end), (1, 2), (ROWS - 1, ROWS + 1), (ROWS, ROWS), (end - 1, end), (end, end), (17, None), (3 * ROWS + 5, 3 * ROWS + 9)]:
        fields = {} if until is None else {"until": until}
        scan = mink.scan(table, columns=["c0"], **{"from": messages.Position(offset=first)}, **fields)
        numbers = []
        for batch, info in mink.chunks(scan):
            require_equal(info.base_offset, first + len(numbers), "offset of a batch")
            numbers += batch["c0"].to_pylist()
            require_equal(info.next_offset, first + len(numbers), "offset behind a batch")
        require_equal(numbers, list(range(first, end if until is None else until)), f"rows from {first} until {until}")
    for place, wanted in [("earliest", end), ("latest", 0)]:
        position = messages.Position(**{place: getattr(messages, place.capitalize())()})
        require_equal(mink.read(table, columns=["c0"], **{"from": position}).num_rows, wanted, f"rows from {place}")
    # Beyond the end: what is there ends the scan, a place that is not there is refused.
    require_equal(mink.read(table, columns=["c0"], until=2**63).num_rows, end, "rows until beyond the end")
    beyond = {"from": messages.Position(offset=end + 1)}
    refused(pa.ArrowException, "an offset beyond the end", lambda: mink.read(table, **beyond), str(end))


def timestamps(mink):
    """The first row that was taken in at a time or later."""
    mink.create("times", "n BIGINT")
    for n in range(5):
        mink.append("times", pa.record_batch([pa.array([n])], names=["n"]))
        # Each has a millisecond of its own: times decide.
        time.sleep(0.005)
    taken = [info.commit_time_ms for _, info in mink.chunks(mink.scan("times"))]
    require_equal(taken, sorted(set(taken)), "times of batches that were taken in one after the other")
    require(abs(taken[0] - time.time() * 1000) < 60_000, f"a batch was taken in at {taken[0]}")
    for at, wanted in [(0, 0), (taken[0], 0), (taken[2], 2), (taken[2] + 1, 3), (taken[4], 4), (taken[4] + 1, 5), (2**62, 5), (-5, 0)]:
        found = mink.read("times", **{"from": messages.Position(timestamp_ms=at)})
        require_equal(found["n"].to_pylist(), list(range(wanted, 5)), f"rows from the time {at} on, of {taken}")


def limits(mink, table):
    for limit in [0, 1, ROWS, ROWS + 1, BATCHES * ROWS, BATCHES * ROWS + 1]:
        numbers = mink.read(table, columns=["c0"], limit=limit)["c0"].to_pylist()
        require_equal(numbers, list(range(min(limit, BATCHES * ROWS))), f"rows with the limit {limit}")


def filter_and_limit(mink, table):
    """I2: a reader that goes on behind a limited answer loses nothing: `next_offset` never passes a row that meets and was not sent."""
    met = [comparison("c0", "GREATER_OR_EQUAL", 100), comparison("c0", "LESS", 100 + ROWS)]
    numbers, first = [], 0
    for _ in range(2 * ROWS):
        scan = mink.scan(table, columns=["c0"], filter=met, limit=300, **{"from": messages.Position(offset=first)})
        chunks = list(mink.chunks(scan))
        if not chunks:
            break
        for batch, info in chunks:
            numbers += batch["c0"].to_pylist()
            first = info.next_offset
    require_equal(len(numbers), ROWS, "rows of a filter that were read 300 by 300, each time from `next_offset` on")
    require_equal(numbers, list(range(100, 100 + ROWS)), "these rows")


def schemas(mink):
    """A scan by the number of a schema has that one's columns, whatever came later."""
    mink.create("evolved", "a INT, gone STRING")
    old = pa.record_batch([pa.array([1], pa.int32()), pa.array(["x"])], names=["a", "gone"])
    mink.append("evolved", old)
    first = mink.describe("evolved").schema
    mink.sql(f"ALTER TABLE {mink.name('evolved')} ADD COLUMN b INT DEFAULT 7 FIRST, DROP COLUMN gone, RENAME COLUMN a TO wide, ALTER COLUMN wide TYPE BIGINT")
    second = mink.describe("evolved").schema
    require(second != first, "an ALTER without a schema of its own")
    mink.append("evolved", pa.record_batch([pa.array([2**40])], names=["wide"]))
    require_equal(mink.read("evolved").to_pylist(), [{"b": 7, "wide": 1}, {"b": 7, "wide": 2**40}], "rows by the newest schema")
    require_equal(mink.read("evolved", schema=second, columns=["wide"]).to_pylist(), [{"wide": 1}, {"wide": 2**40}], "rows by its number")
    found = mink.read("evolved", filter=[comparison("wide", "LESS", 2)])
    require_equal(found.to_pylist(), [{"b": 7, "wide": 1}], "a filter over a widened column")
    found = mink.read("evolved", filter=[comparison("b", "EQUAL", 7)], columns=["wide"])
    require_equal(found.num_rows, 2, "a filter on a default")
    require_equal(mink.read("evolved", schema=first, until=1).to_pylist(), [{"a": 1, "gone": "x"}], "old rows by the old schema")
    refused(pa.ArrowKeyError, "an unknown schema", lambda: mink.read("evolved", schema=99), "99")


def endpoints(mink):
    """A ticket for each bucket at its owner; one of a table that is gone reads nothing of its successor."""
    mink.create("buckets", "n BIGINT", buckets=3)
    mink.append("buckets", *[pa.record_batch([pa.array([n])], names=["n"]) for n in range(9)])
    info = mink.client.get_flight_info(mink.path("buckets"))
    require_equal(info.schema.names, ["n"], "columns of the information")
    require_equal(len(info.endpoints), 3, "endpoints")
    found = []
    for endpoint in info.endpoints:
        (location,) = endpoint.locations
        found.append(fl.connect(location).do_get(endpoint.ticket).read_all()["n"].to_pylist())
    require_equal(sorted(sum(found, [])), list(range(9)), "rows of all endpoints")
    require(all(found), f"an endpoint without rows: {found}")
    listed = [flight.descriptor.path for flight in mink.client.list_flights(f"{mink.database}.".encode())]
    require([mink.database.encode(), b"buckets"] in listed, f"ListFlights has no such table: {listed}")
    require_equal(mink.client.get_schema(mink.path("buckets")).schema.names, ["n"], "GetSchema")
    mink.sql(f"DROP TABLE {mink.name('buckets')}")
    mink.create("buckets", "n BIGINT", buckets=3)
    ticket = info.endpoints[0].ticket
    refused(pa.ArrowKeyError, "a ticket of a table that was dropped and made again", lambda: mink.client.do_get(ticket).read_all(), "again")


def partitions(mink):
    """Partitions are written and read by their values; a row of another one is refused, for whoever looks there would not find it."""
    mink.sql(f"CREATE TABLE {mink.name('parts')} (n BIGINT, day DATE NOT NULL) PARTITIONED BY (day)")
    days = [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)]

    def named(day):
        return {"partition": [messages.PartitionValue(column="day", value=str(day))]}

    for number, day in enumerate(days):
        batch = pa.record_batch([pa.array([number]), pa.array([day])], names=["n", "day"])
        refused(pa.ArrowKeyError, "a partition that is not there", lambda: mink.append("parts", batch, **named(day)), "no such partition")
        mink.sql(f"ALTER TABLE {mink.name('parts')} ADD PARTITION (day = '{day}')")
        mink.append("parts", batch, **named(day))
        require_equal(mink.read("parts", **named(day))["n"].to_pylist(), [number], f"rows of the partition {day}")
    require_equal(mink.read("parts")["n"].to_pylist(), [0, 1], "rows of all partitions")
    require_equal(len(mink.client.get_flight_info(mink.path("parts")).endpoints), 2, "endpoints")
    stranger = pa.record_batch([pa.array([2, 3]), pa.array(days)], names=["n", "day"])
    refused(pa.ArrowException, "a row of another partition", lambda: mink.append("parts", stranger, **named(days[0])), "day")
    require_equal(mink.read("parts", **named(days[0]))["n"].to_pylist(), [0], "rows after one of another partition was refused")
