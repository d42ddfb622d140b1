//! ApiVersions: what is offered.
//!
//! Lives on: anywhere (pure).
use crate::connection::Answer;
use mink_kafka_wire::messages::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
use mink_kafka_wire::{ApiKey, ErrorCode, OFFERED, Offer};

/// First version that names the client's software.
const SOFTWARE_FROM: i16 = 3;

fn line(offer: &Offer) -> ApiVersion {
    ApiVersion {
        api_key: offer.key.code(),
        min_version: offer.advertised.min,
        max_version: offer.advertised.max,
    }
}

pub(super) fn api_versions(version: i16, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let software = [&request.client_software_name, &request.client_software_version];
    if version >= SOFTWARE_FROM && !software.iter().all(|word| is_word(word.as_str())) {
        let error_code = ErrorCode::InvalidRequest.code();
        return ApiVersionsResponse { error_code, ..ApiVersionsResponse::default() };
    }
    ApiVersionsResponse { api_keys: OFFERED.iter().map(line).collect(), ..ApiVersionsResponse::default() }
}

/// Letters, digits, and between them dots and hyphens: what may stand in metrics and logs.
fn is_word(word: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let ends = [word.bytes().next(), word.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric())) && word.bytes().all(is_inner)
}

/// The answer to a version that we do not know, in the oldest form and naming ApiVersions alone, so that the client can ask
/// again.
pub(super) fn unsupported(correlation: i32) -> Answer {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: OFFERED.iter().filter(|offer| offer.key == ApiKey::ApiVersions).map(line).collect(),
        ..ApiVersionsResponse::default()
    };
    super::encode(0, correlation, &response)
}
