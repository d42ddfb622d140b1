"""ALTER beside writers: those of the old schema and of the new go on at once; of two ALTERs at once one wins and the other is told."""

import threading

import pyarrow as pa
import pyarrow.flight as fl

from .kit import Difference, require, require_equal

BATCHES = 200
ROWS = 5
OLD = pa.schema([("n", pa.int64()), ("who", pa.string())])
NEW = pa.schema([("n", pa.int64()), ("who", pa.string()), ("note", pa.string()), ("count", pa.int32())])
CONFLICTS_WITHIN = 200


def rows(who, schema, batch):
    numbers = list(range(batch * ROWS, (batch + 1) * ROWS))
    columns = [numbers, [who] * ROWS, [f"note {n}" for n in numbers], numbers]
    return pa.record_batch([pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)


class Writer(threading.Thread):
    """Writes its batches by one call, each after the ack of the one before; `middle` is set when half of them are acked."""

    def __init__(self, mink, who, schema):
        super().__init__(daemon=True)
        self.who, self.schema, self.error, self.middle = who, schema, None, threading.Event()
        self.put = mink.put("altered", schema, client=mink.another())
        self.start()

    def run(self):
        try:
            for batch in range(BATCHES):
                self.put.send(rows(self.who, self.schema, batch))
                self.put.ack()
                if batch == BATCHES // 2:
                    self.middle.set()
            self.put.finish()
        except Exception as error:
            self.error = error
        finally:
            self.middle.set()

    def end(self, seconds):
        self.join(seconds)
        require(not self.is_alive(), f"writer {self.who} is not done")
        if self.error is not None:
            raise Difference(f"writer {self.who}: {self.error}") from self.error


def alter(mink, options):
    mink.create("altered", "n BIGINT NOT NULL, who STRING")
    # The first message of a call fixes its schema: this one was opened before the ALTER and stays with the old.
    old = Writer(mink, "old", OLD)
    old.middle.wait(options.timeout)
    mink.sql(f"ALTER TABLE {mink.name('altered')} ADD COLUMN note STRING, ADD COLUMN count INT DEFAULT 42")
    new = Writer(mink, "new", NEW)
    # A client that does not know the new columns yet, after the ALTER.
    late = Writer(mink, "late", OLD)
    for writer in [old, new, late]:
        writer.end(options.timeout)
    found = mink.read("altered").to_pylist()
    require_equal(len(found), 3 * BATCHES * ROWS, "rows")
    for who, note, count in [("old", None, 42), ("late", None, 42), ("new", "note {}", None)]:
        own = [row for row in found if row["who"] == who]
        wanted = [
            {"n": n, "who": who, "note": note and note.format(n), "count": n if count is None else count}
            for n in range(BATCHES * ROWS)
        ]
        require_equal(own, wanted, f"rows of writer {who}")
    rename_under_a_writer(mink)
    conflicts = concurrent(mink, options)
    return {"rows": len(found), "conflicts": conflicts}


def rename_under_a_writer(mink):
    """Columns are told apart by their ids: what an open call writes lands in the column that was renamed, dropped ones go nowhere."""
    mink.create("renamed", "a BIGINT, b BIGINT")
    batch = pa.record_batch([pa.array([1]), pa.array([2])], names=["a", "b"])
    put = mink.put("renamed", batch.schema)
    put.send(batch)
    put.ack()
    mink.sql(f"ALTER TABLE {mink.name('renamed')} DROP COLUMN b, RENAME COLUMN a TO z, ADD COLUMN a STRING")
    put.send(batch)
    put.finish()
    require_equal(mink.read("renamed").to_pylist(), [{"z": 1, "a": None}] * 2, "rows of a call that began before a rename")


def concurrent(mink, options):
    """Two ALTERs at once: both may win one after the other, or one is refused with ABORTED; what is refused has not happened."""
    mink.create("contested", "c INT")
    clients = [mink.another(), mink.another()]
    wanted, conflicts = ["c"], 0
    for turn in range(CONFLICTS_WITHIN):
        barrier, outcomes = threading.Barrier(2), {}

        def one(which):
            statement = f"ALTER TABLE {mink.name('contested')} ADD COLUMN c{turn}_{which} INT"
            barrier.wait(options.timeout)
            try:
                list(clients[which].do_action(fl.Action("sql", statement.encode())))
                outcomes[which] = None
            except Exception as error:
                outcomes[which] = str(error)

        threads = [threading.Thread(target=one, args=(which,), daemon=True) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(options.timeout)
            require(not thread.is_alive(), "an ALTER is not answered")
        refused = {which: text for which, text in outcomes.items() if text is not None}
        require(len(refused) < 2, f"both ALTERs are refused: {refused}")
        for text in refused.values():
            # pyarrow has no class of its own for ABORTED.
            require("returned aborted error" in text, f"the ALTER that lost was not told ABORTED: {text}")
        conflicts += len(refused)
        columns = [row["column"] for row in mink.sql(f"DESCRIBE {mink.name('contested')}")]
        wanted += [column for column in columns if column not in wanted]
        won = {f"c{turn}_{which}" for which in range(2) if which not in refused}
        require_equal((columns, set(columns[len(columns) - len(won) :])), (wanted, won), f"columns after turn {turn}")
        if conflicts:
            break
    return conflicts
