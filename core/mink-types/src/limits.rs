//! Limits that hold against anyone who reaches a port. Each has a configuration key of the same name.
//!
//! Lives on: anywhere (pure).

/// The limits of a node, with their defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest Kafka request in bytes (`frame-bytes-max`); a larger length prefix closes the connection.
    pub frame_bytes_max: u32,
    /// Time for a whole frame from its first byte, in ms (`frame-deadline-ms`).
    pub frame_deadline_ms: u64,
    /// A connection silent for so long is closed, in ms (`idle-deadline-ms`).
    pub idle_deadline_ms: u64,
    /// Connections in all (`connections-max`) and per address (`connections-per-address-max`).
    pub connections_max: u32,
    pub connections_per_address_max: u32,
    /// New connections per second, in all (`connections-per-second`) and from one address (`connections-per-address-per-second`), on
    /// average; four times as many may come at once.
    pub connections_per_second: u32,
    pub connections_per_address_per_second: u32,
    /// A frame of more than a few KiB keeps arriving at this rate, in bytes per second (`frame-bytes-per-second-min`).
    pub frame_bytes_per_second_min: u32,
    /// Requests of one connection that wait for their answer (`requests-in-flight-max`); then its socket is not read.
    pub requests_in_flight_max: u32,
    /// Largest record batch that a table's options may allow, in bytes (`batch-bytes-max`).
    pub batch_bytes_max: u32,
    /// Largest message of Arrow Flight in bytes (`flight-message-bytes-max`); a larger length ends its call.
    pub flight_message_bytes_max: u32,
    /// Largest answer to one fetch, in bytes (`fetch-bytes-max`); a client's own wish is cut to it.
    pub fetch_bytes_max: u32,
    /// Bytes that one batch may inflate to, in bytes (`inflated-bytes-max`).
    pub inflated_bytes_max: u32,
    /// Buckets of one table (`buckets-per-table-max`) and of all tables (`buckets-max`).
    pub buckets_per_table_max: u32,
    pub buckets_max: u32,
    /// Idempotent producers remembered per bucket (`producers-per-bucket-max`).
    pub producers_per_bucket_max: u32,
    /// An idempotent producer idle for so long is forgotten, in ms of commit time (`producer-expiry-ms`).
    pub producer_expiry_ms: u64,
    /// New producer ids per second (`producer-ids-per-second`).
    pub producer_ids_per_second: u32,
}

/// A limit that contradicts another.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("limit {small} must not be above {large}; lower the one or raise the other")]
pub struct LimitError {
    pub small: &'static str,
    pub large: &'static str,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            frame_bytes_max: 100 << 20,
            frame_deadline_ms: 30_000,
            idle_deadline_ms: 600_000,
            connections_max: 10_000,
            connections_per_address_max: 2_000,
            connections_per_second: 2_500,
            connections_per_address_per_second: 500,
            frame_bytes_per_second_min: 256 << 10,
            requests_in_flight_max: 64,
            batch_bytes_max: 32 << 20,
            flight_message_bytes_max: 257 << 20,
            fetch_bytes_max: 64 << 20,
            inflated_bytes_max: 128 << 20,
            buckets_per_table_max: 10_000,
            buckets_max: 100_000,
            producers_per_bucket_max: 10_000,
            producer_expiry_ms: 7 * 24 * 60 * 60 * 1000,
            producer_ids_per_second: 1_000,
        }
    }
}

impl Limits {
    /// Checks the limits against each other.
    pub fn check(&self) -> Result<(), LimitError> {
        let pairs = [
            (self.batch_bytes_max, "batch-bytes-max", self.frame_bytes_max, "frame-bytes-max"),
            (self.buckets_per_table_max, "buckets-per-table-max", self.buckets_max, "buckets-max"),
            (
                self.connections_per_address_max,
                "connections-per-address-max",
                self.connections_max,
                "connections-max",
            ),
            (
                self.connections_per_address_per_second,
                "connections-per-address-per-second",
                self.connections_per_second,
                "connections-per-second",
            ),
        ];
        for (a, small, b, large) in pairs {
            if a > b {
                return Err(LimitError { small, large });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_together_and_a_contradiction_is_named() {
        assert_eq!(Limits::default().check(), Ok(()));
        let limits = Limits { frame_bytes_max: 1, ..Limits::default() };
        assert_eq!(limits.check(), Err(LimitError { small: "batch-bytes-max", large: "frame-bytes-max" }));
    }
}
