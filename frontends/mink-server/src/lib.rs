//! Composition root: settings, wiring of a node with its listeners, the order of start and stop.
//!
//! Lives on: the service runtime.
//! Owns: the listeners and the node, from start to end.     Talks to: everything.
//! Invariants: whatever can be refused is refused before anything is started; the ready line is printed when clients are served.
#![deny(unsafe_code)]

mod allocator;
mod args;
mod cpu;
mod environment;
mod file;
mod groups;
pub mod logging;
mod memory;
mod offline;
mod open_files;
mod origins;
mod parse;
mod resident;
mod serve;
mod server;
mod settings;
mod units;

pub use args::{HostPort, LimitArgs, Listen, LogFormat, ServeArgs};
pub use cpu::CpuTime;
pub use environment::{UnknownVariable, check_environment, known_variables, tell_variable};
pub use file::FileError;
pub use memory::{MEMORY_MIN, Memory, TOPIC_BYTES};

pub use mink_object::ProbeVerdict;
pub use offline::{OfflineError, StoreVerdict, check_store, recover_metadata};
pub use parse::{parse, parse_text};
pub use serve::serve_blocking;
pub use server::{Ready, ServeError, Server};
pub use settings::{MetadataPlace, Settings, SettingsError};
pub use units::{Amount, Bytes, duration};
