"""Every type there and back: nulls, bounds, nesting, names, other layouts of Arrow, each compression of tables and of messages."""

import datetime
import decimal
import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as fl
from pyarrow import ipc

from .kit import dense, refused, require, require_equal

COMPRESSIONS = ["none", "lz4", "zstd"]
# The precisions of times, and their units in Arrow.
UNITS = {0: "s", 1: "ms", 3: "ms", 4: "us", 6: "us", 7: "ns", 9: "ns"}
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
TEXTS = ["", "ä", "日本語", "\u202eright to left", "line\nend\ttab", "\0", "x" * 5_000, "🦡"]


def bounds(bits):
    return [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1]


def whole(values, precision, unit):
    """The values without digits below the precision: no column takes those."""
    step = PER_SECOND[unit] // 10**precision
    return [value // step * step for value in values]


def of_day(precision, unit):
    step = PER_SECOND[unit] // 10**precision
    values = whole([0, step, 86_400 * PER_SECOND[unit] - 1], precision, unit)
    return pa.array(values, pa.int32() if unit in ("s", "ms") else pa.int64())


def scalars():
    """Pairs of a type in SQL and its values."""
    yield "BOOLEAN", pa.array([True, False])
    for name, bits in [("TINYINT", 8), ("SMALLINT", 16), ("INT", 32), ("BIGINT", 64)]:
        yield name, pa.array(bounds(bits), getattr(pa, f"int{bits}")())
    odd = [0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324]
    yield "FLOAT", pa.array([*odd[:5], 1.401298464324817e-45, 3.4028234663852886e38], pa.float32())
    yield "DOUBLE", pa.array([*odd, 1.7976931348623157e308])
    for precision, scale in [(1, 0), (12, 2), (18, 18), (19, 0), (38, 0), (38, 10), (38, 38)]:
        most = decimal.Decimal((0, (9,) * precision, -scale))
        least = decimal.Decimal((0, (1,), -scale))
        values = [most, most.copy_negate(), least, decimal.Decimal(0)]
        yield f"DECIMAL({precision}, {scale})", pa.array(values, pa.decimal128(precision, scale))
    yield "CHAR(1)", pa.array(["", "a", "日", "🦡"])
    yield "CHAR(5000)", pa.array(TEXTS)
    yield "STRING", pa.array(TEXTS)
    yield "BINARY(4)", pa.array([b"", b"\0\xff", b"1234"])
    yield "BYTES", pa.array([b"", b"\0", b"\xff\xfe", bytes(range(256)) * 20])
    first, last = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
    yield "DATE", pa.array([first, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), last])
    for precision, unit in UNITS.items():
        yield f"TIME({precision})", of_day(precision, unit).cast(pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit))
        instants = [-(2**62), -1, 0, 1, 2**62] if unit in ("us", "ns") else [-62_135_596_800, -1, 0, 1, 253_402_300_799]
        instants = pa.array(whole(instants, precision, unit), pa.int64())
        yield f"TIMESTAMP({precision})", instants.cast(pa.timestamp(unit))
        yield f"TIMESTAMP_LTZ({precision})", instants.cast(pa.timestamp(unit, "UTC"))


def nested():
    entry = pa.map_(pa.string(), pa.int32())
    row = pa.struct([("m", entry), ("größe", pa.float64())])
    values = [
        [{"m": [("a", 1), ("b", None)], "größe": 1.5}, {"m": [], "größe": None}, {"m": None, "größe": 0.0}, None],
        [],
        [{"m": [("日本", 2)], "größe": -1.0}],
    ]
    yield "ARRAY<ROW<m MAP<STRING, INT>, `größe` DOUBLE>>", pa.array(values, pa.list_(row))
    yield "ARRAY<ARRAY<BIGINT>>", pa.array([[[1, None], [], None], []], pa.list_(pa.list_(pa.int64())))
    yield "MAP<INT, ARRAY<STRING>>", pa.array([[(1, ["x", None]), (2, None)], []], pa.map_(pa.int32(), pa.list_(pa.string())))
    inner = pa.struct([("b", pa.struct([("c", pa.decimal128(5, 2)), ("d", pa.timestamp("ms", "UTC"))]))])
    when = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)
    values = [{"b": {"c": decimal.Decimal("1.25"), "d": when}}, {"b": None}, {"b": {"c": None, "d": None}}]
    yield "ROW<b ROW<c DECIMAL(5, 2), d TIMESTAMP_LTZ(3)>>", pa.array(values, inner)


