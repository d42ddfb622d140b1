"""Wrong and lying messages: each ends in a typed error or is taken, what is stored can be read, and the node lives (I19, I20)."""

from . import hostile_bytes, hostile_crowds, hostile_words
from .hostile_kit import BATCH, COLUMNS, Hostile
from .kit import require, require_equal, until

STEPS = [
    hostile_words.tickets,
    hostile_words.descriptors,
    hostile_words.messages_of_none,
    hostile_words.long_texts,
    hostile_words.actions,
    hostile_words.statements,
    hostile_words.names,
    hostile_bytes.order_of_messages,
    hostile_bytes.flipped_bytes,
    hostile_bytes.lies,
    hostile_bytes.bombs,
    hostile_bytes.dictionaries,
    hostile_bytes.flipped_bodies,
    hostile_bytes.frames,
    hostile_crowds.sizes,
    hostile_crowds.headers,
    hostile_crowds.idle_calls,
    hostile_crowds.slow_readers,
    hostile_crowds.stalled_messages,
]

def hostile(mink, options):
    require(options.http is not None, "give --http")
    mink.create("target", COLUMNS, **{"table.log.arrow.compression": "none"})
    mink.create("target_lz4", COLUMNS, **{"table.log.arrow.compression": "lz4"})
    mink.append("target", BATCH)
    tried = Hostile(mink, options)
    for step in STEPS:
        step(tried)
        tried.lives(step.__name__)
    unharmed(mink, options)
    return {"calls": tried.calls}


def unharmed(mink, options):
    """The node answers and gives back what calls have held."""
    require(options.http is not None, "give --http")

    def held():
        return mink.counted("mink_memory_bytes", 'part="flight"')

    until("no call holds bytes", options.timeout, lambda: held() == 0)
    for name, samples in mink.metrics().items():
        if "panic" in name:
            require_equal(sum(samples.values()), 0.0, name)
    return {}
