//! A node that is let alone with a trickle of records for a month: what lies in the store does not grow.
//!
//! Lives on: the simulation's thread. A day takes two seconds; `MINK_MONTH=1` runs thirty of them with seven days kept, else three are run
//! with one day kept.
use super::{Site, story_of};
use crate::{CompactionConfig, NodeConfig};
use mink_object::list_all;
use mink_rt::SimConfig;
use mink_types::{BucketId, BucketIndex, ObjectKey, TableOptions};
use s3stream::WalConfig;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);
const BATCH_EVERY: Duration = Duration::from_secs(10);
/// Objects of every kind that may lie in the store at once: those of the log, what waits for its grace, snapshots of the metadata.
const OBJECTS_MAX: usize = 64;

/// As `mink serve` sets a node up.
fn config(site: &Site) -> NodeConfig {
    NodeConfig {
        wal: WalConfig::default(),
        lease_ttl: Duration::from_secs(10),
        compaction: CompactionConfig { bytes_per_second: 32 << 20, window_bytes: 64 << 20 },
        deletion_grace: Duration::from_mins(1),
        snapshot_rows: 10_000,
        ..site.config(1)
    }
}

/// Objects in the store, of every kind.
async fn objects(site: &Site) -> usize {
    let all = ObjectKey::parse(&site.cluster.to_string()).expect("valid");
    list_all(&*site.store, &all, 100_000).await.expect("lists").0.len()
}

#[test]
fn i14_a_month_of_a_batch_every_ten_seconds_leaves_the_store_flat() {
    let (days, kept) = if std::env::var_os("MINK_MONTH").is_some() { (30, 7) } else { (3, 1) };
    let bounds = SimConfig { steps_max: u64::MAX, ..SimConfig::seeded(7) };
    story_of(bounds, move |site| async move {
        let node = site.start(config(&site)).await.expect("starts");
        let ttl = u64::try_from((DAY * kept).as_millis()).expect("small");
        let options = TableOptions { buckets: 1, log_ttl_ms: Some(ttl), ..TableOptions::default() };
        let table = node.create_with("trickle", options).await;
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        assert!(node.node.admin().wait_open(table, Duration::from_mins(1)).await);
        let began = site.now();
        let mut daily = Vec::new();
        for day in 1..=days {
            let mut most = 0;
            while site.now() < began + DAY * day {
                node.append(bucket, 1).await;
                site.sleep(BATCH_EVERY).await;
                if site.now().as_nanos() / 3_600_000_000_000 % 2 == 0 {
                    most = most.max(node.state().objects().count());
                }
            }
            daily.push((most, objects(&site).await));
        }
        println!("objects that the log lay in at most, and all in the store at the end, by day: {daily:?}");
        let settled = daily.split_off(usize::try_from(kept).expect("small"));
        let in_store = settled.iter().map(|(_, all)| *all).max().expect("some");
        assert!(in_store <= OBJECTS_MAX, "{settled:?}");
        let state = node.state();
        let log = state.bucket(&bucket).expect("there");
        assert!(log.start.0 > 0 && log.end.0 - log.start.0 < 8_640 * u64::from(kept + 1) * 5 / 4, "{log:?}");
        node.node.drain(Duration::from_secs(10)).await;
    });
}
