"""One message of 256 MiB: it is split into batches of the table, all rows come back in order, and offsets are dense."""

import pyarrow as pa
import pyarrow.compute as pc

from .kit import dense, require, require_equal

ROWS = 8_000_000
COLUMNS = 4
# The products wrap.
FACTORS = [-3, 2_654_435_761, 6_364_136_223_846_793_005]
SCHEMA = pa.schema([(f"n{column}", pa.int64()) for column in range(COLUMNS)])


def rows(first, count):
    """Row n has n, and numbers that follow from it."""
    numbers = pa.arange(first, first + count)
    columns = [numbers, *(pc.multiply(numbers, pa.scalar(factor)) for factor in FACTORS)]
    return pa.record_batch(columns, schema=SCHEMA)


def large(mink, options):
    count = options.rows or ROWS
    summary = {"rows": 2 * count, "bytes": 2 * count * COLUMNS * 8}
    for compression in ["none", "zstd"]:
        table = f"large_{compression}"
        mink.create(table, ", ".join(f"n{column} BIGINT" for column in range(COLUMNS)), **{"table.log.arrow.compression": compression})
        # A writer: each batch of the message has the sequence of its first row.
        writer = mink.open_writer()
        places = mink.append(table, rows(0, count), rows(count, count), writer=writer)
        require_equal(dense(places), 2 * count, "rows that were acked")
        require_equal(mink.writer_state(table, writer.id)[0].last_sequence, 2 * count - 1, "last sequence")
        batches = read = 0
        for batch, info in mink.chunks(mink.scan(table)):
            require_equal(info.base_offset, read, "offset of a batch")
            require(batch.equals(rows(read, batch.num_rows)), f"rows from {read} on differ")
            read += batch.num_rows
            require_equal(info.next_offset, read, "offset behind a batch")
            batches += 1
        require_equal(read, 2 * count, "rows that were read")
        require(batches > 2, f"{batches} batches: nothing was split")
        summary[f"batches_{compression}"] = batches
    return summary
