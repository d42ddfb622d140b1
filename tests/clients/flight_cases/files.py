"""Files of pyarrow into tables by `mink write`, and tables out again by `mink read`, which pyarrow reads."""

import datetime
import decimal
import io
import pathlib
import subprocess

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from pyarrow import ipc

from .kit import require, require_equal
from .types import all_columns, same

PARQUET_ROWS = 100_000
CODECS = ["none", "snappy", "gzip", "lz4", "zstd"]


class Command:
    """The command line of a node."""

    def __init__(self, mink, options):
        self.program, self.address = options.mink, options.flight
        self.timeout, self.folder = options.timeout, pathlib.Path(options.folder)

    def run(self, *words, stdin=b"", code=0):
        done = subprocess.run(
            [self.program, *words, "--addr", self.address], input=stdin, capture_output=True, timeout=self.timeout
        )
        require_equal(done.returncode, code, f"exit code of mink {' '.join(words)}: {done.stderr.decode()}")
        return done

    def write(self, table, *words, rows, **more):
        said = self.run("write", table, *words, **more).stderr.decode()
        require(f"{rows:,} rows written to {table} in " in said, f"{words}: {said}")

    def read(self, table, *words):
        """All rows, by a stream of Arrow."""
        return ipc.open_stream(io.BytesIO(self.run("read", table, "--output", "arrow", *words).stdout)).read_all()


def files(mink, options):
    command = Command(mink, options)
    every_type(mink, command)
    other_types(mink, command)
    csv(mink, command)
    large(mink, command)
    refusals(mink, command)
    return {"parquet_rows": PARQUET_ROWS, "codecs": CODECS}


def every_type(mink, command):
    """Each type of tables in each form of file. Nanoseconds and the like are as their table has them: nothing is converted."""
    sql, batch = all_columns()
    table = pa.Table.from_batches([batch])
    forms = {}
    for name, write in [
        ("rows.parquet", lambda path: pq.write_table(table, path, row_group_size=7)),
        ("rows.arrow", lambda path: stream(table, path, ipc.new_file)),
        ("rows.arrows", lambda path: stream(table, path, ipc.new_stream)),
        ("rows.feather", lambda path: pa.feather.write_feather(table, path, compression="zstd")),
    ]:
        path = command.folder / name
        write(path)
        forms[name] = path
    for number, (name, path) in enumerate(forms.items()):
        for stdin in [False, True]:
            made = f"every{number}{'s' if stdin else ''}"
            mink.create(made, sql)
            target = f"{mink.database}.{made}"
            if stdin:
                kind = "parquet" if name.endswith("parquet") else "arrow"
                command.write(target, "--format", kind, rows=table.num_rows, stdin=path.read_bytes())
            else:
                command.write(target, str(path), rows=table.num_rows)
            same(mink.read(made), table, f"{name}, by stdin: {stdin}")
            same(command.read(target), table, f"{name}, read by the command line")


def stream(table, path, make):
    with make(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=11)