def all_columns():
    """(SQL of the columns, a batch): each column's values again and again, and a null at its place in each round."""
    columns = list(itertools.chain(scalars(), nested()))
    rows = 2 * max(len(values) for _, values in columns) + 2
    arrays = []
    for _, values in columns:
        with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
        places = [row % len(with_null) for row in range(rows)]
        arrays.append(with_null.take(pa.array(places)))
    names = [f"c{number}" for number in range(len(columns))]
    sql = ", ".join(f"{name} {kind}" for name, (kind, _) in zip(names, columns))
    return sql, pa.record_batch(arrays, names=names)


def same(found, wanted, what):
    """Every column bit for bit: a table against batches."""
    wanted = pa.Table.from_batches(wanted) if isinstance(wanted, list) else wanted
    require_equal(found.schema.names, wanted.schema.names, f"{what}: columns")
    require_equal(found.num_rows, wanted.num_rows, f"{what}: rows")
    for name in wanted.schema.names:
        left, right = found[name].combine_chunks(), wanted[name].combine_chunks()
        require_equal(left.type, right.type, f"{what}: type of {name}")
        left.validate(full=True)
        if not left.equals(right):
            for row, (one, other) in enumerate(zip(left, right)):
                require(one.equals(other), f"{what}: column {name}, row {row}: found {one!r:.300}; wanted {other!r:.300}")
            require(False, f"{what}: column {name} differs")


def types(mink, options):
    sql, batch = all_columns()
    # A codec of the message, each against each of the table.
    for stored in COMPRESSIONS:
        table = f"all_{stored}"
        mink.create(table, sql, **{"table.log.arrow.compression": stored})
        sent = [batch]
        require_equal(dense(mink.append(table, batch)), batch.num_rows, "rows that were acked")
        for codec in ["lz4", "zstd"]:
            append_compressed(mink, table, batch, codec)
            sent.append(batch)
        same(mink.read(table), sent, f"all types, stored with {stored}")
        # Column by column, which no whole message answers.
        for name in batch.schema.names:
            same(mink.read(table, columns=[name]), pa.Table.from_batches(sent).select([name]), f"column {name}, stored with {stored}")
    nulls_alone(mink, sql, batch.schema)
    refusals(mink)
    not_a_number(mink)
    names(mink)
    empty(mink)
    layouts(mink)
    return {"columns": batch.num_columns, "rows": batch.num_rows * 3 * len(COMPRESSIONS)}


def append_compressed(mink, table, batch, codec):
    """As `Mink.append`, with a message whose buffers the client compresses."""
    options = fl.FlightCallOptions(timeout=mink.timeout, write_options=ipc.IpcWriteOptions(compression=codec))
    writer, reader = mink.client.do_put(mink.path(table), batch.schema, options)
    writer.write_batch(batch)
    writer.done_writing()
    require(reader.read() is not None, f"no ack of a message that is compressed with {codec}")
    writer.close()


def nulls_alone(mink, sql, schema):
    """Batches of one row and of nothing but nulls."""
    mink.create("nulls", sql)
    batch = pa.record_batch([pa.nulls(3, field.type) for field in schema], schema=schema)
    mink.append("nulls", batch, batch.slice(0, 1))
    same(mink.read("nulls"), [batch, batch.slice(0, 1)], "nulls alone")


