//! What stands before a message: the request header, the response header, and whole frames of both.
//!
//! Lives on: anywhere (pure).
//! Owns: which header goes with which version, the exception of ApiVersions included.

use bytes::Bytes;

use crate::error::{DecodeError, EncodeError, Fault};
use crate::error_code::ErrorCode;
use crate::frame::Frame;
use crate::message::{Message, Request, is_flexible};
use crate::messages::ApiKey;
use crate::messages::api_versions::ApiVersionsResponse;
use crate::reader::Reader;
use crate::text::KafkaString;
use crate::writer::Writer;

const MESSAGE: &str = "header";

/// The header version of a request: 2 with tagged fields, 1 without.
///
/// Version 0, without a client id, went with ControlledShutdown 0, which clients never send.
pub fn request_header_version(key: ApiKey, version: i16) -> i16 {
    if is_flexible(key, version) { 2 } else { 1 }
}

/// The header version of a response: 1 with tagged fields, 0 without.
///
/// ApiVersions always answers with 0: a client reads that answer before it knows what we speak.
pub fn response_header_version(key: ApiKey, version: i16) -> i16 {
    i16::from(key != ApiKey::ApiVersions && is_flexible(key, version))
}

/// What every request begins with. Key and version are as sent: nothing says yet that we speak them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    pub api_key: i16,
    pub api_version: i16,
    /// Goes back with the answer, which is how clients match them.
    pub correlation_id: i32,
    /// What the client calls itself; a slice of the frame.
    pub client_id: Option<KafkaString>,
}

impl RequestHeader {
    /// Splits a frame (without its length) into header and body.
    ///
    /// A key that Kafka does not have is an error, because the end of its header cannot be known. A version that we do
    /// not speak is none: an ApiVersions request must be answered whatever its version.
    pub fn decode(frame: Bytes) -> Result<(Self, Bytes), DecodeError> {
        let mut reader = Reader::new(frame, MESSAGE, true);
        let api_key = reader.int16("api_key")?;
        let api_version = reader.int16("api_version")?;
        let correlation_id = reader.int32("correlation_id")?;
        let Some(key) = ApiKey::from_code(api_key) else {
            return Err(DecodeError {
                message: MESSAGE,
                field: "api_key",
                fault: Fault::UnknownApi { api_key },
            });
        };
        // Not compact even in version 2, so that any broker can read the header of any ApiVersions request.
        let client_id = reader.classic_nullable_string("client_id")?;
        if request_header_version(key, api_version) >= 2 {
            reader.skip_tagged_fields("tagged_fields")?;
        }
        Ok((Self { api_key, api_version, correlation_id, client_id }, reader.into_rest()))
    }
}

/// The frame of a request, as a client sends it.
pub fn encode_request<M: Request>(
    version: i16,
    correlation_id: i32,
    client_id: Option<&KafkaString>,
    body: &M,
) -> Result<Frame, EncodeError> {
    let mut writer = Writer::new(M::NAME, M::is_flexible(version));
    writer.int16(M::API_KEY.code());
    writer.int16(version);
    writer.int32(correlation_id);
    writer.classic_nullable_string("client_id", client_id)?;
    if request_header_version(M::API_KEY, version) >= 2 {
        writer.no_tagged_fields();
    }
    body.encode_body(version, &mut writer)?;
    writer.finish()
}

/// The frame of a response, as a server sends it. Records in `body` become segments of their own.
pub fn encode_response<M: Message>(
    version: i16,
    correlation_id: i32,
    body: &M,
) -> Result<Frame, EncodeError> {
    let mut writer = Writer::new(M::NAME, M::is_flexible(version));
    writer.int32(correlation_id);
    if response_header_version(M::API_KEY, version) >= 1 {
        writer.no_tagged_fields();
    }
    body.encode_body(version, &mut writer)?;
    writer.finish()
}

/// Splits a response (without its length) into correlation id and body.
pub fn decode_response_header(key: ApiKey, version: i16, frame: Bytes) -> Result<(i32, Bytes), DecodeError> {
    let mut reader = Reader::new(frame, MESSAGE, true);
    let correlation_id = reader.int32("correlation_id")?;
    if response_header_version(key, version) >= 1 {
        reader.skip_tagged_fields("tagged_fields")?;
    }
    Ok((correlation_id, reader.into_rest()))
}

/// Reads the answer to a request `R` sent at `version`: its correlation id and body.
pub fn decode_response<R: Request>(version: i16, frame: Bytes) -> Result<(i32, R::Response), DecodeError> {
    let (correlation_id, body) = decode_response_header(R::API_KEY, version, frame)?;
    Ok((correlation_id, R::Response::decode_body(version, body)?))
}

/// Reads the answer to an ApiVersions request, which may be of version 0 though `version` was asked for.
///
/// A server that does not know the version answers UNSUPPORTED_VERSION in the oldest form.
pub fn decode_api_versions_response(
    version: i16,
    frame: Bytes,
) -> Result<(i32, ApiVersionsResponse), DecodeError> {
    let (correlation_id, body) = decode_response_header(ApiKey::ApiVersions, version, frame)?;
    let refused = body.first_chunk().map(|code| i16::from_be_bytes(*code))
        == Some(ErrorCode::UnsupportedVersion.code());
    let version = if refused { 0 } else { version };
    Ok((correlation_id, ApiVersionsResponse::decode_body(version, body)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::api_versions::ApiVersion;

    #[test]
    fn apiversions_answers_with_header_0_at_every_version() {
        assert_eq!(response_header_version(ApiKey::ApiVersions, 4), 0);
        assert_eq!(request_header_version(ApiKey::ApiVersions, 4), 2);
        assert_eq!(response_header_version(ApiKey::Fetch, 12), 1);
        assert_eq!(response_header_version(ApiKey::Fetch, 11), 0);
        assert_eq!(request_header_version(ApiKey::Fetch, 11), 1);
    }

    #[test]
    fn an_apiversions_request_of_a_version_from_the_future_has_a_readable_header() {
        let frame = b"\x00\x12\x00\x63\x00\x00\x00\x05\x00\x02me\x00what follows".as_slice();
        let (header, _) = RequestHeader::decode(Bytes::from_static(frame)).unwrap();
        assert_eq!((header.api_key, header.api_version, header.correlation_id), (18, 99, 5));
        assert_eq!(header.client_id.unwrap(), "me");
    }

    #[test]
    fn a_key_that_kafka_does_not_have_is_refused() {
        let error =
            RequestHeader::decode(Bytes::from_static(b"\x7f\xff\x00\x00\x00\x00\x00\x05")).unwrap_err();
        assert_eq!(error.fault, Fault::UnknownApi { api_key: i16::MAX });
    }

    #[test]
    fn a_refused_apiversions_request_is_read_in_the_oldest_form() {
        let answer = ApiVersionsResponse {
            error_code: ErrorCode::UnsupportedVersion.code(),
            api_keys: vec![ApiVersion { api_key: 18, min_version: 0, max_version: 3 }],
            ..Default::default()
        };
        let frame = encode_response(0, 7, &answer).unwrap();
        let body = frame.to_bytes().slice(4..);
        assert_eq!(decode_api_versions_response(4, body), Ok((7, answer)));
    }
}
