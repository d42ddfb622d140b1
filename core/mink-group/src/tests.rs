//! Tests of groups by behaviour, each in the file of its name, over one harness.
//!
//! Lives on: tests.
mod chained;
mod harness;
mod joining;
mod leaving;
mod model;
mod offsets;
mod statics;
mod storing;
mod syncing;
