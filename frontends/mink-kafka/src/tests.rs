//! The listener over a log in memory, spoken to by a client that sees every byte.
//!
//! Lives on: tests only.
mod admin;
mod connections;
mod fake;
mod fetch;
mod hostile;
mod pipelining;
mod produce;
mod raw_client;
mod records;
