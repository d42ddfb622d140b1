//! What tells of a log's producers stays as long as it must, and no longer (I6, I14).
use super::*;
use crate::{FEATURE_LEVEL_MAX, Invalid, RefusalKind};

/// A log at the newest level, a node that owns a bucket, and its chain.
fn owned() -> (Log, Incarnation, BucketId) {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in 2..=FEATURE_LEVEL_MAX {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: FEATURE_LEVEL_MAX, ..registration(1) }));
    let one = Incarnation(log.state.witness().index.0);
    let id = bucket(log.create("kafka.t", 1), 0);
    log.open(one, &[(id, 0)], None);
    (log, one, id)
}

fn flush(
    log: &mut Log,
    by: Incarnation,
    epoch: u32,
    counter: u64,
    id: BucketId,
    offsets: (u64, u64),
) -> ObjectId {
    let object = stream(log.chain(by), counter, &[range(id, epoch, offsets.0, offsets.1)]);
    log.done(commit(by, by, std::slice::from_ref(&object), None));
    object.id
}

fn raise(by: Incarnation, bucket: BucketId, epoch: u32, start: u64) -> Command {
    Command::RaiseStart { by, bucket, epoch: BucketEpoch(epoch), start: Offset(start) }
}

fn kept(log: &Log, id: BucketId) -> Vec<ObjectId> {
    log.state.bucket(&id).expect("there").ranges.values().map(|range| range.object).collect()
}

fn doomed(log: &Log) -> Vec<ObjectId> {
    log.state.doomed().map(|(id, _)| *id).collect()
}

#[test]
fn i6_the_newest_stream_object_of_a_log_outlives_its_records_until_a_newer_one_tells_of_its_producers() {
    let (mut log, one, id) = owned();
    let (first, second) = (flush(&mut log, one, 1, 1, id, (0, 5)), flush(&mut log, one, 1, 2, id, (5, 9)));
    log.done(raise(one, id, 1, 9));
    assert_eq!((kept(&log, id), doomed(&log)), (vec![second], vec![first]));
    let bucket = log.state.bucket(&id).expect("there");
    assert_eq!((bucket.start, bucket.end, bucket.unread().count()), (Offset(9), Offset(9), 1));
    assert_eq!(bucket.ranges_from(bucket.start).count(), 0, "no reader comes by it");
    let third = flush(&mut log, one, 1, 3, id, (9, 12));
    assert_eq!((kept(&log, id), doomed(&log)), (vec![third], vec![first, second]));
}

#[test]
fn i6_adopted_wal_objects_tell_only_of_their_own_so_the_stream_object_before_them_stays_too() {
    let (mut log, one, id) = owned();
    let (first, second) = (flush(&mut log, one, 1, 1, id, (0, 5)), flush(&mut log, one, 1, 2, id, (5, 9)));
    log.done(Command::Register(Registration { feature_level_max: FEATURE_LEVEL_MAX, ..registration(1) }));
    let two = Incarnation(log.state.witness().index.0);
    log.done(Command::Fence { incarnation: one, by: two });
    let adopted = wal(log.chain(one), 4, &[range(id, 1, 9, 11)]);
    log.done(commit(two, one, std::slice::from_ref(&adopted), None));
    log.open(two, &[(id, 1)], Some(TakenOver { incarnation: one, seal: WalNumber(5) }));
    for start in [9, 11] {
        log.done(raise(two, id, 2, start));
        assert_eq!((kept(&log, id), doomed(&log)), (vec![second, adopted.id], vec![first]), "from {start}");
    }
    let third = flush(&mut log, two, 2, 1, id, (11, 12));
    assert_eq!((kept(&log, id), doomed(&log)), (vec![third], vec![adopted.id, first, second]));
}

#[test]
fn i14_producers_that_have_expired_are_forgotten_with_their_object() {
    let (mut log, one, id) = owned();
    let object = flush(&mut log, one, 1, 1, id, (0, 5));
    let forget = |epoch, end| Command::ForgetProducers {
        by: one,
        bucket: id,
        epoch: BucketEpoch(epoch),
        end: Offset(end),
    };
    let records = Refusal::Invalid(Invalid::StartOutOfRange);
    assert_eq!(log.refused(forget(1, 5)), records, "a log with records keeps them");
    log.done(raise(one, id, 1, 5));
    assert_eq!(log.refused(forget(2, 5)).kind(), RefusalKind::Stale);
    assert_eq!(log.refused(forget(1, 4)).kind(), RefusalKind::Stale, "it was judged by another end");
    assert_eq!(kept(&log, id), [object]);
    log.done(forget(1, 5));
    assert_eq!((kept(&log, id), doomed(&log)), (vec![], vec![object]));
    log.done(forget(1, 5));
    flush(&mut log, one, 1, 2, id, (5, 6));
    assert_eq!(log.refused(forget(1, 6)), records);
}

#[test]
fn before_feature_level_3_a_log_forgets_its_producers_with_its_last_record() {
    let (mut log, one, _) = Log::with_nodes();
    let id = bucket(log.create("kafka.t", 1), 0);
    log.open(one, &[(id, 0)], None);
    let object = flush(&mut log, one, 1, 1, id, (0, 5));
    log.done(raise(one, id, 1, 5));
    assert_eq!((kept(&log, id), doomed(&log)), (vec![], vec![object]));
    let forget = Command::ForgetProducers { by: one, bucket: id, epoch: BucketEpoch(1), end: Offset(5) };
    assert_eq!(log.refused(forget), Refusal::Invalid(Invalid::FeatureLevel));
}
