//! What the readers of a node have counted.
//!
//! Lives on: anywhere.
//! Owns: the counts.
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a node's readers; levels are as of now, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadStats {
    /// Blocks found in memory.
    pub hits: u64,
    /// Blocks that had to be fetched.
    pub misses: u64,
    /// Blocks and footers that were being fetched already: one GET served several.
    pub joined: u64,
    /// GETs sent, and the bytes they brought.
    pub gets: u64,
    pub get_bytes: u64,
    /// GETs that failed.
    pub gets_failed: u64,
    /// Footers found in memory, and footers fetched.
    pub footer_hits: u64,
    pub footer_misses: u64,
    /// Bytes of blocks that were fetched before somebody asked for them and then used.
    pub ahead_used_bytes: u64,
    /// Bytes of blocks that left without having been used.
    pub ahead_wasted_bytes: u64,
    /// Extents that left to make room.
    pub evicted: u64,
    /// Bytes copied out because readers held too much.
    pub copied_bytes: u64,
    /// Memory for footers.
    pub footer_bytes: u64,
    /// Memory for blocks that are kept.
    pub kept_bytes: u64,
    /// Memory of blocks that have left the cache but are pinned by answers under way.
    pub lingering_bytes: u64,
    /// Bytes that GETs in flight will bring.
    pub in_flight_bytes: u64,
    /// Objects that recoveries have found gone or damaged.
    pub damaged_objects: u64,
}

macro_rules! counts {
    ($($count:ident => $field:ident),* $(,)?) => {
        /// One of the counts.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Count {
            $($count),*
        }

        /// All counts.
        #[derive(Debug, Default)]
        pub(super) struct Counts {
            $($field: AtomicU64),*
        }

        impl Counts {
            pub(super) fn add(&self, count: Count, by: u64) {
                match count {
                    $(Count::$count => &self.$field),*
                }
                .fetch_add(by, Ordering::Relaxed);
            }

            /// The counts so far; levels are left at 0.
            pub(super) fn read(&self) -> ReadStats {
                ReadStats { $($field: self.$field.load(Ordering::Relaxed),)* ..ReadStats::default() }
            }
        }
    };
}

counts! {
    Hits => hits,
    Misses => misses,
    Joined => joined,
    Gets => gets,
    GetBytes => get_bytes,
    GetsFailed => gets_failed,
    FooterHits => footer_hits,
    FooterMisses => footer_misses,
    AheadUsed => ahead_used_bytes,
    AheadWasted => ahead_wasted_bytes,
    Evicted => evicted,
    Copied => copied_bytes,
}
