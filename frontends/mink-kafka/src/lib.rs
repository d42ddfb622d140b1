//! The Kafka listener: connections, and one handler per API, over the traits of mink-api.
//!
//! Lives on: the service runtime.
//! Owns: connections, their bounds and counters.     Talks to: `LogSource` and `Admin`, never a shard.
//! Invariants: I7 (an append that was ordered is acked or its connection closes; a retriable error is answered only for what
//! was not ordered), I19 (a malformed frame closes its connection and nothing else), I20 (frames, answers, connections and
//! requests in flight are bounded), K-13 (answers leave in the order of the requests).
//! See: docs/architecture.md
#![deny(unsafe_code)]

mod answer_permits;
mod config;
mod connection;
mod counters;
mod error_code;
mod fetch_sessions;
mod frame_permits;
mod frame_reader;
mod frame_writer;
mod handlers;
mod idle;
mod leaders;
mod limits_met;
mod log_gate;
mod node;
mod refusals;
mod server;
mod topic;
mod untaken;

#[cfg(test)]
mod tests;

pub use answer_permits::AnswerPermits;
pub use config::KafkaConfig;
pub use counters::KafkaCounters;
pub use frame_permits::FramePermits;
pub use server::KafkaServer;
