//! ApiVersions: what is offered.
//!
//! Lives on: anywhere (pure).
use crate::connection::Answer;
use mink_kafka_wire::messages::api_versions::{ApiVersion, ApiVersionsResponse};
use mink_kafka_wire::{ApiKey, ErrorCode, OFFERED, Offer};

fn line(offer: &Offer) -> ApiVersion {
    ApiVersion {
        api_key: offer.key.code(),
        min_version: offer.advertised.min,
        max_version: offer.advertised.max,
    }
}

pub(super) fn api_versions() -> ApiVersionsResponse {
    ApiVersionsResponse { api_keys: OFFERED.iter().map(line).collect(), ..ApiVersionsResponse::default() }
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
