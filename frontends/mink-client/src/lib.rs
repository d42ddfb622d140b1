//! The Rust client of Mink. [`flight`] speaks the native protocol: typed rows, and administration by SQL. What is here at the root speaks
//! Kafka's: topics, producing, reading, consumer groups, and the load generator.
//!
//! Lives on: any tokio runtime.
//! Owns: its connections.     Talks to: any Kafka server.
//! Invariants: a retry repeats the very same batch, in order; an idempotent producer's batch is stored once whatever is retried (I6);
//! what is told as acked was acked.
//!
//! ```no_run
//! use mink_client::{Client, Producer, ProducerConfig, Reader, Record};
//! # async fn example() -> Result<(), mink_client::ClientError> {
//! let client = Client::connect("127.0.0.1:9092").await?;
//! let producer = Producer::start(&client, "events", ProducerConfig::default()).await?;
//! let offset = producer.send(0, Record::new(Some(b"key"), Some(b"value"))).await?.await?;
//! let read = Reader::new(&client, "events", 0).read(offset, std::time::Duration::from_secs(1)).await?;
//! assert_eq!(read.records[0].value.as_deref(), Some(&b"value"[..]));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod client;
mod connection;
mod error;
#[cfg(test)]
mod fake;
pub mod flight;
mod groups;
pub mod load;
mod offsets;
mod partition;
mod producer;
mod reader;
mod topics;

pub use client::{Client, Partition, Topic};
pub use error::{ClientError, ErrorKind};
pub use groups::{GroupDescription, GroupMember, GroupOffset, GroupSummary};
pub use mink_kafka_wire::ErrorCode;
pub use mink_record::kafka::Codec;
pub use mink_record::kafka::HeaderRef;
pub use offsets::{FoundOffset, Position};
pub use partition::partition_of_key;
pub use producer::{Delivery, IN_FLIGHT_MAX, Producer, ProducerConfig, Record};
pub use reader::{ReadAnswer, ReadRecord, Reader};
