//! DescribeLogDirs: how many bytes of each partition that this node leads lie in the store, as one directory.
//!
//! Lives on: anywhere (pure).
//! Invariants: a partition is described once per answer, however often a request names it (I20).
use super::Call;
use crate::topic;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResult, DescribeLogDirsTopic,
};
use mink_metadata::{State, Table};
use mink_types::{BucketId, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// A store has no end that it tells of.
const UNKNOWN: i64 = -1;

pub(super) fn describe_log_dirs(call: &Call<'_>, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let state = call.node.admin.state();
    let own = call.node.admin.identity().incarnation;
    let led = |bucket: &BucketId| state.bucket(bucket).is_some_and(|state| state.owner == Some(own));
    let topics = asked(call, &state, request.topics).into_iter().filter_map(|(table, buckets)| {
        let table = state.table(table)?;
        let led: Vec<_> = buckets.into_iter().filter(led).collect();
        (!led.is_empty()).then(|| describe(call, &state, table, led))
    });
    let results = vec![DescribeLogDirsResult {
        error_code: ErrorCode::None.code(),
        log_dir: state.incarnation(own).map(|own| own.storage.as_str().into()).unwrap_or_default(),
        topics: topics.collect(),
        total_bytes: UNKNOWN,
        usable_bytes: UNKNOWN,
        is_cordoned: false,
    }];
    DescribeLogDirsResponse { results, ..DescribeLogDirsResponse::default() }
}

/// The buckets meant: those of the request that exist, or all.
fn asked(
    call: &Call<'_>,
    state: &State,
    topics: Option<Vec<DescribableLogDirTopic>>,
) -> BTreeMap<TableId, BTreeSet<BucketId>> {
    let Some(topics) = topics else {
        return topic::all(state).map(|table| (table.id, table.bucket_ids().collect())).collect();
    };
    let mut asked: BTreeMap<TableId, BTreeSet<BucketId>> = BTreeMap::new();
    for named in topics {
        let Some(table) = topic::named(state, &call.node.config.kafka_database, named.topic.as_str()) else {
            continue;
        };
        let buckets = named.partitions.iter().filter_map(|partition| topic::bucket(table, *partition));
        asked.entry(table.id).or_default().extend(buckets);
    }
    asked
}

fn describe(call: &Call<'_>, state: &State, table: &Table, buckets: Vec<BucketId>) -> DescribeLogDirsTopic {
    let partitions = buckets.into_iter().map(|bucket| {
        let ranges = state.bucket(&bucket).into_iter().flat_map(|state| state.ranges.values());
        let bytes = ranges.fold(0_u64, |sum, range| sum.saturating_add(range.bytes));
        DescribeLogDirsPartition {
            partition_index: i32::try_from(bucket.bucket.0).unwrap_or(i32::MAX),
            partition_size: i64::try_from(bytes).unwrap_or(i64::MAX),
            offset_lag: 0,
            is_future_key: false,
        }
    });
    DescribeLogDirsTopic {
        partitions: partitions.collect(),
        name: table.topic_name(&call.node.config.kafka_database).into(),
    }
}
