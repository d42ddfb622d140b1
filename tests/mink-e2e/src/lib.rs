//! End-to-end tests: real `mink` processes, real S3, real Kafka clients. One module per behaviour.
//!
//! Lives on: the process of a test.
//! Owns: the processes that the test kit starts for it.
//! Talks to: `mink` by its command line, its listeners and its files only; the Kafka messages are those of core/.
//! Invariants: a part that can't be had is skipped by name; a WARN or ERROR line that a test does not expect fails it; nothing sleeps
//! to wait.
//!
//! `cargo test -p mink-e2e` runs the `mink` that lies beside the test (`cargo build` makes it) or that `MINK_BIN` names. The forms
//! here are the short ones; `MINK_E2E_ROUNDS=200` and `MINK_E2E_LONG=1` ask for the long ones.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod command_line;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod crash_points;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod dropped;
#[cfg(test)]
mod durable_order;
#[cfg(test)]
mod fast_start;
#[cfg(test)]
mod files;
#[cfg(test)]
mod flight;
#[cfg(test)]
mod flight_client;
#[cfg(test)]
mod floods;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod garbage;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod http_flood;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod kill9;
#[cfg(test)]
mod load;
#[cfg(test)]
mod load_generator;
#[cfg(test)]
mod lost_answers;
#[cfg(test)]
mod lost_object;
#[cfg(test)]
mod lost_rows;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod nasty_names;
#[cfg(test)]
mod offsets;
#[cfg(test)]
mod open_files;
#[cfg(test)]
mod pauses;
#[cfg(test)]
mod producers;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod setup;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod store_damage;
#[cfg(test)]
mod store_faults;
#[cfg(test)]
mod store_gone;
#[cfg(test)]
mod store_lies;
#[cfg(test)]
mod store_memory;
#[cfg(test)]
mod store_outage;
#[cfg(test)]
mod takeover;
#[cfg(test)]
mod topic_configs;
#[cfg(test)]
mod typed_topics;
#[cfg(test)]
mod wire;
