//! Test tools: real processes and servers, real clients, a real data set, faults of a store.
//! Lives on: the process of a test.
//! Owns: the processes it starts; it ends them, also when the test dies.
//! Talks to: `mink` and the scripts of `tests/parts` and `tests/clients`, as processes only: it links no server code, but with the
//! feature `store`, whose faults go around a store in the process.
//!
//! A test that needs a part of the outside world asks for it and passes the answer through [`skip::available`]: what can't be
//! had here is skipped by name, or fails the test when `MINK_TEST_STRICT=1`.

pub mod client;
pub mod dataset;
mod error;
pub mod faults;
pub mod http;
mod loud;
pub mod node;
pub mod parts;
pub mod ports;
pub mod process;
pub mod ready;
mod script;
pub mod skip;

pub use error::{Error, ErrorKind, Result};
