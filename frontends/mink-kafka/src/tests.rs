//! The listener over a log in memory, spoken to by a client that sees every byte.
//!
//! Lives on: tests only.
mod admin;
mod alter;
mod broker_configs;
mod connections;
mod describe;
mod epochs;
mod errors;
mod fake;
mod fetch;
mod fetch_sessions;
mod groups;
mod hostile;
mod kept_configs;
mod limits;
mod log;
mod named_twice;
mod pipelining;
mod placement;
mod produce;
mod producers;
mod raw_client;
mod records;
mod topic_configs;
mod topic_ids;
mod typed;
mod typed_admin;
mod untaken;
