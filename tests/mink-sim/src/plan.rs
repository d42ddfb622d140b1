//! What one history looks like: sizes, times and how bad the weather gets, drawn from the seed.
//!
//! Lives on: anywhere.
use crate::dice::Dice;
use mink_node::CompactionConfig;
use mink_types::Limits;
use s3stream::WalConfig;
use std::time::Duration;

/// The shape of a history.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How long clients and nature are at work, in virtual time.
    pub(crate) duration: Duration,
    pub(crate) shards: usize,
    pub(crate) tables: u64,
    pub(crate) buckets: u32,
    pub(crate) idempotent: u64,
    pub(crate) plain: u64,
    pub(crate) readers: u64,
    /// Largest record in bytes.
    pub(crate) record_bytes: u64,
    /// Pause between two batches of a producer, at most.
    pub(crate) pause: Duration,
    pub(crate) wal: WalConfig,
    pub(crate) limits: Limits,
    pub(crate) lease_ttl: Duration,
    pub(crate) tail_bytes: u64,
    pub(crate) footer_cache_bytes: usize,
    pub(crate) block_cache_bytes: usize,
    pub(crate) compaction: CompactionConfig,
    pub(crate) deletion_grace: Duration,
    /// How long, and how much of each bucket, tables that forget keep.
    pub(crate) ttl: Option<Duration>,
    pub(crate) retention_bytes: Option<u64>,
    /// How far the wall clock of a machine may be wrong when a process begins.
    pub(crate) wall_wrong: Duration,
    /// How far a boot-time clock may go wrong.
    pub(crate) drift_ppm: u64,
    /// Pause between two blows of nature, at most.
    pub(crate) blows: Duration,
    /// Whether objects are damaged by hand.
    pub(crate) damage: bool,
    /// Whether tables have columns: some of them, or all.
    pub(crate) typed: bool,
    /// Percentage of requests with a fault, when the weather is bad.
    pub(crate) faults: u64,
}

/// What one compaction moves at most in a history.
const COMPACTED_BYTES_MAX: u64 = 32 << 20;

impl Plan {
    /// How long one compaction may take at its rate: until it ends it may read what was given up meanwhile.
    pub(crate) fn compaction_takes(&self) -> Duration {
        let rate = self.compaction.bytes_per_second;
        Duration::from_secs(COMPACTED_BYTES_MAX.checked_div(rate).unwrap_or(0))
    }

    /// How much older than it is a record may look after `elapsed`: by two wall clocks and two boot-time clocks.
    pub(crate) fn age_error(&self, elapsed: Duration) -> Duration {
        let drift = elapsed / 1_000_000 * u32::try_from(self.drift_ppm).unwrap_or(u32::MAX);
        (self.wall_wrong + drift) * 2
    }

    /// The shape that the seed gives.
    pub(crate) fn draw(dice: &Dice, duration: Duration) -> Plan {
        let ms = Duration::from_millis;
        let ttl = dice.pick(&[None, None, Some(ms(8_000)), Some(ms(15_000))]).flatten();
        let wal = WalConfig {
            linger: dice.pick(&[ms(5), ms(50)]).unwrap_or(ms(5)),
            batch_bytes: 64 << 10,
            puts_in_flight_max: dice.pick(&[2, 4, 8]).unwrap_or(4),
            puts_per_second: dice.pick(&[None, Some(20)]).unwrap_or(None),
            chunk_bytes_max: 2 << 20,
            object_bytes_max: 12 << 20,
            untrimmed_bytes_max: dice.pick(&[12 << 20, 256 << 20]).unwrap_or(12 << 20),
            // As little as one batch: then the lanes fill, and whoever appends waits.
            waiting_bytes_max: dice.pick(&[8 << 10, 64 << 10, 64 << 20]).unwrap_or(64 << 10),
            untrimmed_objects_max: dice.pick(&[8, 32, 512]).unwrap_or(32),
            flush_age: dice.pick(&[ms(300), ms(1_500), ms(10_000)]).unwrap_or(ms(1_500)),
            flush_bytes: 64 << 10,
            own_object_bytes: 16 << 10,
            put_timeout: ms(2_000),
            get_timeout: ms(2_000),
            ..WalConfig::default()
        };
        Plan {
            duration,
            shards: dice.pick(&[1, 2]).unwrap_or(1),
            tables: 1 + dice.below(3),
            buckets: dice.pick(&[1, 1, 2, 3]).unwrap_or(1),
            idempotent: 1 + dice.below(4),
            plain: dice.below(2),
            readers: 1 + dice.below(2),
            record_bytes: dice.pick(&[20, 200, 2_000]).unwrap_or(200),
            pause: dice.pick(&[ms(30), ms(150), ms(600)]).unwrap_or(ms(100)),
            wal,
            limits: Limits::default(),
            lease_ttl: ms(3_000),
            tail_bytes: dice.pick(&[128 << 10, 512 << 10, 4 << 20]).unwrap_or(512 << 10),
            footer_cache_bytes: dice.pick(&[4 << 10, 64 << 10]).unwrap_or(64 << 10),
            block_cache_bytes: dice.pick(&[16 << 10, 1 << 20]).unwrap_or(1 << 20),
            compaction: CompactionConfig {
                bytes_per_second: dice.pick(&[0, 256 << 10, 64 << 20]).unwrap_or(0),
                window_bytes: CompactionConfig::WINDOW_BYTES_MIN,
            },
            deletion_grace: Duration::from_secs(20),
            ttl,
            retention_bytes: dice.pick(&[None, None, Some(4 << 10), Some(64 << 10)]).flatten(),
            // Ages of seconds are told by clocks that are less wrong.
            wall_wrong: if ttl.is_some() { ms(1_000) } else { ms(10_000) },
            drift_ppm: dice.pick(&[0, 500, 10_000]).unwrap_or(0),
            blows: dice.pick(&[ms(4_000), ms(10_000), ms(25_000)]).unwrap_or(ms(10_000)),
            damage: dice.one_in(3),
            typed: false,
            faults: dice.pick(&[0, 3, 15]).unwrap_or(3),
        }
    }
}
