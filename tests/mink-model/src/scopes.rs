//! The scopes that are searched: small ones in CI, large ones by hand, and one in which each mutant is caught.
//!
//! Lives on: anywhere (pure).
use crate::config::{Config, Mutant};

/// One bucket, three incarnations.
pub(crate) const BASE: Config = Config {
    incarnations: 3,
    buckets: 1,
    numbers: [3, 2, 1],
    objects: [2, 2, 1],
    offsets: 5,
    epochs: 3,
    in_flight: 2,
    tasks: 1,
    release: 0,
    leave: 0,
    producer: true,
    both: true,
    resurrect: false,
    adopt: true,
    rewrite: false,
    collect: true,
    strays: false,
    tidy: false,
    probe: false,
    coordinator: false,
    full: false,
    mutant: Mutant::Nothing,
    claims: 0,
};

/// Two buckets.
pub(crate) const PAIR: Config =
    Config { buckets: 2, producer: false, numbers: [2, 1, 1], objects: [2, 1, 1], offsets: 2, ..BASE };

/// One bucket, three incarnations, as little as there can be of each.
pub(crate) const TINY: Config =
    Config { numbers: [1, 1, 1], objects: [1, 1, 1], offsets: 3, producer: false, ..BASE };

/// Two incarnations.
const TWO: Config =
    Config { incarnations: 2, numbers: [3, 1, 0], objects: [2, 1, 0], producer: false, ..BASE };

/// A scope by its name, and what it is about.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub name: &'static str,
    pub about: &'static str,
    pub config: Config,
}

const fn scope(name: &'static str, about: &'static str, config: Config) -> Scope {
    Scope { name, about, config }
}

/// Searched by every run of the tests.
pub const SMALL: &[Scope] = &[
    scope("owners", "one bucket, three owners one after the other", Config { numbers: [2, 1, 1], ..TINY }),
    scope(
        "idempotent",
        "a batch that its producer repeats",
        Config { producer: true, numbers: [2, 1, 0], ..TWO },
    ),
    scope("rewritten", "recovered entries rewritten or adopted", Config { rewrite: true, ..TINY }),
    scope(
        "late-puts",
        "PUTs land after their number was deleted; stray seals go",
        Config { resurrect: true, strays: true, ..TINY },
    ),
    scope(
        "fencer",
        "the lease holder fences whom it likes",
        Config { coordinator: true, offsets: 2, numbers: [1, 1, 0], ..TINY },
    ),
    scope("leavers", "nodes leave by themselves", Config { leave: 2, ..TINY }),
    scope("proofs", "a walk's reads, proofs and seal are steps apart", Config { probe: true, ..TWO }),
    scope(
        "tidied",
        "compaction, deletions and sweeps",
        Config { tidy: true, numbers: [1, 1, 0], objects: [1, 2, 1], offsets: 2, ..TINY },
    ),
    scope(
        "tidied-pair",
        "two buckets of one chain are taken over one by one, and compacted between",
        Config { tidy: true, incarnations: 2, numbers: [1, 1, 0], objects: [1, 3, 0], offsets: 2, ..PAIR },
    ),
    scope(
        "movers",
        "two buckets move live between two nodes",
        Config { incarnations: 2, release: 1, both: false, numbers: [1, 1, 0], objects: [1, 1, 0], ..PAIR },
    ),
    scope(
        "flushes",
        "two flushes of a node in flight",
        Config { incarnations: 2, tasks: 2, numbers: [2, 0, 0], objects: [2, 1, 0], ..PAIR },
    ),
];

