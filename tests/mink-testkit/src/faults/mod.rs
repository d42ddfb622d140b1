//! Faults of an object store from one description: as an HTTP proxy before any S3 server, and around a store in the process.
//! Lives on: anywhere; the proxy on the tokio runtime of whoever starts it.
//! Owns: nothing.
//! Invariants: a request meets two coins, *did it happen* and *was it told*, and all four combinations can be asked for.
//!
//! A [`Plan`] is lines of text, `WHO: WHAT`, of which the first that takes a request decides what happens to it:
//!
//! ```
//! use mink_testkit::faults::Plan;
//! let plan: Plan = "
//!     seed 7
//!     any: delay 5ms..30ms spike 2s 1%        # goes on to the next lines
//!     put key=*/wal/* 10%: lost               # happens, and the answer is lost
//!     put key=*/wal/* 10%: undone 503         # does not happen, and is told as SlowDown
//!     put 5%: late 2s..5s 500                 # told as failed, happens seconds later
//!     get 3%: cut 50%                         # the connection breaks in the middle of the body
//!     any from=20s for=30s: away              # nobody listens
//! ".parse().unwrap();
//! assert_eq!(plan.rules.len(), 6);
//! ```
//!
//! [`proxy::FaultProxy`] carries it out before a server, `store::FaultyStore` (feature `store`) around a store in the process.

mod draws;
mod plan;
pub mod proxy;
#[cfg(feature = "store")]
pub mod store;
mod text;

pub use draws::{Draws, Side, Tally, TallyLine, Verdict};
pub use plan::{Chance, Delay, Effect, Happens, Op, Pattern, Percent, Plan, Rule, Select, Spike, Told, Turn};
pub use text::PlanError;
