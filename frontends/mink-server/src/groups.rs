//! The limits of consumer groups, from flags and memory.
//!
//! Lives on: anywhere.
//! Invariants: I20: what all coordinators of a node may hold, appends and checkpoints on their way included, is one part of its memory.
use crate::args::ServeArgs;
use crate::memory::Memory;
use crate::settings::SettingsError;
use crate::units::{Amount, Bytes};
use mink_node::GroupLimits;
use std::time::Duration;

/// Half of the part is for what is on its way to the log: the same bytes once more.
const COPIES: u64 = 2;
const RETENTION_MAX_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;
/// One group takes so much of the memory of all groups at most, and one member.
const GROUP_SHARE: usize = 2;
const MEMBER_SHARE: usize = 4;
/// Shortest wait of a new group for members that start with the first, in ms. Without one, who comes some ms later finds a stable group, and
/// the first learns of it by its next heartbeat: both stand still for seconds. librdkafka lets 50 ms pass between two connections and then opens
/// another to the coordinator, so two of its members come up to some 150 ms apart.
const TOGETHER_MS: u32 = 200;

/// What a coordinator is bounded by.
pub(crate) fn group_limits(args: &ServeArgs, memory: &Memory) -> Result<GroupLimits, SettingsError> {
    let (given, defaults) = (&args.limits, GroupLimits::default());
    // The node's coordinators share it: groups spread over them as their names fall.
    let coordinator_bytes_max = usize::try_from(memory.groups / COPIES).unwrap_or(usize::MAX);
    let fit = |flag, asked: Option<Bytes>, default: usize, share: usize| {
        let most = coordinator_bytes_max / share;
        match asked.map(|bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX)) {
            None => Ok(default.min(most)),
            Some(asked) if asked <= most => Ok(asked),
            Some(asked) => Err(SettingsError::Fit {
                flag,
                asked: Amount::size(asked as u64),
                memory: Bytes(memory.total).rounded_down(),
                most: Amount::size(most as u64).rounded_down(),
                remedy: "lower it, or give more --memory".into(),
            }),
        }
    };
    let limits = GroupLimits {
        members_max: given.group_max_size.unwrap_or(defaults.members_max),
        groups_max: given.groups_per_coordinator_max.unwrap_or(defaults.groups_max),
        member_bytes_max: fit(
            "group-member-bytes-max",
            given.group_member_bytes_max,
            defaults.member_bytes_max,
            MEMBER_SHARE,
        )?,
        group_bytes_max: fit(
            "group-bytes-max",
            given.group_bytes_max,
            defaults.group_bytes_max,
            GROUP_SHARE,
        )?,
        coordinator_bytes_max,
        commit_metadata_bytes_max: given
            .offset_metadata_bytes_max
            .map_or(defaults.commit_metadata_bytes_max, usize::from),
        session_timeout_min_ms: millis("kafka-session-timeout-min", args.kafka_session_timeout_min)?,
        offsets_retention_ms: retention(args.kafka_offsets_retention)?,
        rebalance_delay_ms: millis("kafka-rebalance-delay", args.kafka_rebalance_delay)?.max(TOGETHER_MS),
        ..defaults
    };
    if limits.session_timeout_min_ms > limits.session_timeout_max_ms {
        let (flag, accepted) = ("kafka-session-timeout-min", "at most 30min");
        let value = format!("{:?}", args.kafka_session_timeout_min);
        return Err(SettingsError::Range { flag, value, accepted });
    }
    Ok(limits)
}

fn retention(time: Duration) -> Result<u64, SettingsError> {
    let (flag, accepted) = ("kafka-offsets-retention", "1ms to 100 years");
    let value = format!("{time:?}");
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if (1..=RETENTION_MAX_MS).contains(&millis) {
        Ok(millis)
    } else {
        Err(SettingsError::Range { flag, value, accepted })
    }
}

fn millis(flag: &'static str, time: Duration) -> Result<u32, SettingsError> {
    let accepted = "less than 24 days";
    let millis = i32::try_from(time.as_millis()).ok().and_then(|millis| u32::try_from(millis).ok());
    millis.ok_or_else(|| SettingsError::Range { flag, value: format!("{time:?}"), accepted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, parse};
    use std::ffi::OsString;

    fn limits(flags: &[&str]) -> Result<GroupLimits, SettingsError> {
        let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
        Ok(Settings::resolve(parse(&flags)?)?.groups)
    }

    #[test]
    fn the_defaults_are_those_of_the_interface() {
        let given = limits(&["--memory", "64GiB"]).expect("valid");
        let coordinator_bytes_max = given.coordinator_bytes_max;
        assert_eq!(given, GroupLimits { coordinator_bytes_max, ..GroupLimits::default() });
    }

    #[test]
    fn what_is_asked_for_is_taken_or_refused_in_words() {
        let flags =
            ["--kafka-rebalance-delay", "0s", "--kafka-session-timeout-min", "1s", "--group-max-size", "5"];
        let limits_given = limits(&flags).expect("valid");
        assert_eq!(
            (limits_given.rebalance_delay_ms, limits_given.session_timeout_min_ms, limits_given.members_max),
            (TOGETHER_MS, 1_000, 5)
        );
        let kept = limits(&["--kafka-offsets-retention", "36h"]).expect("valid").offsets_retention_ms;
        assert_eq!(kept, 36 * 60 * 60 * 1_000);
        let error = limits(&["--kafka-offsets-retention", "0s"]).expect_err("refused");
        assert!(error.to_string().contains("--kafka-offsets-retention"), "{error}");
        let error = limits(&["--memory", "128MiB", "--group-bytes-max", "8MiB"]).expect_err("refused");
        assert!(error.to_string().contains("--group-bytes-max"), "{error}");
        let error = limits(&["--kafka-session-timeout-min", "31m"]).expect_err("refused");
        assert!(error.to_string().contains("--kafka-session-timeout-min"), "{error}");
    }

    #[test]
    fn i20_all_coordinators_together_keep_within_their_part_of_the_memory() {
        for (memory, bytes) in [("128MiB", 128_u64 << 20), ("1GiB", 1 << 30), ("64GiB", 64 << 30)] {
            let limits = limits(&["--memory", memory]).expect("valid");
            let all = limits.coordinator_bytes_max as u64 * COPIES;
            assert!(all <= Memory::split(bytes).expect("enough").groups, "{memory}");
            assert!(limits.group_bytes_max < limits.coordinator_bytes_max);
        }
    }
}