def refusals(mink):
    """Values that a column does not take are refused, whatever the batch has beside them; nothing of it is stored."""
    cases = [
        ("CHAR(2)", pa.array(["ab", "äöü"]), "at most 2"),
        ("BINARY(2)", pa.array([b"ab", b"abc"]), "at most 2"),
        ("DECIMAL(3, 1)", pa.array([decimal.Decimal("1.5")], pa.decimal128(4, 1)), "column"),
        ("TIME(0)", pa.array([86_400], pa.int32()).cast(pa.time32("s")), "no time of day"),
        ("TIME(0)", pa.array([-1], pa.int32()).cast(pa.time32("s")), "no time of day"),
        ("TIME(1)", pa.array([100, 99], pa.int32()).cast(pa.time32("ms")), "digits"),
        ("TIMESTAMP(4)", pa.array([100, 10], pa.timestamp("us")), "digits"),
        ("TIMESTAMP_LTZ(7)", pa.array([-1], pa.timestamp("ns", "UTC")), "digits"),
        ("MAP<STRING, INT>", pa.array([[("a", 1), ("b", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())), "twice"),
        ("INT", pa.array([1], pa.int64()), "column"),
        ("BIGINT", pa.array([1], pa.int32()), "column"),
        ("STRING", pa.array([b"x"]), "column"),
        ("TIMESTAMP(3)", pa.array([1], pa.timestamp("us")), "column"),
        ("TIMESTAMP(3)", pa.array([1], pa.timestamp("ms", "UTC")), "column"),
        ("ARRAY<INT NOT NULL>", pa.array([[1, None]], pa.list_(pa.int32())), "null"),
        ("ROW<a INT NOT NULL>", pa.array([{"a": None}], pa.struct([("a", pa.int32())])), "null"),
        ("INT NOT NULL", pa.array([1, None], pa.int32()), "null"),
    ]
    for number, (kind, values, word) in enumerate(cases):
        mink.create(f"refuses{number}", f"c {kind}")
        batch = pa.record_batch([values], names=["c"])
        text = refused(pa.ArrowException, f"{values} in a column {kind}", lambda: mink.append(f"refuses{number}", batch), "c")
        require(word in text.lower() or word in text, f"{kind}: the error does not say {word!r}: {text}")
        require_equal(mink.read(f"refuses{number}").num_rows, 0, f"rows after {values} was refused in a column {kind}")
    mink.create("refuses", "a INT, b INT NOT NULL")
    for fields, word in [([("a", pa.int32())], "missing"), ([("b", pa.int32()), ("x", pa.int32())], "no column"), ([], "missing")]:
        schema = pa.schema(fields)
        batch = pa.record_batch([pa.array([1], kind) for _, kind in fields], schema=schema)
        refused(pa.ArrowException, f"columns {schema.names}", lambda: mink.append("refuses", batch), word)


def not_a_number(mink):
    """NaN is kept, with its bits, and is no null."""
    mink.create("nan", "f FLOAT, d DOUBLE")
    raw = b"\1\0\xf8\x7f" * 2
    singles = pa.Array.from_buffers(pa.float32(), 2, [None, pa.py_buffer(b"\1\0\xc0\x7f\xff\xff\xff\xff")])
    doubles = pa.Array.from_buffers(pa.float64(), 2, [None, pa.py_buffer(raw + b"\xff" * 8)])
    mink.append("nan", pa.record_batch([singles, doubles], names=["f", "d"]))
    found = mink.read("nan")
    for name, wanted in [("f", singles), ("d", doubles)]:
        (chunk,) = found[name].chunks
        require_equal(chunk.buffers()[1].to_pybytes()[: wanted.nbytes], wanted.buffers()[1].to_pybytes(), f"bits of {name}")
        require_equal(chunk.null_count, 0, f"nulls of {name}")


def names(mink):
    """Names of columns are any text but control characters."""
    wild = ["größe", "日本", "a b", 'quo"te', "dot.ted", "select", "🦡", "x" * 255, "\u202e", "Key", "key"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in wild]
    mink.create("wild", ", ".join(f"{name} INT" for name in quoted))
    batch = pa.record_batch([pa.array([number, None], pa.int32()) for number in range(len(wild))], names=wild)
    # In any order: columns are found by their names.
    mink.append("wild", batch, batch)
    mink.append("wild", batch.select(wild[::-1]))
    same(mink.read("wild"), [batch] * 3, "names")
    same(mink.read("wild", columns=wild[::-1]), pa.Table.from_batches([batch] * 3).select(wild[::-1]), "names by projection")
    described = [row["column"] for row in mink.sql(f"DESCRIBE {mink.name('wild')}")]
    require_equal(described, wild, "DESCRIBE")
    statement = mink.describe("wild").create_statement
    mink.sql(statement.replace(f"{mink.database}.wild", f"{mink.database}.wild_again").replace('"wild"', '"wild_again"'))
    require_equal(mink.read("wild_again").schema.names, wild, "columns of the table that SHOW CREATE TABLE made")


def empty(mink):
    """A batch without rows is acked and has no place; a batch without columns has none of the table's."""
    mink.create("empty", "a INT, b STRING")
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    one = pa.record_batch([[1], ["x"]], schema=schema)
    places = mink.append("empty", one.slice(0, 0), one)
    require_equal([len(placed) for placed in places], [0, 1], "places of an empty batch and of one row")
    same(mink.read("empty"), [one], "an empty batch beside one row")
    require_equal(mink.append("empty", one.slice(0, 0)), [[]], "places of an empty batch alone")
    # All columns are nullable: a batch that has some of them leaves the others null.
    mink.append("empty", pa.record_batch([pa.array(["y"])], names=["b"]))
    require_equal(mink.read("empty").to_pylist(), [{"a": 1, "b": "x"}, {"a": None, "b": "y"}], "a batch of one column")
    refused(pa.ArrowException, "a table without columns", lambda: mink.sql(f"CREATE TABLE {mink.name('none')} ()"))


def layouts(mink):
    """Other forms that Arrow has for the same values."""
    texts = pa.array(["a", None, "日本", "a", "", "longer than twelve bytes"])
    blobs = pa.array([b"a", None, b"\xff", b"a", b"", b"longer than twelve bytes"])
    lists = pa.array([[1], None, [], [2, None], [3], [4]], pa.list_(pa.int64()))
    numbers = pa.array([1, None, 3, 1, 5, 6], pa.int32())
    instants = pa.array([0, None, 1, 2, 3, 4], pa.timestamp("ms", "UTC"))
    plain = pa.record_batch([texts, blobs, lists, numbers, instants], names=list("tblni"))
    forms = {
        "large": [texts.cast(pa.large_string()), blobs.cast(pa.large_binary()), lists.cast(pa.large_list(pa.int64())), numbers, instants],
        "views": [texts.cast(pa.string_view()), blobs.cast(pa.binary_view()), lists, numbers, instants],
        "dictionary": [texts.dictionary_encode(), blobs.dictionary_encode(), lists, numbers.dictionary_encode(), instants],
        "small indices": [pc.cast(texts.dictionary_encode(), pa.dictionary(pa.int8(), pa.string())), blobs, lists, numbers, instants],
        "zone": [texts, blobs, lists, numbers, instants.cast(pa.timestamp("ms", "Europe/Berlin"))],
        "slices": [pa.concat_arrays([column, column]).slice(len(column)) for column in plain.columns],
    }
    for stored in COMPRESSIONS:
        table = f"layouts_{stored}"
        mink.create(table, "t STRING, b BYTES, l ARRAY<BIGINT>, n INT, i TIMESTAMP_LTZ(3)", **{"table.log.arrow.compression": stored})
        for name, columns in forms.items():
            batch = pa.record_batch(columns, names=plain.schema.names)
            # Twice in a call: the dictionary is sent once, or again as it is.
            mink.append(table, batch, batch)
            mink.append(table, batch.slice(1, 3))
        wanted = [plain, plain, plain.slice(1, 3)] * len(forms)
        same(mink.read(table), wanted, f"layouts, stored with {stored}")
    growing_dictionaries(mink)


def growing_dictionaries(mink):
    """A dictionary that is replaced, and one that grows by deltas, between batches of a call."""
    mink.create("dictionaries", "t STRING, again STRING")
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("t", kind), ("again", kind)])

    def rows(values, indices):
        column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(values))
        return pa.record_batch([column, column], schema=schema)

    batches = [rows(["a", "b"], [0, 1, None]), rows(["a", "b", "c"], [2, 0]), rows(["z"], [0, 0])]
    wanted = ["a", "b", None, "c", "a", "z", "z"]
    sent = 0
    for deltas in [False, True]:
        write_options = ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        options = fl.FlightCallOptions(timeout=mink.timeout, write_options=write_options)
        writer, reader = mink.client.do_put(mink.path("dictionaries"), schema, options)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        acks = 0
        while reader.read() is not None:
            acks += 1
        writer.close()
        require_equal(acks, len(batches), f"acks of batches with dictionaries (deltas: {deltas})")
        sent += 1
        found = mink.read("dictionaries")
        for name in ["t", "again"]:
            require_equal(found[name].to_pylist(), wanted * sent, f"values of {name} (deltas: {deltas})")
