//! The listener over a log in memory, spoken to by a client that sees every byte.
//!
//! Lives on: tests only.
mod admin;
mod alter;
mod connections;
mod describe;
mod epochs;
mod errors;
mod fake;
mod fetch;
mod fetch_sessions;
mod groups;
mod hostile;
mod named_twice;
mod pipelining;
mod placement;
mod produce;
mod raw_client;
mod records;
mod topic_ids;