def other_types(mink, command):
    """What files have and tables do not: the same values come in."""
    when = datetime.datetime(2026, 1, 31, 12, 34, 56, 789_000)
    berlin = pa.timestamp("us", "Europe/Berlin")
    source = {
        "i": pa.array([1, None, -5], pa.int64()),
        "u": pa.array([1, None, 255], pa.uint8()),
        "t": pa.array(["a", None, "b"]).dictionary_encode(),
        "l": pa.array(["a", None, "b"], pa.large_string()),
        "n": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")], pa.decimal128(20, 2)),
        "w": pa.array([when, None, when], pa.timestamp("ns")),
        "z": pa.array([when, None, when], berlin),
        "f": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "d": pa.array([when.date(), None, when.date()], pa.date64()),
        "s": pa.array([[1, None], None, [2, 3]], pa.list_(pa.int16(), 2)),
        "o": pa.nulls(3),
    }
    mink.create(
        "other",
        "i INT, u SMALLINT, t STRING, l CHAR(1), n DECIMAL(5, 1), w TIMESTAMP(3), z TIMESTAMP_LTZ(3), f BYTES, d DATE, s ARRAY<BIGINT>, o DOUBLE",
    )
    table = pa.table(source)
    wanted = pa.table({
        "i": source["i"].cast(pa.int32()),
        "u": source["u"].cast(pa.int16()),
        "t": source["t"].cast(pa.string()),
        "l": source["l"].cast(pa.string()),
        "n": source["n"].cast(pa.decimal128(5, 1)),
        "w": source["w"].cast(pa.timestamp("ms")),
        "z": source["z"].cast(pa.timestamp("ms", "UTC")),
        "f": source["f"].cast(pa.binary()),
        "d": source["d"].cast(pa.date32()),
        "s": pa.array([[1, None], None, [2, 3]], pa.list_(pa.int64())),
        "o": pa.nulls(3, pa.float64()),
    })
    for codec in CODECS:
        path = command.folder / f"other_{codec}.parquet"
        # Its own Arrow types are noted in the file; a file of others has Parquet's alone.
        pq.write_table(table, path, compression=codec, version="2.6", store_schema=codec != "gzip")
        command.write(f"{mink.database}.other", str(path), rows=3)
    path = command.folder / "other.arrow"
    stream(table, path, ipc.new_file)
    command.write(f"{mink.database}.other", str(path), rows=3)
    found = mink.read("other")
    copies = len(CODECS) + 1
    require_equal(found.num_rows, 3 * copies, "rows of other types")
    for name in wanted.schema.names:
        require_equal(found[name].to_pylist(), wanted[name].to_pylist() * copies, f"column {name}")


def csv(mink, command):
    """CSV as pyarrow and pandas write it; what `mink read` prints, pyarrow reads."""
    sql = "id BIGINT NOT NULL, name STRING, amount DECIMAL(12, 2), at TIMESTAMP(6), ok BOOLEAN"
    mink.create("csv", sql)
    when = datetime.datetime(2026, 1, 31, 12, 34, 56, 789_000)
    table = pa.table({
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a,\"b\"\nc", None, ""],
        "amount": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")], pa.decimal128(12, 2)),
        "at": pa.array([when, None, when], pa.timestamp("us")),
        "ok": [True, None, False],
    })
    path = command.folder / "rows.csv"
    pa.csv.write_csv(table, path)
    command.write(f"{mink.database}.csv", str(path), rows=3)
    same(mink.read("csv"), table, "a file of pyarrow")
    printed = command.run("read", f"{mink.database}.csv", "--output", "csv").stdout
    kinds = {field.name: field.type for field in table.schema}
    options = pa.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True, quoted_strings_can_be_null=False)
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    found = pa.csv.read_csv(io.BytesIO(printed), parse_options=parse, convert_options=options)
    same(found, table, "what is printed, read by pyarrow")


def large(mink, command):
    """Many rows come in one file, in order, into one bucket."""
    mink.create("large", "n BIGINT, s STRING, x DOUBLE")
    numbers = pa.array(range(PARQUET_ROWS), pa.int64())
    table = pa.table({"n": numbers, "s": numbers.cast(pa.string()), "x": numbers.cast(pa.float64())})
    path = command.folder / "large.parquet"
    pq.write_table(table, path, row_group_size=30_000)
    command.write(f"{mink.database}.large", str(path), rows=PARQUET_ROWS)
    same(mink.read("large"), table, "a large file")
    some = command.read(f"{mink.database}.large", "--columns", "s,n", "--where", "n >= 99990")
    same(some, table.select(["s", "n"]).slice(99_990), "some of its rows")


def refusals(mink, command):
    mink.create("refused", "n INT, s CHAR(2)")
    target = f"{mink.database}.refused"
    for number, (columns, words) in enumerate([
        ({"n": pa.array([1.5])}, ["column n", "Float64", "INT"]),
        ({"n": pa.array([1, 2**40])}, ["row 2: n", "1099511627776", "1 row before it written"]),
        ({"s": pa.array(["ab", "abc"])}, ["row 2: s", "CHAR(2)"]),
        ({"n": pa.array([1]), "x": pa.array([1])}, ["\"x\"", "--columns"]),
    ]):
        path = command.folder / f"refused{number}.parquet"
        pq.write_table(pa.table(columns), path)
        said = command.run("write", target, str(path), code=1).stderr.decode()
        missing = [word for word in words if word not in said]
        require(not missing, f"{columns}: the error does not say {missing}: {said}")
    require_equal(mink.read("refused").num_rows, 2, "rows before those that were refused")
