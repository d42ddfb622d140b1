"""Wrong tickets, commands, descriptors, actions, statements and names."""

import grpc
import pyarrow as pa

from . import raw
from .hostile_kit import INVALID, NOT_FOUND, OK, PRECONDITION, SCHEMA, TYPED, UNIMPLEMENTED
from .kit import comparison, mink as messages, require, require_equal
from .raw import flight, schema_data

NASTY = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "' OR 1=1; DROP TABLE t;--",
    '"quoted"',
    "`ticks`",
    "semi;colon",
    "nul\0inside",
    "\u202egnirts\u202d",
    "line\nbreak\r\x1b[31m\x07",
    "${jndi:ldap://x}%s%n{}",
    "a" * 250,
    "b" * 40_000,
    "日本語",
    "mink",
    "information_schema",
]

def garbage(tried):
    """Bytes that are no message, and messages that are cut or have a byte changed."""
    scan = tried.mink.scan("target", columns=["n"], filter=[comparison("n", "EQUAL", 1)], limit=3)
    sound = messages.Ticket(scan=scan).SerializeToString()
    yield from [b"", b"\0", b"\xff" * 11, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" * 5_000, bytes(range(256))]
    yield from (sound[:cut] for cut in range(len(sound)))
    for at in range(len(sound)):
        yield sound[:at] + bytes([sound[at] ^ (1 << tried.random.randrange(8))]) + sound[at + 1 :]
    for _ in range(300):
        yield tried.random.randbytes(tried.random.randrange(64))


def tickets(tried):
    for ticket in garbage(tried):
        # Some of them happen to be sound.
        tried.call(f"the ticket {ticket!r:.200}", "DoGet", flight.Ticket(ticket=ticket), allowed=TYPED | {OK})
    database = tried.mink.database
    wrong = [
        (messages.Scan(database=database, table="nothing"), NOT_FOUND),
        (messages.Scan(database="mink", table="kv"), INVALID),
        (messages.Scan(database=database, table="target", bucket=1), INVALID),
        (messages.Scan(database=database, table="target", bucket=2**32 - 1), INVALID),
        (messages.Scan(database=database, table="target", partition=[messages.PartitionValue(column="n", value="1")]), INVALID),
        (messages.Scan(database=database, table="target", schema=2**32 - 1), NOT_FOUND),
        (messages.Scan(database=database, table="target", table_id=2**64 - 1), NOT_FOUND),
        (messages.Scan(database=database, table="target", columns=["n", "n"]), INVALID),
        (messages.Scan(database=database, table="target", filter=[comparison("l", "EQUAL", "1")]), INVALID),
        (messages.Scan(database=database, table="target", filter=[messages.Comparison(column="n", operator=99, value="1")]), INVALID),
    ]
    for scan, code in wrong:
        ticket = flight.Ticket(ticket=messages.Ticket(scan=scan).SerializeToString())
        found, text, _ = tried.call(f"{scan}", "DoGet", ticket)
        require_equal(found, code, f"code of {scan} ({text})")
    beyond = tried.mink.scan("target", **{"from": messages.Position(offset=2**64 - 1)})
    ticket = flight.Ticket(ticket=messages.Ticket(scan=beyond).SerializeToString())
    tried.call("an offset beyond all", "DoGet", ticket, allowed={grpc.StatusCode.OUT_OF_RANGE})


def messages_of_none(tried):
    """Bytes that are no message of Flight's at all, in the place of one."""
    for name in ["DoGet", "GetFlightInfo", "GetSchema", "DoAction", "ListFlights", "DoPut", "DoExchange"]:
        for sent in [b"\xff" * 11, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x05a", b"\x0b"]:
            _, text, _ = tried.call(f"{name} of {sent!r}", name, sent, allowed={INVALID})
            require(text, f"{name} of {sent!r} is refused without a word")


def long_texts(tried):
    """What a client sends comes back cut: a text that no header carries would be told as another error, which clients try again."""
    long = "x" * 60_000
    table = tried.mink.name("target")
    for statement in [
        f"SELECT {long}",
        f"DROP TABLE {table[:-1]}{long}\"",
        f"CREATE TABLE {table} (a {long})",
        f"CREATE TABLE {table} (a INT) WITH ('{long}' = '1')",
        f"CREATE TABLE {table} (a INT) WITH ('table.log.arrow.compression' = '{long}')",
        f"CREATE TABLE {table} (a INT) WITH ('bucket.num' = '{long}')",
        f"ALTER TABLE {table} DROP COLUMN {long}",
    ]:
        sql(tried, statement, allowed=TYPED - {grpc.StatusCode.RESOURCE_EXHAUSTED})
    wide = pa.schema([(long, pa.struct([(long, pa.int64())]))])
    tried.call("a long column", "DoPut", schema_data(wide, raw.path(tried.mink.database, "target")), allowed={PRECONDITION, INVALID})
    tried.call("a long path", "GetFlightInfo", raw.path(long), allowed={INVALID})


def descriptors(tried):
    commands = [raw.command(cmd) for cmd in garbage(tried)]
    paths = [raw.path(*names) for names in [(), ("",), ("a",), ("a", "b", "c"), ("", ""), tuple("x" * 1_000)]]
    odd = [flight.FlightDescriptor(type=kind, path=[tried.mink.database, "target"]) for kind in [0, 3, -1, 2**31 - 1]]
    for descriptor in commands + paths + odd:
        what = f"the descriptor {descriptor}"
        for name in ["GetFlightInfo", "GetSchema"]:
            tried.call(what, name, descriptor, allowed=TYPED | {OK})
        tried.call(what, "DoPut", schema_data(SCHEMA, descriptor), allowed=TYPED | {OK})
    scan = messages.Command(scan=tried.mink.scan("target")).SerializeToString()
    tried.call("a scan that is put", "DoPut", schema_data(SCHEMA, raw.command(scan)), allowed={INVALID})
    append = messages.Command(append=messages.Append(database=tried.mink.database, table="target")).SerializeToString()
    tried.call("an append that is followed", "DoExchange", flight.FlightData(flight_descriptor=raw.command(append)), allowed={INVALID})
    tried.call("no descriptor to follow", "DoExchange", flight.FlightData(), allowed={INVALID})
    tried.call("no message to follow", "DoExchange", allowed={INVALID})


def actions(tried):
    for name in ["", "SQL", "sql ", "x" * 10_000, *NASTY]:
        tried.call(f"the action {name!r:.100}", "DoAction", flight.Action(type=name, body=b"SHOW DATABASES"), allowed={UNIMPLEMENTED})
    for name in ["table.describe", "writer.open", "writer.state"]:
        for body in garbage(tried):
            # Nobody opens hundreds of writers a second: the node says so.
            tried.call(f"{name} {body!r:.100}", "DoAction", flight.Action(type=name, body=body), allowed=TYPED | {OK})
    tried.call("PollFlightInfo", "PollFlightInfo", raw.path("a", "b"), allowed={UNIMPLEMENTED})
    tried.call("no call of Flight", "DropEverything", b"", allowed={UNIMPLEMENTED})
    for criteria in [b"\xff\xfe", b"\0", b"x" * 10_000]:
        tried.call("criteria", "ListFlights", flight.Ticket(ticket=criteria), allowed=TYPED | {OK})


def sql(tried, statement, allowed=TYPED):
    body = statement if isinstance(statement, bytes) else statement.encode()
    return tried.call(f"the statement {body[:200]!r}", "DoAction", flight.Action(type="sql", body=body), allowed=allowed)


def statements(tried):
    table = tried.mink.name("target")
    deep = 5_000
    for statement in [
        "",
        ";",
        "--",
        "/*" * deep,
        "/*" * deep + "*/" * deep,
        "'" * 9_999,
        "SELECT 1",
        f"CREATE TABLE {table}2 (a {'ARRAY<' * deep}INT{'>' * deep})",
        f"CREATE TABLE {table}2 (a {'ROW<a ' * 33}INT{'>' * 33})",
        f"CREATE TABLE {table}2 (" + ", ".join(f"c{n} INT" for n in range(5_000)) + ")",
        f"CREATE TABLE {table} (a DECIMAL(39, 0))",
        f"CREATE TABLE {table}2 (a INT) WITH ('bucket.num' = '99999999999999999999')",
        f"CREATE TABLE {table}2 (a INT, a INT)",
        f"CREATE TABLE {table}2 (a INT DEFAULT 'x')",
        f"CREATE TABLE {table}2 (a INT, PRIMARY KEY (a))",
        f"ALTER TABLE {table} ALTER COLUMN n TYPE INT",
        f"ALTER TABLE {table} " + ", ".join(["ADD COLUMN x INT"] * 1_025),
        f"ALTER TABLE {table} DROP COLUMN n, DROP COLUMN t, DROP COLUMN l",
        f"ALTER TABLE {table} ADD PARTITION (n = 1)",
        f"DROP TABLE {tried.mink.database}.nothing",
        "DROP DATABASE mink",
        b"SHOW DATABASES\xff",
        "SHOW DATABASES" + " " * (1 << 20),
        "x" * (2 << 20),
    ]:
        sql(tried, statement)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def names(tried):
    """Names in every place that takes one. Columns may have what is no control character; databases and tables may not."""
    database = quoted(tried.mink.database)
    for number, name in enumerate(NASTY):
        for statement in [
            f"CREATE DATABASE {quoted(name)}",
            f"CREATE TABLE {quoted(name)}.t (a INT)",
            f"CREATE TABLE {database}.{quoted(name)} (a INT)",
            f"ALTER TABLE {database}.target RENAME COLUMN {quoted(name)} TO x",
            f"ALTER TABLE {database}.target RENAME COLUMN n TO {quoted(name)}, DROP COLUMN nothing",
            f"CREATE TABLE {database}.t{number} (a INT) WITH ({quoted(name)} = 'x')",
            f"CREATE TABLE {database}.t{number} (a INT) WITH ('bucket.num' = {quoted(name)})",
            f"DESCRIBE {database}.{quoted(name)}",
            f"SHOW TABLES FROM {quoted(name)}",
        ]:
            # For tables these two are names like any other.
            sql(tried, statement, TYPED | ({OK} if name in ("mink", "information_schema") else set()))
        sql(tried, f"CREATE TABLE {database}.c{number} ({quoted(name)} INT COMMENT {chr(39)}{name.replace(chr(39), chr(39) * 2)}{chr(39)})", TYPED | {OK})
        scan = messages.Scan(database=tried.mink.database, table="target", columns=[name], filter=[comparison(name, "EQUAL", name)])
        tried.call(f"the column {name!r:.100}", "DoGet", flight.Ticket(ticket=messages.Ticket(scan=scan).SerializeToString()))
        scan = tried.mink.scan("target", filter=[comparison("n", "EQUAL", name)])
        tried.call(f"the constant {name!r:.100}", "DoGet", flight.Ticket(ticket=messages.Ticket(scan=scan).SerializeToString()))
        tried.call(f"the path {name!r:.100}", "GetFlightInfo", raw.path(tried.mink.database, name), allowed=TYPED | {OK})
        schema = pa.schema([(name, pa.int64())])
        tried.put(f"a column {name!r:.100} that the table has not", schema=schema)
    # What was made is read like anything else.
    for row in tried.mink.sql(f"SHOW TABLES FROM {database}"):
        tried.mink.read(row["table"])
