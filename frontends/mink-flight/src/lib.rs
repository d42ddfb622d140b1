//! The Arrow Flight listener: typed rows in and out, and administration by SQL.
//!
//! Lives on: the service runtime.
//! Owns: the listener's tasks.     Talks to: mink-api.
//! Invariants: I7 (a put that may have been stored is never answered with a code that says it was not), I19 (a command, ticket, statement
//! or Arrow message of foreign bytes is checked wholly before it changes anything), I20 (a message's bytes are paid for before they are
//! read, an answer's before they are fetched and until they are written).     See: docs/flight.md
#![forbid(unsafe_code)]

mod action;
mod address;
mod answer_body;
mod answers;
mod counters;
mod exchange;
mod filter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod info;
mod line;
mod node;
mod outbox;
mod paid_body;
mod put;
mod reader;
mod route;
mod rows;
mod scan;
mod server;
mod service;
mod statement;
mod status;

pub use counters::FlightCounters;
pub use node::FlightConfig;
pub use server::FlightServer;
