//! The scope of a run, and the deliberate mistakes ("mutants") that the properties must catch.
//!
//! Lives on: anywhere (pure).

/// A mistake. Where the engine's metadata itself holds the rule, the mistake is made around it: a command is altered before it is
/// applied, or a plan is not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    Nothing,
    // the writer
    /// Acks a number although one before it is not durable.
    AckOutOfOrder,
    /// Sends other bytes under a number whose first attempt has an unknown outcome.
    NewBytesOnRetry,
    /// Takes whatever a 412 leads it to for its own object.
    ForeignIsOurs,
    // the flush
    /// Deletes WAL below the trim of a commit that is not applied yet.
    TrimBeforeCommit,
    /// Counts only the flushed buckets when it looks for the trim.
    TrimPerBucket,
    /// Counts another flush that is not applied yet (two in flight).
    TrimCountsInFlight,
    /// Flushes entries that are not durable yet.
    FlushUndurable,
    /// Deletes its object while the commit is undecided.
    DeleteUndecided,
    /// Takes "applied before, result forgotten" for done (two of a session in flight).
    RepeatIsDone,
    // the takeover
    /// Ends its walk without a seal.
    NoSeal,
    /// Begins its walk at the trim from before the fence.
    StaleTrim,
    /// Fences only after the walk.
    FenceAfterWalk,
    /// Opens before what it recovered is committed.
    OpenBeforeCommit,
    /// Goes on behind an absent number if a later one is there.
    HolesSkipped,
    /// Recovers entries of any bucket epoch.
    NoEpochFilter,
    /// Notes the bucket's epoch when it sends a command, not before the walk.
    EpochAtCommand,
    /// Calls a number lost by a read from before the proof.
    StaleProof,
    /// Its successor does not know the producers of recovered entries.
    ProducersForgotten,
    // compaction
    /// The objects that a rewrite replaces go before it is applied.
    ReplacedTooSoon,
    // moves
    /// Takes a bucket of a live chain by an open alone.
    MoveWithoutRelease,
    /// Takes a bucket of a live chain by a release in its owner's name.
    ReleaseForged,
    /// Releases while ordered appends are in flight.
    ReleaseUndurable,
    // rules of the metadata, gone round by altering commands on their way
    /// A repeated command gets a new request id.
    RequestIdIgnored,
    /// A commit's start is set to whatever the committed end is by now.
    CommitAnyStart,
    /// A takeover's commands are given the epoch and the chain that the bucket has by now.
    NoEpochCheck,
    /// A fenced incarnation goes on sending opens.
    FencedMayOpen,
    // plans that are not asked
    /// The anchor goes.
    NoAnchor,
    /// The anchor of a fenced chain that is still needed goes.
    AnchorBelowDead,
    /// Every seal of a dead chain goes.
    SealCollected,
    /// An object of a fenced chain goes once its own entries are committed.
    DeadByCommittedEnd,
    /// Unreferenced WAL objects of a fenced chain go.
    OrphanRuleOnWal,
}

/// Sentences of the design that are checked on their own, because a run may break them without losing data. They do not hold, and
/// a test says so, lest anybody lean on one.
pub const CLAIM_PUT_PROVES: u8 = 1; // "a create-only PUT that succeeded proves 'not sealed'"
pub const CLAIM_ONE_SEAL: u8 = 2; // "one tiny object per incarnation"
pub const CLAIM_SILENT: u8 = 4; // "a fenced process acks nothing more", word for word
pub const CLAIM_FIRST_PUT: u8 = 8; // 1 repaired: no number first tried after another owner opened becomes durable in order

/// What a run explores.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub incarnations: usize,
    pub buckets: usize,
    /// WAL numbers that each incarnation may form.
    pub numbers: [u8; 3],
    /// Stream objects, or adoptions, that each may make.
    pub objects: [u8; 3],
    /// Entries that a bucket may hold.
    pub offsets: u8,
    /// Bucket epochs.
    pub epochs: u8,
    /// PUTs in flight.
    pub in_flight: usize,
    /// Flushes in flight.
    pub tasks: usize,
    /// So many of the buckets (A first) may move live.
    pub release: usize,
    /// So many of the incarnations (W first) may leave.
    pub leave: usize,
    /// Bucket A also gets a batch that an idempotent producer repeats.
    pub producer: bool,
    /// One WAL object may hold both buckets.
    pub both: bool,
    /// A repeated PUT may land after its number was acked and deleted.
    pub resurrect: bool,
    /// Recovered entries are adopted by reference, as the engine does ...
    pub adopt: bool,
    /// ... or rewritten, which its metadata takes as well.
    pub rewrite: bool,
    /// Garbage collection runs.
    pub collect: bool,
    /// It also deletes seals that are not the recorded one.
    pub strays: bool,
    /// Adopted ranges are rewritten into stream objects, and the log is told what was deleted and swept.
    pub tidy: bool,
    /// A walk's reads, its search for proofs that a number is lost, and its seal are steps apart.
    pub probe: bool,
    /// The lease holder fences whom it likes, when it likes.
    pub coordinator: bool,
    /// None of the reductions of `canon.rs`: to compare on small scopes.
    pub full: bool,
    pub mutant: Mutant,
    pub claims: u8,
}

impl Config {
    /// Whether this mistake is made.
    pub fn is(&self, m: Mutant) -> bool {
        self.mutant == m
    }
}
