//! Kafka messages for server and client: bounded decoders, encoders, and nothing that decides.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; every call works on the bytes it is given.
//! Invariants: I19 (a malformed frame never panics, never allocates by an unchecked length), I20.
//! See: docs/architecture.md
//!
//! # How it fits together
//!
//! - [`frame_length`] reads the four bytes before a frame and refuses what the limit forbids.
//! - [`RequestHeader::decode`] splits the header off; [`decode_request`] checks the version against [`OFFERED`] and
//!   gives a [`RequestBody`]. [`encode_response`] and [`ResponseBody::encode`] give the answer as a [`Frame`].
//! - A client uses [`encode_request`] and [`decode_response`].
//! - The messages themselves ([`messages`]) are generated; what bounds hostile input is [`Reader`] alone.
//! - Records stay raw: a decoded message holds slices of its frame ([`Records`], [`KafkaString`]), and a [`Frame`] is
//!   a list of segments in which records are passed on as they are. Whoever keeps a slice keeps the whole frame in
//!   memory; copy what must outlive the request.
//!
//! ```
//! use mink_kafka_wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
//! use mink_kafka_wire::{RequestBody, RequestHeader, decode_request, encode_request, encode_response};
//!
//! let asked = ApiVersionsRequest { client_software_name: "doc".into(), ..Default::default() };
//! let frame = encode_request(3, 7, Some(&"me".into()), &asked)?;
//! let (header, body) = RequestHeader::decode(frame.to_bytes().slice(4..))?;
//! assert_eq!(decode_request(header.api_key, header.api_version, body)?, RequestBody::ApiVersions(asked));
//! let answer = encode_response(3, header.correlation_id, &ApiVersionsResponse::default())?;
//! assert_eq!(answer.segments().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as mink_kafka_wire; // the samples under tests/ name the crate from outside

mod error;
mod error_code;
mod frame;
mod header;
mod message;
pub mod messages;
mod offered;
mod reader;
mod records;
mod text;
mod uuid;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{DecodeError, EncodeError, EncodeFault, Fault};
pub use error_code::ErrorCode;
pub use frame::{FRAME_PREFIX_LEN, Frame, frame_length};
pub use header::{
    RequestHeader, decode_api_versions_response, decode_response, decode_response_header, encode_request,
    encode_response, request_header_version, response_header_version,
};
pub use message::{Codec, Message, Request, VersionRange};
pub use messages::{ApiKey, RequestBody, ResponseBody};
pub use offered::{OFFERED, Offer, decode_request, offer};
pub use reader::{ALLOCATION_CONSTANT, ALLOCATION_FACTOR, Reader};
pub use records::Records;
pub use text::KafkaString;
pub use uuid::Uuid;
pub use writer::{TaggedFields, Writer};
