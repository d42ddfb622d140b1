//! I20: a bucket that is let alone gives back its tail, and nothing that is not committed.
use super::rig::{Rig, bases, batch, sim};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(40);

async fn later(rig: &Rig) {
    rig.runtime.service().sleep(LONG).await;
    rig.lease().await;
    rig.settle().await;
}

#[test]
fn i20_a_bucket_at_rest_reads_its_batches_from_objects() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2), batch(3)]).await;
        rig.committed(&entries).await;
        assert_eq!(rig.stats().await.tail_batches, 2, "what is committed stays while it is of use");
        later(&rig).await;
        let stats = rig.stats().await;
        assert_eq!((stats.tail_batches, stats.reads_object), (0, 0));
        let answer = rig.read(bucket, 0).await.expect("readable");
        assert_eq!(bases(&answer.batches), [0, 2]);
        assert_eq!(rig.stats().await.reads_object, 1);
        // It goes on where it was.
        let (base, _ticket) = rig.ordered(bucket, batch(1)).await;
        assert_eq!(base, 5);
    });
}

#[test]
fn i1_what_is_not_committed_stays_however_long() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2)]).await;
        rig.committed(&entries).await;
        let _more = rig.stored(bucket, &[batch(3)]).await;
        later(&rig).await;
        later(&rig).await;
        assert_eq!(rig.stats().await.tail_batches, 2);
    });
}

#[test]
fn a_bucket_that_is_read_does_not_rest() {
    sim(|rig| async move {
        let bucket = rig.open(0).await;
        let entries = rig.stored(bucket, &[batch(2)]).await;
        rig.committed(&entries).await;
        for _ in 0..5 {
            rig.runtime.service().sleep(LONG / 2).await;
            rig.lease().await;
            rig.read(bucket, 0).await.expect("readable");
        }
        assert_eq!(rig.stats().await.reads_object, 0);
        later(&rig).await;
        later(&rig).await;
        assert_eq!(rig.stats().await.tail_batches, 0);
    });
}
