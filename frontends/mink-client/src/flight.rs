//! The native client: typed rows in and out over Arrow Flight, and administration by SQL.
//!
//! Lives on: any tokio runtime.
//! Owns: its connections, and one task for each partition and bucket that a writer writes to.     Talks to: mink-proto's messages, inside Arrow Flight's.
//! Invariants: I6: an idempotent writer's batch is stored once whatever is sent again; I7: what may have happened is told as
//! [`FlightErrorKind::Unknown`], never as a failure; I20: rows that are not acked are bounded in bytes.
//!
//! ```no_run
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! use mink_client::flight::FlightClient;
//! use std::sync::Arc;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = FlightClient::connect("127.0.0.1:9123").await?;
//! client.sql("CREATE TABLE sales.orders (id BIGINT)").await?;
//!
//! let writer = client.writer("sales.orders").idempotent().open().await?;
//! let rows = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)])?;
//! let placed = writer.write(rows).await?.await?;
//! println!("the rows lie at {placed:?}");
//! writer.close().await?;
//!
//! let mut rows = client.scan("sales.orders").columns(["id"]).rows();
//! while let Some(rows) = rows.next().await {
//!     println!("{:?}", rows?.batch);
//! }
//! # Ok(())
//! # }
//! ```

mod admin;
mod backoff;
mod client;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod scanner;
mod writer;

pub use client::FlightClient;
pub use error::{FlightError, FlightErrorKind};
pub use mink_proto::{NodeDescription, Operator, TableDescription, TableOption};
pub use scanner::{RowStream, Rows, ScanBuilder, Start};
pub(crate) use writer::bytes_of;
pub use writer::{IN_FLIGHT_IDEMPOTENT_MAX, Placed, Receipt, Stored, Writer, WriterBuilder, WriterId};