/// Searched by hand.
pub const LARGE: &[Scope] = &[
    scope(
        "plain",
        "one bucket, without the reductions",
        Config { full: true, producer: true, numbers: [2, 1, 1], ..TINY },
    ),
    scope(
        "three-move",
        "two buckets, three nodes, A moves live",
        Config { release: 1, numbers: [1, 1, 1], objects: [1, 1, 1], offsets: 1, ..PAIR },
    ),
    scope(
        "probe",
        "the walk's reads, proofs and seal apart",
        Config { probe: true, numbers: [4, 1, 0], ..TWO },
    ),
    scope("leave", "nodes leave by themselves", Config { leave: 2, numbers: [2, 1, 1], ..TINY }),
    scope(
        "tidy",
        "compaction, deletions and sweeps",
        Config { tidy: true, numbers: [2, 2, 1], objects: [2, 3, 2], ..TINY },
    ),
    scope(
        "lease",
        "the lease holder fences whom it likes; live moves",
        Config { coordinator: true, release: 1, offsets: 2, ..TINY },
    ),
    scope(
        "late",
        "PUTs land after their number was acked and deleted; stray seals go",
        Config { resurrect: true, strays: true, numbers: [2, 2, 1], ..BASE },
    ),
    scope("rewrite", "recovered entries are rewritten or adopted", Config { rewrite: true, ..BASE }),
    scope(
        "deep",
        "one bucket, three owners one after the other",
        Config { numbers: [4, 2, 1], offsets: 6, ..BASE },
    ),
    scope(
        "move",
        "two buckets, two nodes, both buckets move live",
        Config { incarnations: 2, release: 2, numbers: [2, 1, 0], ..PAIR },
    ),
    scope("three", "two buckets, three nodes take them over", Config { objects: [1, 1, 1], ..PAIR }),
    scope(
        "pipeline",
        "two flushes of a node in flight",
        Config { incarnations: 2, tasks: 2, numbers: [3, 1, 0], objects: [3, 1, 0], offsets: 3, ..PAIR },
    ),
    scope(
        "plain-move",
        "two buckets, live moves, without the reductions",
        Config { full: true, incarnations: 2, release: 2, numbers: [1, 1, 0], objects: [1, 1, 0], ..PAIR },
    ),
];

/// What becomes of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// A property breaks.
    Caught,
    /// The metadata refuse what it sends, ending what it asks for so: the rule is `State::apply`'s, and nothing breaks.
    HeldByApply { ask: &'static str, end: &'static str },
    /// Another rule leaves it nothing to break; the words say which.
    Needless(&'static str),
}

/// A mutant and where to look.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub mutant: Mutant,
    pub config: Config,
    pub expect: Expect,
}

/// Every mutant, with a scope that shows what becomes of it.
pub fn mutants() -> Vec<Trial> {
    use Mutant::*;
    let caught =
        |mutant, config| Trial { mutant, config: Config { mutant, ..config }, expect: Expect::Caught };
    let held = |mutant, config, end| Trial {
        expect: Expect::HeldByApply { ask: "open", end },
        ..caught(mutant, config)
    };
    let needless = |mutant, config, why| Trial { expect: Expect::Needless(why), ..caught(mutant, config) };
    let two = Config { release: 2, objects: [1, 1, 1], ..PAIR };
    let fencer = Config { coordinator: true, ..TINY };
    let flushes = Config { incarnations: 2, tasks: 2, numbers: [2, 1, 0], objects: [3, 1, 0], ..PAIR };
    let back = Config { release: 1, epochs: 4, numbers: [2, 1, 0], objects: [1, 1, 0], ..TWO };
    let one = |mutant| caught(mutant, BASE);
    vec![
        one(AckOutOfOrder),
        one(NewBytesOnRetry),
        one(ForeignIsOurs),
        one(TrimBeforeCommit),
        caught(TrimPerBucket, two),
        caught(TrimCountsInFlight, flushes),
        one(FlushUndurable),
        one(DeleteUndecided),
        caught(RepeatIsDone, flushes),
        one(NoSeal),
        caught(StaleTrim, TWO),
        caught(FenceAfterWalk, TWO),
        one(OpenBeforeCommit),
        one(HolesSkipped),
        needless(NoEpochFilter, back, "a release waits until all that was ordered is committed"),
        caught(StaleProof, Config { probe: true, ..TWO }),
        one(ProducersForgotten),
        caught(ReplacedTooSoon, Config { tidy: true, numbers: [2, 1, 0], objects: [1, 2, 1], ..TINY }),
        held(
            MoveWithoutRelease,
            Config { release: 1, numbers: [1, 1, 0], objects: [1, 1, 0], incarnations: 2, ..PAIR },
            "stale",
        ),
        caught(ReleaseForged, two),
        caught(ReleaseUndurable, two),
        one(RequestIdIgnored),
        caught(CommitAnyStart, BASE),
        held(EpochAtCommand, Config { offsets: 1, ..fencer }, "stale open"),
        caught(NoEpochCheck, fencer),
        held(FencedMayOpen, Config { offsets: 1, ..fencer }, "fenced"),
        one(NoAnchor),
        one(AnchorBelowDead),
        one(SealCollected),
        one(DeadByCommittedEnd),
        one(OrphanRuleOnWal),
    ]
}
